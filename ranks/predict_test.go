package ranks

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/decodertest"
	"siafu/graph/fault"
	"siafu/graph/npy"
	"siafu/graph/partition"
	"siafu/ranks/predictions"
	"siafu/ranks/safetensors"
)

// predict runs a prediction and returns its folder.
func predict(t *testing.T, runDir, data string, ranks int) string {
	t.Helper()
	return predictParts(t, runDir, data, ranks, 0)
}

func predictParts(t *testing.T, runDir, data string, ranks, parts int) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "predictions")
	c := PredictConfig{Ranks: ranks, Parts: parts, Out: out, Embeddings: true, CSV: true, StallWarn: "1m", StallAbort: "1m"}
	if err := Predict(context.Background(), c, runDir, data, IO{Out: io.Discard, Err: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	return out
}

// Predictions of a saved model reach the accuracy that its run reports, come
// in the user's own ids, and do not depend on the number of ranks or on the
// order in which ranks number their vertices.
func TestPredict(t *testing.T) {
	content := smallGraph(true, false, 4)
	words := []byte("abcdefghijklmnopqr")
	offsets := make([]int64, len(words)+1)
	for v := range words {
		offsets[v+1] = int64(v + 1)
		content.Split[v] = uint8(1 + v%3)
	}
	content.IDs = &graph.IDs{Offsets: offsets, Text: words}
	content.ClassNames = []string{"red", "green", "blue"}
	data := write(t, content)
	c := quick(t)
	c.Epochs = 30
	r := train(t, c, data)

	one := predict(t, c.Out, data, 1)
	hits, tests := 0, 0
	for v, row := range readCSV(t, filepath.Join(one, predictions.CSVFile)) {
		if row[0] != string(words[v]) || row[2] != content.ClassNames[content.Labels[v]] {
			t.Errorf("row %d is %v", v, row)
		}
		if row[1] == "test" {
			tests++
			if row[2] == row[3] {
				hits++
			}
		}
	}
	if got := float64(hits) / float64(tests); math.Abs(got-r.Summary.TestAccAtBestVal) > 1e-9 {
		t.Errorf("predictions hit %.4f of the test vertices, the run reports %.4f", got, r.Summary.TestAccAtBestVal)
	}
	samePredictions(t, one, predict(t, c.Out, data, 4))
	for _, order := range []string{"lp", "rcm"} {
		for _, ranks := range []int{1, 4} {
			if _, err := partition.Run(data, partition.Options{Parts: ranks, Order: order}); err != nil {
				t.Fatal(err)
			}
			samePredictions(t, one, predict(t, c.Out, data, ranks))
		}
	}
}

// samePredictions compares two folders: classes and ids to the byte,
// probabilities and embeddings to the last digits, because four ranks add in
// another order than one.
func samePredictions(t *testing.T, one, four string) {
	t.Helper()
	for _, name := range []string{predictions.ClassFile, predictions.IDFile} {
		a, errA := os.ReadFile(filepath.Join(one, name))
		b, errB := os.ReadFile(filepath.Join(four, name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs between one rank and four: %v %v", name, errA, errB)
		}
	}
	for name, cols := range map[string]int{predictions.ProbabilityFile: 3, predictions.EmbeddingFile: 16} {
		a, b := readFloats(t, filepath.Join(one, name), cols), readFloats(t, filepath.Join(four, name), cols)
		for i := range a {
			if math.Abs(float64(a[i]-b[i])) > 1e-5 {
				t.Errorf("%s: value %d is %v with one rank, %v with four", name, i, a[i], b[i])
			}
		}
	}
	left, err := filepath.Glob(filepath.Join(four, "*.tmp*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// Parts predict what as many ranks predict, byte by byte, on any number of ranks,
// and fewer parts than ranks are refused.
func TestPredictParts(t *testing.T) {
	data := generated(t, true)
	for _, kind := range []string{"gcn", "gat", "appnp"} {
		c := quick(t)
		c.Model, c.Epochs = kind, 3
		if kind == "gat" {
			c.Residual, c.Layers = "initial", 4
		}
		train(t, c, data)
		want := predict(t, c.Out, data, 5)
		for ranks := 1; ranks <= 5; ranks++ {
			sameFiles(t, want, predictParts(t, c.Out, data, ranks, 5))
		}
		p := PredictConfig{Ranks: 3, Parts: 2, Out: filepath.Join(t.TempDir(), "none"), StallWarn: "1m", StallAbort: "1m"}
		err := Predict(context.Background(), p, c.Out, data, IO{Out: io.Discard, Err: io.Discard})
		if fault.KindOf(err) != fault.Usage || !strings.Contains(fmt.Sprint(err), "--parts=2 for 3 graph ranks") {
			t.Errorf("2 parts on 3 ranks: %v", err)
		}
	}
}

// sameFiles compares the files of two predictions byte by byte.
func sameFiles(t *testing.T, one, other string) {
	t.Helper()
	for _, name := range []string{
		predictions.ClassFile, predictions.ProbabilityFile, predictions.EmbeddingFile, predictions.IDFile, predictions.CSVFile,
	} {
		a, errA := os.ReadFile(filepath.Join(one, name))
		b, errB := os.ReadFile(filepath.Join(other, name))
		if errA != nil || errB != nil || len(a) == 0 || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v %v", name, errA, errB)
		}
	}
}

func readCSV(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

func readFloats(t *testing.T, path string, cols int) []float32 {
	t.Helper()
	a, err := npy.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Shape) != 2 || a.Shape[1] != cols {
		t.Fatalf("%s has shape %v", path, a.Shape)
	}
	x, err := a.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestPredictRefuses(t *testing.T) {
	data := write(t, smallGraph(false, false, 1))
	c := quick(t)
	c.Epochs = 1
	train(t, c, data)
	other := generated(t, false)
	p := PredictConfig{Out: filepath.Join(t.TempDir(), "out"), StallWarn: "1m", StallAbort: "1m"}
	if err := Predict(context.Background(), p, c.Out, other, IO{Out: io.Discard, Err: io.Discard}); fault.KindOf(err) != fault.Data {
		t.Errorf("a model of other dimensions: %v", err)
	}
	p.Weights = filepath.Join(t.TempDir(), "absent.safetensors")
	if err := Predict(context.Background(), p, c.Out, data, IO{Out: io.Discard, Err: io.Discard}); fault.KindOf(err) != fault.Missing {
		t.Errorf("weights that are not there: %v", err)
	}
	if _, err := os.Stat(p.Out); !os.IsNotExist(err) {
		t.Errorf("a failed prediction left %s: %v", p.Out, err)
	}
}

// Widths and heads that only the metadata claims are refused before anybody
// takes memory for them.
func TestPredictClaims(t *testing.T) {
	data, c := write(t, smallGraph(true, false, 4)), quick(t)
	r := train(t, c, data)
	list, honest, err := safetensors.Read(r.Model)
	if err != nil {
		t.Fatal(err)
	}
	for _, claim := range []map[string]string{
		{"dims": "[5,4000000000,3]"}, {"dims": "[5,4611686018427387904,3]"}, {"dims": "[5,2000000000,2000000000,3]"},
		{"model": "gat", "dims": "[5,4000000000,3]", "heads": "[4000000000,1]"},
	} {
		t.Run(claim["dims"], func(t *testing.T) {
			md := maps.Clone(honest)
			maps.Copy(md, claim)
			path := filepath.Join(t.TempDir(), "model.safetensors")
			if err := safetensors.Write(path, list, md); err != nil {
				t.Fatal(err)
			}
			decodertest.Bounded(t, 4096, func() {
				p := PredictConfig{Ranks: 2, Weights: path, Out: t.TempDir(), StallWarn: "1m", StallAbort: "1m"}
				err = Predict(context.Background(), p, c.Out, data, IO{Out: io.Discard, Err: os.Stderr})
			})
			if fault.KindOf(err) != fault.Data || !strings.Contains(fmt.Sprint(err), path) {
				t.Errorf("%v", err)
			}
		})
	}
}
