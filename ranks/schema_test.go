package ranks

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
)

// TestImportOfTheModel: predict, train --init and --resume refuse a dataset whose import
// changed its edges or features, and name the flag to give. Training on the same dataset
// and datasets without a record are accepted.
func TestImportOfTheModel(t *testing.T) {
	t.Parallel()
	imported := func(symmetrised, normalized, recorded bool) string {
		c := smallGraph(!symmetrised, false, 4)
		for i, x := range c.Features.Dense {
			c.Features.Dense[i] = x*x + 1 // rows that can be divided by their sums
		}
		c.Normalize = normalized
		if recorded {
			c.EdgeImport = &graph.EdgeImport{Symmetrised: symmetrised}
		}
		return write(t, c)
	}
	data := imported(true, false, true)
	c := saving(t, "1e")
	c.Epochs = 2
	train(t, c, data)
	attempt := func(change func(*Config)) func(string) error {
		return func(data string) error {
			other := c
			change(&other)
			return Train(context.Background(), other, data, IO{Out: io.Discard, Err: io.Discard})
		}
	}
	for name, use := range map[string]func(data string) error{
		"predict": func(data string) error {
			p := PredictConfig{Out: filepath.Join(t.TempDir(), "out"), StallWarn: "1m", StallAbort: "1m"}
			return Predict(context.Background(), p, c.Out, data, IO{Out: io.Discard, Err: io.Discard})
		},
		"init":   attempt(func(o *Config) { o.Init, o.Out = modelFile(c.Out), filepath.Join(t.TempDir(), "run") }),
		"resume": attempt(func(o *Config) { o.Resume, o.Force, o.Epochs = "auto", false, 3 }),
	} {
		for path, want := range map[string]string{
			imported(false, false, true):  "import the dataset with --symmetrise",
			imported(false, false, false): "import the dataset with --symmetrise",
			imported(true, true, true):    "import the dataset without --normalize-features",
		} {
			if err := use(path); fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
		if err := use(data); err != nil {
			t.Errorf("%s on the training data: %v", name, err)
		}
		if err := use(imported(true, false, false)); err != nil {
			t.Errorf("%s on a dataset without a record: %v", name, err)
		}
	}
}

// TestDamagedSchema: a schema with columns that an import could not use is refused when it is read.
func TestDamagedSchema(t *testing.T) {
	m := &loadedModel{Dims: []int{1, 4, 1}}
	for text, want := range map[string]string{
		`{"task":"regression","table":{"columns":[{"name":"a","kind":"number","first":3,"width":1,"scale":1}]}}`: `column "a"`,
		`{"task":"regression","table":{"columns":[{"name":"a","kind":"number","width":1,"scale":1},{"name":"b","kind":"hash","first":1,"width":64}]}}`: "its columns " +
			"have 65 features, but its network has 1",
		`{"task":"regression","target_scaling":[{"mean":1,"scale":0}]}`: "scales the targets",
		`{"task":"regression","target_scaling":[{"mean":1,"scale":2},{"mean":1,"scale":2}]}`: "does not " +
			"fit 1 columns",
		`{"task":"regression","target_scaling":[{"mean":1,"scale":2}],"table":{"columns":[{"name":"a","kind":"number","width":1,"scale":1}]}}`: "",
	} {
		_, err := schemaOf("model.safetensors", map[string]string{schemaKey: text}, m)
		if want == "" && err != nil || want != "" && (fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestWithoutEdges: a training on a graph without edges warns, unless the network uses none.
func TestWithoutEdges(t *testing.T) {
	t.Parallel()
	content := smallGraph(false, false, 4)
	content.Edges = graph.EdgePairs{}
	data := write(t, content)
	for model, warns := range map[string]bool{"gcn": true, "mlp": false} {
		c, errors := quick(t), new(strings.Builder)
		c.Model, c.Epochs = model, 1
		if err := Train(context.Background(), c, data, IO{Out: io.Discard, Err: errors}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(errors.String(), "has no edges, so that vertices learn nothing from each other") != warns {
			t.Errorf("%s: %q", model, errors)
		}
	}
}
