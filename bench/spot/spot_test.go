package spot

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/fault"
)

// Every part has its rows, equal seeds give equal pages, and the page has the tables and charts.
func TestParts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spot.html")
	print := func(seed uint64) string {
		var out bytes.Buffer
		if err := (Options{Runs: 1, Zones: 3, Seed: seed, HTML: file}).Run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		_, parts, _ := strings.Cut(out.String(), "\n\n") // without the machine and its load
		return strings.Join(strings.Fields(parts), " ")
	}
	text, again, other := print(1), print(1), print(2)
	for _, want := range []string{"EC2 64", "(127)", "bert 33 %", "(60.59)", "(709.83)", "(26.24)", "checkpoint", "50 %",
		"vgg 24.0", "(hangs)", "siafu-copies"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if text != again || text == other {
		t.Error("pages do not depend on the seed alone")
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"table3.3: BERT until completion", "throughput of bert", "value by losses", "machine: ",
		"command: siafu bench", "numbers of the paper: in parentheses", "Whole"} {
		if strings.Contains(string(page), want) != (want != "Whole") {
			t.Errorf("page and %q", want)
		}
	}
}

// Invalid options are refused.
func TestBadOptions(t *testing.T) {
	for name, o := range map[string]Options{"--runs=0": {Zones: 3}, "--zones=0": {Runs: 1},
		"table9": {Runs: 1, Zones: 1, Only: []string{"table9"}}} {
		if _, err := o.Book(); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
