package cli

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"siafu/internal/testkit/hosttest"
)

// modelsPage returns the text of docs/models.md.
func modelsPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// codeBlock returns the code block of the page that contains a text.
func codeBlock(t *testing.T, page, text string) string {
	t.Helper()
	for _, b := range regexp.MustCompile("(?s)```(?:go|sh)\n(.*?)```\n").FindAllStringSubmatch(page, -1) {
		if strings.Contains(b[1], text) {
			return b[1]
		}
	}
	t.Fatalf("docs/models.md has no code block with %q", text)
	return ""
}

// withNetwork returns the contents of the two files that the page says to write and to edit.
func withNetwork(t *testing.T) map[string]string {
	t.Helper()
	const table, last = "kernels/model/kinds.go", "\t\tsignKind,\n"
	page := modelsPage(t)
	if !strings.Contains(page, "`"+table+"`: the line `residual,`") {
		t.Fatalf("docs/models.md does not say what to add to %s", table)
	}
	text, err := os.ReadFile(table)
	if err != nil || !strings.Contains(string(text), last) {
		t.Fatalf("%s does not end its table with %q: %v", table, last, err)
	}
	code := strings.ReplaceAll(codeBlock(t, page, "package model_test"), "model.", "")
	return map[string]string{
		table:                       strings.Replace(string(text), last, last+"\t\tresidual,\n", 1),
		"kernels/model/residual.go": strings.Replace(code, "package model_test\n\nimport \"siafu/kernels/model\"\n", "package model\n", 1),
	}
}

// TestAddedNetwork: kernels/model passes its tests with the network of docs/models.md added
// as the page says.
func TestAddedNetwork(t *testing.T) {
	dir, replace := t.TempDir(), map[string]string{}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range withNetwork(t) {
		replace[filepath.Join(root, name)] = filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, _ := json.Marshal(map[string]any{"Replace": replace})
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	goTest(t, root, "test", "-trimpath", "-ldflags=-s -w", "-vet=off", "-short", "-overlay", filepath.Join(dir, "overlay.json"), "-run",
		"Initial|SmallLogits|TestGradient/.*residual|Plan", "./kernels/model")
}

// goTest runs a command of Go, with tests of their usual length.
func goTest(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "SIAFU_BIG=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestAddedNetworkInACopy: a copy of the tree with the network of docs/models.md passes the
// tests that the page lists. The program names the network, trains and predicts with it, and
// refuses to export it.
func TestAddedNetworkInACopy(t *testing.T) {
	if !hosttest.Big() {
		t.Skip("compiles the program: only with SIAFU_BIG=1")
	}
	dir := t.TempDir()
	copyTree(t, dir)
	for name, text := range withNetwork(t) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	goTest(t, dir, "test", "-trimpath", "./cli", "-run", "TestCommandsAreDocumented", "-update")
	for _, line := range strings.Split(strings.TrimSpace(codeBlock(t, modelsPage(t), "go test ./kernels/model")), "\n") {
		goTest(t, dir, append([]string{"test", "-trimpath"},
			strings.Fields(strings.ReplaceAll(strings.TrimPrefix(line, "go test "), "'", ""))...)...)
	}
	goTest(t, dir, "build", "-trimpath", "-o", "siafu-residual", ".")
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"train --help", "residual", 0},
		{"help networks", "residual   GCN in residual blocks (He et al. 2016)", 0},
		{"completion bash", "sign residual", 0},
		{"generate data --vertices 200 --edges 800", "", 0},
		{"train data --model residual --epochs 2 --ranks 2 --out run", "", 0},
		{"predict run data", "", 0},
		{"export run --pytorch", "model.py does not implement the network residual; train a network that it implements: gcn, sage", 78},
	} {
		cmd := exec.Command(filepath.Join(dir, "siafu-residual"), strings.Fields(c.args)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != c.code || !strings.Contains(string(out), c.want) {
			t.Errorf("siafu %s: %v, want exit code %d and %q\n%s", c.args, err, c.code, c.want, out)
		}
	}
}

// copyTree copies the source tree, without what Git and the build have made.
func copyTree(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case (path == ".git" || path == "build") && d.IsDir():
			return filepath.SkipDir
		case path == ".git": // of a worktree
			return nil
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, path), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
