package ranks

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"siafu/graph"
	"siafu/graph/generate"
	"siafu/graph/importers"
	"siafu/graph/partition"
	"siafu/internal/safetensors"
	"siafu/internal/testkit/realdata"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/engine"
	"siafu/ranks/runfolder"
)

// quick returns a configuration for tests: the defaults, quiet, with a folder of the test.
func quick(t testing.TB) Config {
	c := config.Defaults()
	c.Quiet, c.Force = true, true
	c.Out = filepath.Join(t.TempDir(), "run")
	return c
}

// trained is the output of a run.
type trained struct {
	*runfolder.Run
	model []byte
}

func train(t testing.TB, c Config, data string) trained {
	t.Helper()
	if err := Train(context.Background(), c, data, IO{Out: io.Discard, Err: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	return readRun(t, c.Out)
}

func readRun(t testing.TB, dir string) trained {
	t.Helper()
	r, err := runfolder.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(r.Model)
	if err != nil {
		t.Fatal(err)
	}
	return trained{r, b}
}

// losses returns the losses of every epoch, and at last the loss of the final weights.
func (r trained) losses() []float64 {
	var out []float64
	for _, e := range r.Epochs {
		out = append(out, e.Loss)
	}
	return append(out, r.Summary.FinalLoss)
}

// sameLosses compares two runs epoch by epoch.
func sameLosses(t testing.TB, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if why := differs(got, want, tolerance); why != "" {
		t.Fatalf("%s: %s", what, why)
	}
}

// differs describes the first epoch whose losses differ by more than a tolerance; "": there is none.
func differs(got, want []float64, tolerance float64) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d losses, want %d", len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(got[i]-want[i]) / max(math.Abs(want[i]), 1e-3); !(d <= tolerance) {
			return fmt.Sprintf("epoch %d has loss %.9g, want %.9g (relative difference %.2g)", i+1, got[i], want[i], d)
		}
	}
	return ""
}

// generated returns a small generated graph.
func generated(t testing.TB, directed bool) string { return generatedOf(t, 400, 3000, directed) }

// generatedSmall returns a graph for the PTX interpreter, which runs a kernel some thousand times
// longer than the processor, and for runs that compute clusters, which takes longer than training.
func generatedSmall(t testing.TB, directed bool) string {
	return generatedOf(t, 150, 1100, directed)
}

func generatedOf(t testing.TB, vertices, edges int64, directed bool) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "planted")
	_, err := generate.Write(dir, generate.Options{
		Vertices: vertices, Edges: edges, Features: 12, Classes: 4, Seed: 5, Directed: directed,
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// real imports a real graph with row-normalised features, or skips the test.
func real(t testing.TB, name string) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), name)
	if _, err := importers.Import("raw", importers.Options{Src: realdata.Dir(t, name), Dst: dst, Normalize: true}); err != nil {
		t.Fatal(err)
	}
	return dst
}

// write writes a content as a dataset folder.
func write(t testing.TB, c graph.Content) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dataset")
	if _, err := graph.Write(dir, c, false); err != nil {
		t.Fatal(err)
	}
	return dir
}

// partitionBy makes parts/P by a method, or with the given owners.
func partitionBy(t testing.TB, data, method string, parts int, owner ...int) {
	t.Helper()
	if len(owner) > 0 {
		path := filepath.Join(t.TempDir(), "owners")
		text := ""
		for _, q := range owner {
			text += fmt.Sprintln(q)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		method = "file:" + path
	}
	if _, err := partition.Run(data, partition.Options{Method: method, Parts: parts, Seed: 1}); err != nil {
		t.Fatal(err)
	}
}

// weightsFile writes a flat vector of weights as a file for --init.
func weightsFile(t testing.TB, s model.Spec, flat []float32) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "init.safetensors")
	if err := safetensors.Write(path, engine.Tensors(s, flat), nil); err != nil {
		t.Fatal(err)
	}
	return path
}

// weights returns a run's model as one flat vector.
func (r trained) weights(t testing.TB, s model.Spec) []float32 {
	t.Helper()
	flat := make([]float32, s.NumWeights())
	list, _, err := readWeights(r.Model, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	fillWeights(s, list, flat)
	return flat
}

// randomContent returns a graph with independent random edges, features and labels. A third of the
// vertices is in each split.
func randomContent(n, classes int) graph.Content {
	const dim = 8
	rng := rand.New(rand.NewPCG(7, 7))
	c := graph.Content{
		Name: "random", Vertices: int64(n), Symmetrise: true, Classes: classes,
		Features: graph.Features{Rows: n, Dim: dim, Dense: make([]float32, n*dim)},
		Labels:   make([]int32, n), Split: make([]uint8, n),
	}
	var pairs graph.EdgePairs
	for v := range n {
		pairs = append(pairs, uint32(v), uint32((v+1+rng.IntN(n-1))%n))
		c.Labels[v], c.Split[v] = rng.Int32N(int32(classes)), uint8(1+v%3)
	}
	for i := range c.Features.Dense {
		c.Features.Dense[i] = float32(rng.NormFloat64())
	}
	c.Edges = pairs
	return c
}
