package bench

import (
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph/generate"
	"siafu/internal/testkit/functiontest"
	"siafu/ranks/config"
)

// Both tables have all lines, and functions ran the work of theirs.
func TestLambdaTables(t *testing.T) {
	data := filepath.Join(t.TempDir(), "g")
	if _, err := generate.Write(data, generate.Options{Vertices: 300, Edges: 1500, Features: 8, Classes: 3, Seed: 1}, false); err != nil {
		t.Fatal(err)
	}
	o := LambdaOptions{Data: data, Turns: 1, Config: config.Defaults()}
	o.Config.Epochs, o.Config.Intervals, o.Config.LambdaFunction = 2, 2, functiontest.Build(t)
	var out strings.Builder
	if err := o.Run(t.Context(), &out); err == nil || !strings.Contains(err.Error(), "--instance") {
		t.Errorf("%v", err)
	}
	o.Config.Instance = "1"
	if err := o.Run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 6+1+9 {
		t.Fatalf("%d lines:\n%s", len(lines), &out)
	}
	for _, line := range lines {
		cells := strings.Fields(line)
		if len(cells) < 10 || strings.Contains(line, "s/epoch") {
			continue
		}
		invocations, dollars := cells[len(cells)-7], cells[len(cells)-3]
		if idle := strings.Contains(line, "CPU"); idle != (invocations == "0") || idle != (dollars == "0") {
			t.Errorf("%s", line)
		}
	}
}
