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
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/internal/fault"
	"siafu/internal/npy"
	"siafu/internal/safetensors"
	"siafu/internal/testkit/decodertest"
	"siafu/ranks/predictions"
)

// predict runs a prediction and returns its folder.
func predict(t *testing.T, runDir, data string, ranks int) string {
	t.Helper()
	return predictParts(t, runDir, data, ranks, 0)
}

func predictParts(t *testing.T, runDir, data string, ranks, parts int) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "predictions")
	c := PredictConfig{Ranks: ranks, Parts: parts, Out: out, Embeddings: true, CSV: true, ByClass: true, Parquet: true,
		StallWarn: "1m", StallAbort: "1m"}
	if err := Predict(context.Background(), c, runDir, data, IO{Out: io.Discard, Err: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	return out
}

// Predictions of a saved model have the accuracy that its run reports, and use the user's ids.
// They do not depend on the number of ranks or on the ranks' numbering of vertices.
func TestPredict(t *testing.T) {
	t.Parallel()
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
	sameTables(t, filepath.Join(one, predictions.CSVFile), filepath.Join(one, predictions.ParquetFile),
		"id,split,label,prediction,probability,p_red,p_green,p_blue")
	for _, order := range []string{"lp", "rabbit"} {
		for _, ranks := range []int{1, 4} {
			if _, err := partition.Run(data, partition.Options{Parts: ranks, Order: order}); err != nil {
				t.Fatal(err)
			}
			samePredictions(t, one, predict(t, c.Out, data, ranks))
		}
	}
}

// sameTables compares the tables of a prediction: their columns, and every cell.
func sameTables(t *testing.T, text, columnar, columns string) {
	t.Helper()
	b, err := os.ReadFile(columnar)
	if err != nil {
		t.Fatal(err)
	}
	p, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range p.Root().Columns() {
		names = append(names, c.Name())
	}
	if strings.Join(names, ",") != columns {
		t.Errorf("columns %q, want %s", names, columns)
	}
	rows := make([]parquet.Row, 100)
	n, err := p.RowGroups()[0].Rows().ReadRows(rows)
	want := readCSV(t, text)
	if err != nil && err != io.EOF || n != len(want) {
		t.Fatalf("%d rows, %v; want %d", n, err, len(want))
	}
	for i, row := range rows[:n] {
		for c, v := range row {
			cell := v.String()
			switch {
			case v.IsNull():
				cell = ""
			case v.Kind() == parquet.Float:
				cell = fmt.Sprintf("%.4f", v.Float())
			}
			if cell != want[i][c] {
				t.Errorf("row %d column %s is %q, in CSV %q", i, names[c], cell, want[i][c])
			}
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

// Parts on any number of ranks predict the same bytes as one part per rank. Fewer parts than
// ranks are refused.
func TestPredictParts(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, kind := range []string{"gcn", "gat", "appnp"} {
		c := quick(t)
		c.Model, c.Epochs = kind, 3
		if kind == "gat" {
			c.Residual, c.Layers, c.Norm, c.Jumping = "initial", 4, "batch", "cat"
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

// A model predicts on a larger graph without labels, with the names of its classes and on any
// number of ranks. It can write only vertices unknown to training. Other features or classes
// are refused.
func TestPredictInductive(t *testing.T) {
	t.Parallel()
	content, c := smallGraph(true, false, 4), quick(t)
	content.ClassNames = []string{"red", "green", "blue"}
	train(t, c, write(t, content))
	schema, err := Schema(c.Out)
	if err != nil || !slices.Equal(schema.ClassNames, content.ClassNames) || schema.Classes != 3 {
		t.Fatalf("%v, schema %+v", err, schema)
	}

	larger := smallGraph(true, false, 4) // of 18 vertices
	n, dim := int(larger.Vertices), larger.Features.Dim
	larger.Name, larger.Vertices, larger.Features.Rows = "larger", int64(n+3), n+3
	larger.Features.Dense = append(slices.Clone(larger.Features.Dense), larger.Features.Dense[:3*dim]...)
	larger.Labels, larger.Split, larger.Classes = slices.Repeat([]int32{graph.Unlabelled}, n+3), make([]uint8, n+3), 0
	larger.IDs = &graph.IDs{Ints: []int64{}} // only the last are known
	for v := range n + 3 {
		larger.IDs.Ints = append(larger.IDs.Ints, int64((v+n)%(n+3)))
	}
	data := write(t, larger)
	whole := predict(t, c.Out, data, 1)
	samePredictions(t, whole, predict(t, c.Out, data, 4))
	want := readCSV(t, filepath.Join(whole, predictions.CSVFile))
	probabilities := readFloats(t, filepath.Join(whole, predictions.ProbabilityFile), 3)
	for _, ranks := range []int{1, 3} {
		p := PredictConfig{Ranks: ranks, New: true, CSV: true, Embeddings: true, StallWarn: "1m", StallAbort: "1m"}
		var said strings.Builder
		if err := Predict(context.Background(), p, c.Out, data, IO{Out: &said, Err: os.Stderr}); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(c.Out, "predictions-larger")
		got := readCSV(t, filepath.Join(dir, predictions.CSVFile))
		if len(got) != 3 || !slices.Contains(content.ClassNames, got[0][3]) ||
			!strings.Contains(said.String(), "vertices=21 new=3\nwrote predictions="+dir) {
			t.Fatalf("%d rows are new: %v; said %s", len(got), got, &said)
		}
		for i, row := range got {
			if !slices.Equal(row[:4], want[i][:4]) {
				t.Errorf("row %d is %v, of all %v", i, row, want[i])
			}
		}
		for i, x := range readFloats(t, filepath.Join(dir, predictions.ProbabilityFile), 3) {
			if math.Abs(float64(x-probabilities[i])) > 1e-5 {
				t.Errorf("probability %d is %v, of all %v", i, x, probabilities[i])
			}
		}
		readFloats(t, filepath.Join(dir, predictions.EmbeddingFile), 16)
	}

	for says, harm := range map[string]func(c *graph.Content){
		`class 1 is "blue", the model's is "green"`: func(c *graph.Content) { c.ClassNames = []string{"red", "blue", "green"} },
		"4 classes, the model was trained on 3":     func(c *graph.Content) { c.Classes, c.ClassNames = 4, nil },
		"divided by their sums": func(c *graph.Content) {
			c.Normalize, c.Features.Dense = true,
				slices.Repeat([]float32{1}, n*dim)
		},
		"it has 1 features": func(c *graph.Content) {
			c.Features = graph.Features{Rows: n,
				Dim: 1, Dense: make([]float32, n)}
		},
	} {
		other := smallGraph(true, false, 4)
		harm(&other)
		p := PredictConfig{Out: filepath.Join(t.TempDir(), "out"), StallWarn: "1m", StallAbort: "1m"}
		err := Predict(context.Background(), p, c.Out, write(t, other), IO{Out: io.Discard, Err: io.Discard})
		if fault.KindOf(err) != fault.Data || !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func TestPredictRefuses(t *testing.T) {
	t.Parallel()
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

// Widths and heads that are only in the metadata are refused before allocation.
func TestPredictClaims(t *testing.T) {
	t.Parallel()
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
