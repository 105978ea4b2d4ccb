package kernels_test

import (
	"testing"

	"siafu/kernels"
	"siafu/kernels/kerneltest"
)

func TestAttention(t *testing.T) {
	for _, set := range []string{"go", "avx2", "avx512"} {
		t.Run(set, func(t *testing.T) {
			team := kernels.NewTeam(1)
			defer team.Close()
			use(t, team, set)
			kerneltest.Attention(t, func(team *kernels.Team) { use(t, team, set) })
		})
	}
}
