package ranks

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"siafu/internal/testkit/hosttest"
	"siafu/kernels"
)

// equalities are tests of equal bits.
var allEqualities = []string{
	"TestResumedIsNeverStopped", "TestLossIndependentOfRanks", "TestOverlapChangesNothing",
}

// The tests of equal bits hold on every set of instructions that this processor has: each runs again as on
// an older one, which changes with the commit.
func TestEqualitiesOnOlderProcessors(t *testing.T) {
	t.Parallel()
	if os.Getenv(kernels.CPUVariable) != "" {
		t.Skip("this is an older processor")
	}
	older := slices.DeleteFunc(kernels.Variants()[1:], func(cpu string) bool { return cpu == "openblas" })
	seed := hosttest.Turn(t, 6)
	for k, cpu := range older {
		var equalities []string
		for i, name := range allEqualities {
			if (i+k+seed)%len(older) == 0 || hosttest.Big() {
				equalities = append(equalities, name)
			}
		}
		t.Run(cpu, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.v", "-test.run", "^("+strings.Join(equalities, "|")+")$")
			cmd.Env = append(os.Environ(), kernels.CPUVariable+"="+cpu)
			text, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			for _, name := range equalities {
				if !strings.Contains(string(text), "\n--- PASS: "+name+" ") {
					t.Errorf("%s has not run:\n%s", name, text)
				}
			}
		})
	}
}
