package bench

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/realdata"
	"siafu/internal/fault"
)

// Guessing uses only the classes of training vertices.
func TestGuessingLoss(t *testing.T) {
	const train, test = uint8(graph.SplitTrain), uint8(graph.SplitTest)
	dir := filepath.Join(t.TempDir(), "data")
	_, err := graph.Write(dir, graph.Content{
		Name: "six", Vertices: 6, Classes: 3,
		Edges:    graph.EdgePairs{0, 1},
		Features: graph.Features{Rows: 6, Dim: 1, Dense: make([]float32, 6)},
		Labels:   []int32{0, 0, 0, 1, 2, 2},
		Split:    []uint8{train, train, train, train, test, test},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	got, err := guessingLoss(dir)
	want := -0.75*math.Log(0.75) - 0.25*math.Log(0.25)
	if err != nil || math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// A line has a network's accuracy with each initialiser.
func TestInitializersOnCora(t *testing.T) {
	realdata.File(t, "cora.tar.zst")
	var table strings.Builder
	o := InitializersOptions{Data: realdata.Root(), Work: t.TempDir(), Graphs: []string{"cora"},
		Models: []string{"mlp"}, Initializers: []string{"he", "torch"}, Hidden: []int{16}, Seeds: 1}
	results, err := Initializers(context.Background(), o, &table)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 2 || strings.Count(table.String(), "\n") != 2 {
		t.Fatalf("%+v\n%s", results, table.String())
	}
	for i, r := range results {
		if r.Initializer != o.Initializers[i] || r.Mean < 0.45 || r.Mean > 0.65 || r.Std != 0 || r.Stuck != 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestInitializersRefuses(t *testing.T) {
	for name, o := range map[string]InitializersOptions{
		"initializer": {Models: []string{"gcn"}, Initializers: []string{"zeros"}, Seeds: 1},
		"model":       {Models: []string{"gnc"}, Initializers: []string{"he"}, Seeds: 1},
		"seeds":       {Models: []string{"gcn"}, Initializers: []string{"he"}},
	} {
		if _, err := Initializers(context.Background(), o, &strings.Builder{}); fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}
