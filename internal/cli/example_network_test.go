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

	"siafu/internal/host/hosttest"
)

// networkEdits are the edits of existing files for the example of docs/models.md: the text
// that the page says to add replaces + in the place, which is in the file without +.
var networkEdits = []struct{ file, place, text string }{
	{"kernels/model/kinds.go", "+\n\t}\n}\n\n// Kinds returns", `{Name: "residual", Weights: OneProduct, Layer: residualLayer, Coefficients: GCNCoefficients, Order: "apply-first"},`},
	{"ranks/config/options.go", `sgc,sign+" usual:"Network`, `,residual`},
	{"ranks/config/options.go", `appnp, sgc, sign+; see`, `, residual`},
	{"docs/commands.md", `appnp, sgc, sign+; see`, `, residual`},
	{"kernels/model/gradient_test.go", `{Kind: "mlp"}, +{Custom`, `{Kind: "residual"},`},
	{"ranks/reference_test.go", `case "gcn",+ "gcnii", "appnp"`, ` "residual",`},
	{"ranks/reference_test.go", "\tswitch r.spec.Kind {\n+\tcase \"sage-pool\":\n\t\tpooled", "\tcase \"residual\":\n"},
	{"ranks/gradient_test.go", "\t\t+\n\t\t{name: \"perceptron\", ", `{name: "residual", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers = "residual", 4, 3 }},`},
}

// modelsPage is docs/models.md.
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

// withNetwork returns the contents of the files that the page says to write or to edit.
func withNetwork(t *testing.T) map[string]string {
	t.Helper()
	page := modelsPage(t)
	code := strings.ReplaceAll(codeBlock(t, page, "package model_test"), "model.", "")
	changed := map[string]string{
		"kernels/model/residual.go": strings.Replace(code, "package model_test\n\nimport \"siafu/kernels/model\"\n", "package model\n", 1),
	}
	for _, e := range networkEdits {
		if !strings.Contains(page, e.text) {
			t.Fatalf("docs/models.md does not say to add %q to %s", e.text, e.file)
		}
		if strings.HasSuffix(e.text, ":\n") {
			e.text = codeBlock(t, page, e.text)
		}
		if changed[e.file] == "" {
			text, err := os.ReadFile(e.file)
			if err != nil {
				t.Fatal(err)
			}
			changed[e.file] = string(text)
		}
		before, after, _ := strings.Cut(e.place, "+")
		place := strings.TrimSuffix(before, "\t\t") + strings.TrimPrefix(after, "\n")
		if strings.Count(changed[e.file], place) != 1 {
			t.Fatalf("%s has the text %q %d times", e.file, place, strings.Count(changed[e.file], place))
		}
		changed[e.file] = strings.Replace(changed[e.file], place, before+e.text+after, 1)
	}
	return changed
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
		if !strings.HasPrefix(name, "kernels/model/") {
			continue
		}
		replace[filepath.Join(root, name)] = filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, _ := json.Marshal(map[string]any{"Replace": replace})
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	goTest(t, root, "test", "-short", "-overlay", filepath.Join(dir, "overlay.json"), "-run", "Initial|SmallLogits|TestGradient/.*residual|Plan", "./kernels/model")
}

// goTest runs a command of Go.
func goTest(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestAddedNetworkInACopy: a copy of the tree with the network of docs/models.md passes the
// tests that the page lists, and trains and predicts with it.
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
	for _, line := range strings.Split(strings.TrimSpace(codeBlock(t, modelsPage(t), "go test ./kernels/model")), "\n") {
		goTest(t, dir, append([]string{"test", "-trimpath"}, strings.Fields(strings.ReplaceAll(strings.TrimPrefix(line, "go test "), "'", ""))...)...)
	}
	for _, args := range []string{"generate data --vertices 200 --edges 800", "train data --model residual --epochs 2 --ranks 2 --out run", "predict run data"} {
		goTest(t, dir, append([]string{"run", "-trimpath", "."}, strings.Fields(args)...)...)
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
