package generate

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
)

// TestRelational compares small graphs with their presets: sizes, kinds, relations, degrees, features and labels.
func TestRelational(t *testing.T) {
	for _, o := range []Options{{Like: "ogbn-mag", Scale: 0.02, Seed: 1},
		{Like: "ogbn-mag", Scale: 0.01, Seed: 2, Features: 16, IDFeatures: 100},
		{Like: "mag240m", Scale: 0.0002, Seed: 3, Features: 24}} {
		dir := filepath.Join(t.TempDir(), "g")
		if _, err := Write(dir, o, false); err != nil {
			t.Fatal(err)
		}
		ds, err := graph.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer ds.Close()
		m, p := ds.Meta, findRelational(o.Like)
		of := m.Relations
		if !m.Synthetic || m.Classes != p.classes || m.FeatureKind != graph.SparseFeatures || len(of.Relations) != 2*len(p.relations) {
			t.Errorf("meta is %+v", m)
		}
		for k, kind := range of.Kinds {
			if want := int64(math.Round(float64(p.kinds[k].Vertices) * o.Scale)); kind.Vertices != want || kind.Name != p.kinds[k].Name {
				t.Errorf("kind %+v, want %d vertices", kind, want)
			}
			if want := int64(1); k > 0 {
				if most := max(o.IDFeatures, 0); kind.Vertices <= most || most == 0 && kind.Vertices <= maxIDFeatures {
					want = kind.Vertices
				}
				if int64(kind.Features) != want {
					t.Errorf("kind %+v has %d columns, want %d", kind, kind.Features, want)
				}
			}
		}
		degrees := make([][]float64, len(of.Relations)) // in-degrees
		for r, x := range of.Relations {
			degrees[r] = make([]float64, of.Kinds[x.To].Vertices)
			preset := p.relations[r%len(p.relations)]
			if want := float64(preset.edges) * o.Scale; math.Abs(float64(x.Edges)/want-1) > 0.02 {
				t.Errorf("%s has %d edges, want %.0f", of.Label(r), x.Edges, want)
			}
			if back := r >= len(p.relations); x.Reverse != back || back && (x.Name != "rev_"+preset.name || x.From != preset.to) {
				t.Errorf("relation %d is %+v", r, x)
			}
		}
		same, all := make([]float64, len(of.Relations)), make([]float64, len(of.Relations))
		for v := range ds.In.Rows() {
			for i := ds.In.Offsets[v]; i < ds.In.Offsets[v+1]; i++ {
				u, r := ds.In.Cols[i], ds.Relations[i]
				degrees[r][int64(v)-of.First(of.Relations[r].To)]++
				if a, b := ds.Labels[u], ds.Labels[v]; a >= 0 && b >= 0 {
					all[r]++
					if a == b {
						same[r]++
					}
				}
			}
		}
		cites := slices.IndexFunc(p.relations, func(x relationPreset) bool { return x.name == "cites" })
		if o.Like == "ogbn-mag" {
			pair := (1-p.strays)*(1-p.strays) + p.strays*p.strays/float64(p.classes-1) // both labels are those of the blocks
			if h, want := same[cites]/all[cites], p.relations[cites].affinity*pair; math.Abs(h-want) > 0.02 {
				t.Errorf("%.3f of the citations are within a class, want %.3f", h, want)
			}
		}
		for r, d := range degrees[:len(p.relations)] {
			slices.Sort(d)
			t.Logf("%s: largest in-degrees %g, median %g", of.Label(r), d[len(d)-3:], d[len(d)/2])
			if mean := float64(of.Relations[r].Edges) / float64(len(d)); len(d) > 1000 && d[len(d)-1] < 4*mean {
				t.Errorf("%s: the largest in-degree is %g, the mean %.1f", of.Label(r), d[len(d)-1], mean)
			}
		}
		papers := of.Kinds[0].Vertices
		if labelled := float64(m.Train+m.Val+m.Test) / float64(papers); math.Abs(labelled-p.labelled) > 0.004 {
			t.Errorf("%.4f of the papers have labels, want %.4f", labelled, p.labelled)
		}
		if got := ds.IDs.At(int(of.First(1))); got != "0" {
			t.Errorf("the first author has id %s", got)
		}
		for v := range m.Vertices {
			if k := of.KindOf(v); k > 0 && ds.Labels[v] != graph.Unlabelled {
				t.Fatalf("vertex %d of kind %d has a label", v, k)
			}
		}
	}
}

// TestRelationalIsDeterministic: the number of threads and the memory do not change a relational graph.
func TestRelationalIsDeterministic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var first []byte
	for i, threads := range []int{1, 3} {
		runtime.GOMAXPROCS(threads)
		dir := filepath.Join(t.TempDir(), fmt.Sprint(i))
		if _, err := Write(dir, Options{Like: "ogbn-mag", Scale: 0.005, Classes: 40, Seed: 7, Memory: 1 + 100*i}, false); err != nil {
			t.Fatal(err)
		}
		meta, err := os.ReadFile(filepath.Join(dir, "meta.json")) // has the checksums of all files
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = meta
		} else if !bytes.Equal(first, meta) {
			t.Error("datasets differ")
		}
	}
}

func TestRelationalErrors(t *testing.T) {
	for want, o := range map[string]Options{
		"omit --vertices":        {Like: "ogbn-mag", Vertices: 5},
		"use --scale":            {Like: "mag240m", Directed: true},
		"cannot be sampled":      {Like: "ogbn-mag", Scale: 0.0005, Classes: 180, Homophily: 1},
		"classes 349, expected":  {Like: "ogbn-mag", Scale: 0.0005},
		"homophily 2, expected":  {Like: "ogbn-mag", Homophily: 2},
		"scale -1, expected":     {Like: "ogbn-mag", Scale: -1},
		"vertices 1217516660000": {Like: "mag240m", Scale: 10000},
	} {
		_, err := Write(filepath.Join(t.TempDir(), "g"), o, false)
		if kind := fault.KindOf(err); err == nil || !strings.Contains(err.Error(), want) || kind != fault.Config && kind != fault.Usage {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
