package bench

import (
	"context"
	"fmt"
	"io"
	"strings"

	"siafu/bench/yardstick"
	"siafu/graph"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// gpuModels returns the networks whose epochs are measured; other settings are the defaults.
func gpuModels(epochs int) []config.Config {
	gcn := config.Defaults()
	gcn.Ranks, gcn.Servers, gcn.Epochs, gcn.EvalEvery, gcn.CheckpointEvery = 1, 0, epochs, 0, "off"
	gcn.Dropout, gcn.WeightDecay, gcn.Hidden = 0, 0, hiddenWidth
	gat := gcn
	gat.Model, gat.Hidden, gat.Heads = "gat", 8, 8
	return []config.Config{gcn, gat}
}

// gpuEpochs prints epochs of siafu and, if installed, of hand-written PyTorch, PyTorch
// Geometric and DGL on the same GPU: the same graph, layers and initial weights, without
// dropout, so that losses must agree: a different loss is a fault. Only one side at a time is
// loaded. A variant that cannot train is a line with the reason.
func gpuEpochs(ctx context.Context, o CUDAOptions, e gpuEffort, d *graph.Dataset, w io.Writer) error {
	runner, err := yardstick.NewRunner()
	if err != nil {
		return err
	}
	defer runner.Close()
	for _, c := range gpuModels(o.Epochs) {
		run, err := e.train(ctx, o.Data, c)
		if err != nil {
			return err
		}
		t, err := yardstick.TrainingOf(c, d)
		if err != nil {
			return err
		}
		least := fastest(run.Epochs[1:])
		fmt.Fprintf(w, "\n%s, columns %v: siafu --tensor %s, epochs of %.4f s at least, %.4f s in the middle, loss %.5f after %d\n",
			strings.ToUpper(c.Model), t.Dims, run.Summary.Tensor, least, runfolder.MedianSeconds(run.Epochs[1:]),
			run.Epochs[len(run.Epochs)-1].Loss, len(run.Epochs))
		t.Device = e.torch
		for _, v := range append(t.Variants(d), t.Libraries(d)...) {
			r, losses, err := runner.Train(ctx, d, t, v, e.turn)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				fmt.Fprintf(w, "  left out: %s: %v\n", v, err)
				continue
			}
			epoch, theirs, ours := lastLosses(losses, run)
			if err := yardstick.SameLoss("bench cuda", string(v)+", "+c.Model, epoch, theirs, ours); err != nil {
				return err
			}
			fmt.Fprintf(w, "  %s: epochs of %.4f s at least, siafu's/its %.2f, loss in epoch %d %.5f and %.5f\n",
				v, r.Seconds, least/r.Seconds, epoch, theirs, ours)
		}
	}
	return nil
}
