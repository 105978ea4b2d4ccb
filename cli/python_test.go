package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"siafu/internal/testkit/hosttest"
)

// withNumPy returns a Python with NumPy, or skips the test.
func withNumPy(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import numpy").Run() == nil {
			return python
		}
	}
	t.Skip("no Python here has NumPy: install python3-numpy")
	return ""
}

// succeeds runs a command in dir.
func succeeds(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// TestPythonModule runs the tests of python/siafu.py with this test as the program.
func TestPythonModule(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"SIAFU=" + self, asProgram + "=1", "PYTHONDONTWRITEBYTECODE=1"}
	t.Log(succeeds(t, "python", env, withNumPy(t), "-m", "unittest", "-v"))
}

// TestWheel: two wheels of the same tree have the same bytes, and pip installs module, programs and
// function, with which the tests of the module pass outside of the tree.
func TestWheel(t *testing.T) {
	if !hosttest.Big() {
		t.Skip("it compiles the programs: set SIAFU_BIG=1")
	}
	t.Parallel()
	python, dir := withNumPy(t), t.TempDir()
	first := succeeds(t, ".", nil, "scripts/wheel", runtime.GOARCH)
	if again := succeeds(t, ".", nil, "scripts/wheel", runtime.GOARCH); again != first {
		t.Errorf("a second wheel differs: %s, then %s", first, again)
	}
	if out, err := exec.Command(python, "-m", "venv", "--system-site-packages", filepath.Join(dir, "venv")).CombinedOutput(); err != nil {
		t.Skipf("there is no venv with pip (apt-get install python3-venv): %v: %s", err, out)
	}
	python = filepath.Join(dir, "venv/bin/python")
	succeeds(t, ".", nil, python, "-m", "pip", "install", "--no-index", strings.Fields(first)[1])
	tests, err := os.ReadFile("python/test_siafu.py")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "test_siafu.py"), tests, 0o644)
	}
	page, pageErr := filepath.Abs("docs/python.md")
	if err != nil || pageErr != nil {
		t.Fatal(err, pageErr)
	}
	env := []string{"SIAFU=", "SIAFU_TUTORIAL=" + page}
	succeeds(t, dir, env, python, "-m", "unittest")
	const bridged = `import siafu, numpy; print(siafu.__file__, siafu._program())
graph = {"x": numpy.eye(9), "y": numpy.arange(9) % 2, "edge_index": [range(8), range(1, 9)]}
assert siafu.train(graph, tensor="lambda", lambda_="local", epochs=2).summary["lambda_invocations"] > 0`
	for where := range strings.FieldsSeq(strings.Split(succeeds(t, dir, env, python, "-c", bridged), "\n")[0]) {
		if !strings.HasPrefix(where, filepath.Join(dir, "venv")) {
			t.Errorf("%s is not in the virtual environment", where)
		}
	}
}
