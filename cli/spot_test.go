package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A trace is generated, converted and simulated. A run gives ranks and epoch time.
func TestSpot(t *testing.T) {
	dir := t.TempDir()
	events, counts, runDir := filepath.Join(dir, "e.csv"), filepath.Join(dir, "c.csv"), filepath.Join(dir, "run")
	text := must(t, "spot", "trace", "--machines", "8", "--hours", "12", "--rate", "0.5", "--zones", "2", "--seed", "3", "-o", events)
	if again := must(t, "spot", "trace", events); !strings.Contains(text, "zones       2") || !strings.Contains(again, "zones       2") {
		t.Errorf("%s\n%s", text, again)
	}
	must(t, "spot", "trace", events, "-o", counts, "--format", "instances")
	if out := must(t, "spot", "trace", counts); !strings.Contains(out, "zones       unknown") {
		t.Error(out)
	}
	must(t, "train", small(t), "--epochs", "3", "--ranks", "2", "--servers", "0", "--out", runDir, "--quiet")
	out := must(t, "spot", "simulate", events, "--run", runDir, "--instance", "p3.2xlarge", "--json", "--systems", "bamboo,siafu-copies")
	var got struct {
		Inputs struct {
			Depth, Replicas  int
			Iteration, Price float64
		}
		Runs []struct{ System string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Inputs.Depth != 1 ||
		got.Inputs.Replicas != 2 || got.Inputs.Iteration <= 0 ||
		got.Inputs.Price != 0.918 || len(got.Runs) != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}

// Bad input ends with the exit code of its kind, and names flag or line, value and remedy.
func TestSpotRefusals(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(bad, []byte("0,3\n7,many\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]struct {
		code int
		text string
	}{
		"trace " + bad:                        {65, `line 2: "7,many": "many" is not a number of machines`},
		"simulate " + bad:                     {65, "line 2"},
		"trace " + bad + ".missing":           {66, "check the path"},
		"trace --rate=-1":                     {64, "--rate=-1"},
		"trace --zones 0":                     {64, "--zones=0; set 1 to 100"},
		"simulate --rate 2":                   {64, "--rate=2"},
		"simulate --depth 0":                  {64, "--depth=0; set 1"},
		"simulate --iteration NaN":            {64, "--iteration=NaN"},
		"simulate --instance c5n.large":       {64, "p3.2xlarge"},
		"simulate --systems magic":            {64, "siafu-copies"},
		"simulate --network gpt5":             {64, "bert"},
		"simulate --run " + filepath.Dir(bad): {66, ""},
		"simulate --inputs " + bad:            {65, "write one JSON object"},
	} {
		r := siafu(append([]string{"spot"}, strings.Fields(line)...)...)
		if r.code != want.code || !strings.Contains(r.err, want.text) {
			t.Errorf("spot %s: exit %d, expected %d with %q: %s", line, r.code, want.code, want.text, r.err)
		}
	}
}
