package cuda

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maySpill has the kernels that ran faster on a GPU with spills than without.
var maySpill = regexp.MustCompile(`attentionGrad(Dst|Src)$`)

// NVIDIA's assembler accepts the PTX for all generations of devices, without register spills.
func TestPTXAssembles(t *testing.T) {
	if _, err := exec.LookPath("ptxas"); err != nil {
		t.Skip("no ptxas, which is NVIDIA's: Debian has it in nvidia-cuda-toolkit, a package of non-free")
	}
	spills := regexp.MustCompile(`[1-9][0-9]* bytes (stack frame|spill)`)
	for _, m := range ptxModules() {
		for _, arch := range []string{"sm_70", "sm_80", "sm_90"} {
			out, err := exec.Command("ptxas", "-v", "-arch="+arch, "-o", filepath.Join(t.TempDir(), "cubin"),
				ptxFolder+"/"+m.Name+".ptx").CombinedOutput()
			if err != nil {
				t.Errorf("%s for %s: %v\n%s", m.Name, arch, err, out)
			}
			kernel := ""
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, "Function properties") {
					kernel = strings.TrimSpace(line)
				}
				if spills.MatchString(line) && !maySpill.MatchString(kernel) {
					t.Errorf("%s: %s: %s", arch, kernel, strings.TrimSpace(line))
				}
			}
		}
	}
}
