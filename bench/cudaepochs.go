package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

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
// dropout, so that losses must agree. Only one side at a time is loaded.
func gpuEpochs(ctx context.Context, o CUDAOptions, e gpuEffort, d *graph.Dataset, w io.Writer) error {
	lab, err := yardstick.NewLab()
	if err != nil {
		return err
	}
	defer lab.Close()
	for _, c := range gpuModels(o.Epochs) {
		run, err := e.train(ctx, o.Data, c)
		if err != nil {
			return err
		}
		b := gpuEpoch{w: w, run: run, model: c.Model, turn: e.turn}
		t, err := yardstick.TrainingOf(c, d)
		if err != nil {
			return err
		}
		b.header(t.Dims)
		t.Device = e.torch
		for _, v := range append(t.Variants(d), t.Libraries(d)...) {
			if err := b.rival(ctx, lab, d, t, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// gpuEpoch is the table of one network.
type gpuEpoch struct {
	w     io.Writer
	model string
	run   *runfolder.Run
	turn  time.Duration // duration of a rival's training
}

// header prints siafu's epoch times.
func (b *gpuEpoch) header(dims []int) {
	var seconds []float64
	for _, e := range b.run.Epochs[1:] {
		seconds = append(seconds, e.Seconds)
	}
	slices.Sort(seconds)
	fmt.Fprintf(b.w, "\n%s, columns %v: siafu --tensor %s, epochs of %.4f s at least, %.4f s in the middle, loss %.5f after %d\n",
		strings.ToUpper(b.model), dims, b.run.Summary.Tensor, seconds[0], seconds[len(seconds)/2],
		b.run.Epochs[len(b.run.Epochs)-1].Loss, len(b.run.Epochs))
}

// rival trains a variant and prints its fastest epoch, or the reason why it cannot train. A
// different loss is a fault.
func (b *gpuEpoch) rival(ctx context.Context, lab *yardstick.Lab, d *graph.Dataset, t yardstick.Training, v yardstick.Variant) error {
	_, seconds, losses, err := lab.Train(ctx, d, t, v, b.turn)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		_, err = fmt.Fprintf(b.w, "  left out: %s: %v\n", v, err)
		return err
	}
	epoch := min(len(losses), len(b.run.Epochs))
	theirs, ours := float64(losses[epoch-1]), b.run.Epochs[epoch-1].Loss
	if err := yardstick.SameLoss("bench cuda", string(v)+", "+b.model, epoch, theirs, ours); err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.w, "  %s: epochs of %.4f s at least, siafu's/its %.2f, loss in epoch %d %.5f and %.5f\n",
		v, seconds, fastest(b.run.Epochs[1:])/seconds, epoch, theirs, ours)
	return err
}
