package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The PTX in the tree equals make-ptx's output for the sources.
func TestPTXIsOfTheSources(t *testing.T) {
	if _, err := exec.LookPath("clang-16"); err != nil {
		t.Skip("no clang-16, which makes the PTX: apt-get install clang-16")
	}
	dir := t.TempDir()
	if out, err := exec.Command("kernels/make-ptx", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sources, err := filepath.Glob("kernels/*.cu")
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources", err)
	}
	modules := ptxModules()
	if len(modules) != len(sources) {
		t.Errorf("%d modules of %d sources; run make-ptx", len(modules), len(sources))
	}
	for _, m := range modules {
		made, err := os.ReadFile(filepath.Join(dir, m.Name+".ptx"))
		if err != nil {
			t.Error(err)
		} else if producer(string(made)) != producer(m.Text) {
			t.Skip("a clang of another version than the one that made the PTX")
		} else if string(made) != m.Text {
			t.Errorf("%s.ptx is not that of %s.cu; run make-ptx", m.Name, m.Name)
		}
	}
}

// producer returns the line that names the compiler.
func producer(text string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "clang version") {
			return line
		}
	}
	return ""
}

// Numbers are added by one thread or in a fixed order, never by atomics, and local memory,
// which is slow, is not used. Products and sums that a device might fuse are marked.
func TestPTXKeepsOrder(t *testing.T) {
	for _, m := range ptxModules() {
		for number, line := range strings.Split(m.Text, "\n") {
			words := strings.Fields(line)
			if len(words) > 1 && strings.HasPrefix(words[0], "@") {
				words = words[1:]
			}
			for _, banned := range []string{"atom.", "red.", "call", "ld.local", "st.local", "mul.f", "add.f", "sub.f", "div.full",
				"div.approx", "ex2.", "lg2."} {
				if len(words) > 0 && strings.HasPrefix(words[0], banned) {
					t.Errorf("%s.ptx:%d: %s", m.Name, number+1, strings.TrimSpace(line))
				}
			}
		}
	}
}
