package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFormulasInPredictions: ids and class names that a spreadsheet program would evaluate
// are guarded in predictions.csv, and siafu import reads the same texts back.
func TestFormulasInPredictions(t *testing.T) {
	dir := t.TempDir()
	write := func(folder, name, text string) {
		os.MkdirAll(filepath.Join(dir, folder), 0o755)
		if err := os.WriteFile(filepath.Join(dir, folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const edges = "src,dst\n@ann,bob\nbob,-7\n"
	write("tables", "nodes.csv", "id,label,split,x\n@ann,=1+1,train,1\nbob,-loss,train,2\n-7,=1+1,val,1\ncy,-loss,test,2\n")
	write("tables", "edges.csv", edges)
	data, run, again := filepath.Join(dir, "data"), filepath.Join(dir, "run"), filepath.Join(dir, "again")
	must(t, "import", filepath.Join(dir, "tables"), data)
	must(t, "train", data, "--epochs", "1", "--out", run)
	must(t, "predict", run, data)
	text, err := os.ReadFile(filepath.Join(run, "predictions", "predictions.csv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i, want := range []string{"id,split,label,prediction,probability", "'@ann,train,'=1+1,'", "bob,train,'-loss,'",
		"-7,val,'=1+1,'", "cy,test,'-loss,'"} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %q, want %q…", i+1, lines[i], want)
		}
	}
	write("scored", "nodes.csv", string(text))
	write("scored", "edges.csv", edges)
	must(t, "import", filepath.Join(dir, "scored"), again, "--features", "probability")
	before, after := must(t, "info", data), must(t, "info", again)
	if want := "=1+1"; !strings.Contains(before, want) || !strings.Contains(after, want) || strings.Contains(after, "'=1+1") {
		t.Errorf("class names have changed:\n%s%s", before, after)
	}
}
