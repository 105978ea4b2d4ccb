package ranks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/ranks/config"
	"siafu/ranks/forecast"
	"siafu/ranks/predictions"
)

// predictOn predicts on a host's GPUs, and then calls after.
func predictOn(p PredictConfig, dir, data string, place func(*member), after func(*prepared)) error {
	out := IO{Out: io.Discard, Err: os.Stderr}
	p.Weights = modelFile(dir)
	return runMembers(p.config(), data, out, place, func(r *member) error {
		ready, err := r.predict(p, memoryGate{"predict", p.Force, out.Err})
		if err == nil {
			after(ready)
		}
		return err
	})
}

// On GPUs, with graph work on GPUs or processors, predictions equal the processor's: the same
// classes, and numbers within the tolerance of losses. Their memory is estimated.
func TestPredictionsOnGPUs(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, kind := range []string{"gcn", "gat", "sage"} {
		c := quick(t)
		c.Model, c.Epochs, c.Hidden = kind, 5, 8
		train(t, c, data)
		want := predict(t, c.Out, data, 1)
		for _, ranks := range []int{1, 3} {
			for _, graphWork := range []string{"", config.GraphCPU} {
				t.Run(fmt.Sprint(kind, " ranks=", ranks, " ", graphWork), func(t *testing.T) {
					p := PredictConfig{Ranks: ranks, Tensor: config.TensorCUDA, GraphWork: graphWork,
						Out: filepath.Join(t.TempDir(), "gpus"), Embeddings: true, CSV: true}
					taken := make([]int64, ranks)
					err := predictOn(p, c.Out, data,
						func(r *member) { r.gpus = weighed(racked(1, 0), &taken[r.world.Rank()]) }, func(r *prepared) {
							f, err := forecast.OfPrediction(r.cfg, r.net, r.meta, r.Graph)
							if err != nil {
								t.Error(err)
								return
							}
							compareGPU(t, r.joined, f, taken[r.rank])
						})
					if err != nil {
						t.Fatal(err)
					}
					alikePredictions(t, want, p.Out)
				})
			}
		}
	}
}

// alikePredictions compares a prediction with the processor's.
func alikePredictions(t *testing.T, want, got string) {
	t.Helper()
	for _, name := range []string{predictions.ClassFile, predictions.IDFile} {
		a, errA := os.ReadFile(filepath.Join(want, name))
		b, errB := os.ReadFile(filepath.Join(got, name))
		if err := errors.Join(errA, errB); err != nil || len(a) == 0 || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v", name, err)
		}
	}
	for name, cols := range map[string]int{predictions.ProbabilityFile: 4, predictions.EmbeddingFile: 8} {
		a, b := readFloats(t, filepath.Join(want, name), cols), readFloats(t, filepath.Join(got, name), cols)
		for i := range a {
			if d := a[i] - b[i]; d > 1e-5 || d < -1e-5 {
				t.Fatalf("%s: value %d is %v, want %v", name, i, b[i], a[i])
			}
		}
	}
	if a, b := readCSV(t, filepath.Join(want, predictions.CSVFile)),
		readCSV(t, filepath.Join(got, predictions.CSVFile)); len(a) == 0 || len(a) != len(b) {
		t.Errorf("%d rows of CSV, want %d", len(b), len(a))
	}
}

// A prediction that does not fit into a GPU is refused with its size. One with only graph work
// on GPUs is refused as unsupported. Nothing is written.
func TestPredictionsOnGPUsRefused(t *testing.T) {
	t.Parallel()
	data, c := generated(t, true), quick(t)
	c.Epochs = 1
	train(t, c, data)
	p := PredictConfig{Ranks: 1, Tensor: config.TensorCUDA, Out: filepath.Join(t.TempDir(), "gpus"), StallWarn: "1m", StallAbort: "1m"}
	k := racked(1, 20<<10)
	err := predictOn(p, c.Out, data, k.with, func(*prepared) {})
	if fault.ExitCode(err) != 78 || !strings.Contains(err.Error(), "predict anyway with --force-memory") || k.made[0].memory {
		t.Errorf("exit %d, %v, memory taken: %t", fault.ExitCode(err), err, k.made[0].memory)
	}
	p.Tensor, p.GraphWork = "cpu", config.GraphCUDA
	if err := Predict(t.Context(), p, c.Out, data, IO{Out: io.Discard, Err: io.Discard}); fault.KindOf(err) != fault.Usage {
		t.Errorf("graph work alone: %v", err)
	}
	if _, err := os.Stat(p.Out); err == nil {
		t.Error("something was written")
	}
}
