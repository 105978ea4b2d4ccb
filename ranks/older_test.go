package ranks

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"siafu/kernels"
)

// equalities are tests of equal bits.
var equalities = []string{
	"TestResumedIsNeverStopped", "TestLossIndependentOfRanks", "TestOverlapChangesNothing",
}

// The tests of equal bits hold on every set of instructions that this processor has: they run again as on
// an older one.
func TestEqualitiesOnOlderProcessors(t *testing.T) {
	t.Parallel()
	if os.Getenv(kernels.CPUVariable) != "" {
		t.Skip("this is an older processor")
	}
	for _, cpu := range kernels.Variants()[1:] {
		if cpu == "openblas" {
			continue
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
