package model

import (
	"testing"

	"siafu/kernels"
)

// HeadFloats equals the allocation of NewHead.
func TestHeadFloats(t *testing.T) {
	team := kernels.NewTeam(1)
	defer team.Close()
	for layers := range 5 {
		s := Spec{Kind: "gcn", Dims: []int{9, 8, 5}, Design: Design{ScoreLayers: layers + 1, ScoreHidden: 7}}
		h, got := s.NewHead(team, 6), int64(0)
		for l := range h.values {
			got += int64(len(h.values[l]) + len(h.slopes[l]))
		}
		if want := s.HeadFloats(6); got != want {
			t.Errorf("%d layers take %d floats, estimated are %d", layers+1, got, want)
		}
	}
}
