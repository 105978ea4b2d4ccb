package ranks

import (
	"context"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/internal/npy"
	"siafu/ranks/predictions"
	"siafu/ranks/runfolder"
)

// predictedNumbers returns the values and the logits that a run predicts.
func predictedNumbers(t *testing.T, run, data string, ranks int) (values, logits []float32) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "predictions")
	c := PredictConfig{Ranks: ranks, Out: dir, Logits: true, CSV: true, StallWarn: "1m", StallAbort: "1m"}
	if err := Predict(context.Background(), c, run, data, IO{Out: io.Discard, Err: io.Discard}); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]*[]float32{predictions.ClassFile: &values, predictions.LogitFile: &logits} {
		file, err := npy.ReadFile(filepath.Join(dir, name))
		if err == nil {
			*to, err = file.Float32s()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return values, logits
}

// Mean and scale of the targets that the tests scale.
const targetMean, targetScale = 300_000, 20_000

// sines returns a small regression with targets from -1 to 1.
func sines() graph.Content {
	c := smallGraph(false, false, 4)
	c.Task, c.Classes, c.Labels = graph.Regression, 1, nil
	for v := range c.Vertices {
		c.Targets = append(c.Targets, float32(math.Sin(float64(v))))
		c.Split[v] = uint8(1 + v%3)
	}
	return c
}

// TestScaledTargets: a network trained on scaled targets is the network trained on targets that
// the user has scaled. Its predictions, logits and metrics are in the units of the targets, on any
// number of ranks and in mini-batches, and do not depend on the dataset to predict on.
func TestScaledTargets(t *testing.T) {
	t.Parallel()
	c := sines()
	small, large := c, c
	large.Targets = nil
	for _, y := range c.Targets {
		large.Targets = append(large.Targets, y*targetScale+targetMean)
	}
	other := large // without a scaling, as from an import without --like
	large.TargetScaling = []graph.Scaling{{Mean: targetMean, Scale: targetScale}}
	bare := large // of vertices to predict
	bare.Task, bare.Classes, bare.Targets, bare.TargetScaling, bare.Split = "", 0, nil, nil, make([]uint8, c.Vertices)
	bare.Labels = slices.Repeat([]int32{graph.Unlabelled}, int(c.Vertices))
	want, got, unscaled, unlabelled := write(t, small), write(t, large), write(t, other), write(t, bare)
	for _, ranks := range []int{1, 2} {
		o := quick(t)
		o.Model, o.Epochs, o.Servers, o.Ranks, o.Dropout = "sage", 20, 0, ranks, 0
		a := train(t, o, want)
		valuesA, _ := predictedNumbers(t, o.Out, want, ranks)
		o.Out += "-large"
		b := train(t, o, got)
		// Targets of 3e5 in float32 are rounded by up to 2^-6, which is 1e-6 of their deviation.
		const tolerance = 1e-4
		sameLosses(t, "scaled targets", b.losses(), a.losses(), tolerance)
		x, y := a.Summary.Metrics.Test, b.Summary.Metrics.Test
		if math.Abs(*x.R2-*y.R2) > tolerance || math.Abs(*y.MSE / *x.MSE / targetScale / targetScale - 1) > tolerance ||
			math.Abs(*y.MAE / *x.MAE / targetScale - 1) > tolerance {
			t.Errorf("%d ranks: r2, mse and mae are %v, %v and %v, without scaling %v, %v and %v", ranks, *y.R2, *y.MSE,
				*y.MAE, *x.R2, *x.MSE, *x.MAE)
		}
		for _, data := range []string{got, unscaled, unlabelled} {
			values, logits := predictedNumbers(t, o.Out, data, ranks)
			for v, value := range values {
				if math.Abs(float64(value)/targetScale-targetMean/targetScale-float64(valuesA[v])) > tolerance || logits[v] != value {
					t.Fatalf("%d ranks: vertex %d: value %v, logit %v, want %v", ranks, v, value, logits[v],
						valuesA[v]*targetScale+targetMean)
				}
			}
		}
	}
}

// TestExportedScale: the exported network returns numbers in the units of scaled targets.
func TestExportedScale(t *testing.T) {
	t.Parallel()
	python := withPyTorch(t)
	c := sines()
	for i, y := range c.Targets {
		c.Targets[i] = y*targetScale + targetMean
	}
	c.TargetScaling = []graph.Scaling{{Mean: targetMean, Scale: targetScale}}
	data, o := write(t, c), quick(t)
	o.Model, o.Epochs, o.Dropout = "sage", 5, 0
	train(t, o, data)
	p := PredictConfig{Logits: true, StallWarn: "1m", StallAbort: "1m"}
	if err := Predict(context.Background(), p, o.Out, data, IO{Out: io.Discard, Err: io.Discard}); err != nil {
		t.Fatal(err)
	}
	if err := Export(ExportOptions{Run: o.Out, PyTorch: true}, io.Discard); err != nil {
		t.Fatal(err)
	}
	script, logits := filepath.Join(o.Out, runfolder.ScriptFile), filepath.Join(o.Out, "predictions", predictions.LogitFile)
	if out, err := exec.Command(python, script, data, logits).CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
}
