package commands

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/bench/trials"
	"siafu/graph/generate"
	"siafu/internal/fault"
)

// unable is a runner on a machine without any backend.
type unable struct{}

func (unable) Run(context.Context, trials.Trial, string) (*trials.Result, error) {
	return nil, fault.New(fault.Missing, op, "", "nothing runs here")
}

// dataset returns a small graph.
func dataset(t *testing.T) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "g")
	if _, err := generate.Write(data, generate.Options{Name: "g", Vertices: 100, Edges: 400, Seed: 1}, false); err != nil {
		t.Fatal(err)
	}
	return data
}

// One page has the parts of all papers, also if none can be made, including all parts of
// Dorylus.
func TestAll(t *testing.T) {
	o := allOptions{Data: []string{"amazon=" + dataset(t)}, Seeds: 1, Hours: 1, Scale: 0.0005, Work: t.TempDir()}
	books, err := o.Books()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range books {
		b.Runner = unable{}
	}
	var out strings.Builder
	if err := trials.Print(t.Context(), &out, op, "machine: m", o.HTML, books...); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(o.Work, "all.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Dorylus, table1:", "Dorylus, table5:", "Dorylus, figure10b:", "NeutronStar, process:",
		"NeutronStar, hosts:", "DIGEST, table1:", "DIGEST, links:", "SAT, table2:", "not run: bench all: nothing runs here", "machine: m"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Count(string(page), "nothing runs here") < 15 {
		t.Error(out.String())
	}
}

func TestBadOptions(t *testing.T) {
	for _, o := range []allOptions{{Scale: -1}, {Hours: -1}, {Seeds: 1, Data: []string{"/nowhere"}}, {Seeds: 0, Scale: 0.001}} {
		o.Work = t.TempDir()
		if _, err := o.Books(); err == nil || fault.KindOf(err) == fault.Runtime {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
