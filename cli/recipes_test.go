package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/internal/testkit/hosttest"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// ring imports 300 vertices in two classes with edges within them, whose features are whole
// numbers by `parts`.
func ring(t *testing.T, parts float64) string {
	t.Helper()
	r, dir := rand.New(rand.NewPCG(7, 7)), t.TempDir()
	nodes, edges := "id,label,x,y,z\n", "src,dst\n"
	for i := range 300 {
		nodes += fmt.Sprintf("%d,%c", i, 'a'+rune(i%2))
		for k := range 3 {
			nodes += fmt.Sprintf(",%g", float64(r.IntN(5)+k*(i%2))/parts)
		}
		nodes += "\n"
		edges += fmt.Sprintf("%d,%d\n%d,%d\n", i, (i+2)%300, i, (i+2+2*r.IntN(50))%300)
	}
	for name, text := range map[string]string{"nodes.csv": nodes, "edges.csv": edges} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	must(t, "import", "--from", "csv", dir, filepath.Join(dir, "ring"), "--symmetrise")
	return filepath.Join(dir, "ring")
}

func trainInto(t *testing.T, data string, flags ...string) (*runfolder.Run, string) {
	t.Helper()
	run := filepath.Join(t.TempDir(), "run")
	out := must(t, append([]string{"train", data, "--out", run, "--checkpoint-every", "off"}, flags...)...)
	r, err := runfolder.Read(run)
	if err != nil {
		t.Fatal(err)
	}
	return r, out
}

// Features divided by eight, trained with a scale of eight, give the same training as the
// original ones: to the bit with linear steps, because powers of two are exact; with Adam up
// to its ε of 1e-8 relative to gradients of 1e-4.
func TestInputScale(t *testing.T) {
	whole, eighth := ring(t, 1), ring(t, 8)
	for k, kind := range model.Kinds() {
		for o, optimizer := range []string{"sgd", "adam", "adamw"} {
			if !hosttest.Sampled(3, k, o) {
				continue
			}
			tolerance := map[string]float64{"sgd": 0, "adam": 1e-3, "adamw": 1e-3}[optimizer]
			t.Run(kind+"/"+optimizer, func(t *testing.T) {
				flags := []string{"--defaults", "fixed", "--model", kind, "--optimizer", optimizer, "--weight-decay", "0.01", "--lr",
					"0.001", "--epochs", "5", "--hidden", "4", "--threads", "1"}
				want, _ := trainInto(t, whole, flags...)
				got, _ := trainInto(t, eighth, append(flags, "--input-scale", "8")...)
				for i, e := range got.Epochs {
					if w := want.Epochs[i].Loss; math.Abs(e.Loss-w) > tolerance*w {
						t.Errorf("epoch %d: loss %v, want %v", e.Epoch, e.Loss, w)
					}
				}
			})
		}
	}
}

// The log and summary.json list the settings that a run chose for its graph, except given ones.
// A run with its config.toml has the same settings.
func TestChosenSettings(t *testing.T) {
	data := ring(t, 1000)
	told := func(r *runfolder.Run) string {
		text, _ := json.Marshal(r.Summary.Taken)
		return string(text)
	}
	r, out := trainInto(t, data, "--epochs", "1")
	if !strings.Contains(out, "--input-scale=780 (rows of features have norm 0.0051, and ") ||
		!strings.Contains(told(r), `"flag":"input-scale"`) {
		t.Errorf("%s\n%s", out, told(r))
	}
	again := filepath.Join(t.TempDir(), "again")
	must(t, "train", filepath.Join(r.Dir, "config.toml"), data, "--out", again)
	first, _ := os.ReadFile(filepath.Join(r.Dir, "model.safetensors"))
	if second, err := os.ReadFile(filepath.Join(again, "model.safetensors")); err != nil || !bytes.Equal(first, second) {
		t.Error("config.toml of the run trains another one")
	}
	for _, flags := range [][]string{{"--input-scale", "1"}, {"--defaults", "fixed"}, {"--recipe", "gcn-cora"}} {
		if r, out := trainInto(t, data, append(flags, "--epochs", "1")...); strings.Contains(out, "--input-scale ") ||
			strings.Contains(told(r), "input-scale") {
			t.Errorf("%q: %s\n%s", flags, out, told(r))
		}
	}
}

// A recipe's flags apply to a run, except flags that are given in any other way.
func TestRecipeFlags(t *testing.T) {
	data := ring(t, 1)
	t.Setenv("SIAFU_DROPOUT", "0.1")
	r, out := trainInto(t, data, "--recipe", "gat-cora", "--heads", "2", "--epochs=2")
	for _, want := range []string{"model = \"gat\"", "heads = 2", "hidden = 8", "weight-decay-on = \"all\"",
		"epochs = 2", "dropout = 0.1"} {
		if !strings.Contains(r.Config, "\n"+want) && !strings.HasPrefix(r.Config, want) {
			t.Errorf("config.toml lacks %s", want)
		}
	}
	want := []string{"--heads=2 (8)", "--dropout=0.1 (0.6)", "--epochs=2 (100000)"}
	if !slices.Equal(r.Summary.Changed, want) || !strings.Contains(out, "recipe name=gat-cora published 83.0") ||
		!strings.Contains(out, "recipe changed --heads=2 (8)") {
		t.Errorf("changed %q\n%s", r.Summary.Changed, out)
	}
	if bad := siafu("train", data, "--recipe", "gat-coral"); bad.code != 64 || !strings.Contains(bad.err, "gat-cora") {
		t.Errorf("exit %d %s", bad.code, bad.err)
	}
	if plan := must(t, "plan", data, "--recipe", "gat-cora", "--json"); !strings.Contains(plan, `"model": "gat"`) {
		t.Error(plan)
	}
	list := must(t, "help", "recipes")
	page, err := os.ReadFile("docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range config.Recipes() {
		row := fmt.Sprintf("| `%s` | %s | %s |", r.Name, r.Published, r.Ours)
		if !strings.Contains(list, r.Name+"\n") || !strings.Contains(string(page), row) {
			t.Errorf("help recipes or docs/recipes.md lacks %s", row)
		}
	}
}
