package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"siafu/bench/yardstick"
	"siafu/graph"
	"siafu/graph/fault"
	"siafu/kernels/model"
	"siafu/ranks"
	"siafu/ranks/runfolder"
)

// How often siafu and PyTorch take turns, and how long PyTorch trains each time.
const (
	epochTurns = 3
	epochTurn  = 2 * time.Second
)

// epochInTurns trains in turns with PyTorch and prints siafu's best run, then
// both sides' best epochs.
func epochInTurns(ctx context.Context, o EpochOptions, w io.Writer) error {
	d, err := graph.Open(o.Data)
	if err != nil {
		return err
	}
	defer d.Close()
	twin, err := twinOf(o.Config, d)
	if err != nil {
		return err
	}
	lab, err := yardstick.NewLab()
	if err != nil {
		return err
	}
	defer lab.Close()
	rivals, reason, err := epochRivals(ctx, lab, d, twin)
	defer yardstick.CloseAll(rivals)
	if err != nil {
		return err
	}
	t, err := takeTurns(ctx, o, rivals)
	if err != nil {
		return err
	}
	if err := printEpochs(w, t.best); err != nil {
		return err
	}
	if reason != "" {
		_, err := fmt.Fprintln(w, "left out:", reason)
		return err
	}
	return t.print(w, rivals)
}

// twinOf is the run that PyTorch repeats, from the same initial weights.
func twinOf(c ranks.Config, d *graph.Dataset) (yardstick.GCN, error) {
	for _, r := range []struct{ flag, got, want string }{
		{"model", c.Model, "gcn"}, {"optimizer", c.Optimizer, "adam"}, {"init", c.Init, ""},
	} {
		if r.got != r.want {
			return yardstick.GCN{}, fault.New(fault.Usage, "bench epoch", "", "--yardstick with --%s=%s", r.flag, r.got).
				Then("PyTorch's side has --%s=%s only", r.flag, r.want)
		}
	}
	if err := c.Validate(); err != nil {
		return yardstick.GCN{}, err
	}
	g := yardstick.GCN{
		Dims: []int{d.Meta.FeatureDim}, Dropout: c.Dropout, InputDropout: c.InputDropout,
		LR: c.LR, WeightDecay: c.WeightDecay, DecayAll: c.WeightDecayOn == "all",
		Threads: runtime.GOMAXPROCS(0),
	}
	if g.InputDropout == -1 {
		g.InputDropout = c.Dropout
	}
	if c.Threads > 0 {
		g.Threads = c.Threads * max(c.Ranks, 1)
	}
	for range c.Layers - 1 {
		g.Dims = append(g.Dims, c.Hidden)
	}
	g.Dims = append(g.Dims, d.Meta.Classes)
	s := model.Spec{Dims: g.Dims}
	g.Weights = make([]float32, s.NumWeights())
	s.Initialize(g.Weights, c.Initializer, c.Seed)
	return g, nil
}

// epochRivals starts a PyTorch for each variant, or says why there is none.
func epochRivals(ctx context.Context, lab *yardstick.Lab, d *graph.Dataset, g yardstick.GCN) (rivals []*yardstick.Rival, reason string, err error) {
	for _, v := range g.Variants(d) {
		r, err := lab.Epoch(ctx, d, g, v)
		if fault.KindOf(err) == fault.Missing {
			return rivals, err.Error(), nil
		}
		if err != nil {
			return rivals, "", err
		}
		rivals = append(rivals, r)
	}
	return rivals, "", nil
}

// turns is what the sides took.
type turns struct {
	best   *runfolder.Run // siafu's with the fastest epoch
	ours   float64        // seconds of that epoch
	theirs []float64      // of each rival's fastest
	losses [][]float32    // of each rival's epochs
}

// takeTurns lets the sides train one after the other, never at the same time.
func takeTurns(ctx context.Context, o EpochOptions, rivals []*yardstick.Rival) (*turns, error) {
	t := &turns{ours: math.Inf(1), theirs: make([]float64, len(rivals)), losses: make([][]float32, len(rivals))}
	for turn := range epochTurns {
		for i, r := range rivals {
			seconds, err := r.Run(epochTurn)
			if err != nil {
				return nil, err
			}
			if turn == 0 || seconds < t.theirs[i] {
				t.theirs[i] = seconds
			}
		}
		run, err := timedRun(ctx, o)
		if err != nil {
			return nil, err
		}
		if s := fastest(run.Epochs[1:]); s < t.ours {
			t.ours, t.best = s, run
		}
	}
	for i, r := range rivals {
		var err error
		if t.losses[i], err = r.Result(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func fastest(epochs []runfolder.Epoch) float64 {
	return slices.MinFunc(epochs, func(a, b runfolder.Epoch) int {
		return int(math.Copysign(1, a.Seconds-b.Seconds))
	}).Seconds
}

// print prints the rivals' epochs. The losses of the last epoch that both sides
// reached show that they did the same: without dropout they are equal but for
// rounding.
func (t *turns) print(w io.Writer, rivals []*yardstick.Rival) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\tmin s\tours/theirs\tloss\tours\tof epoch")
	for i, r := range rivals {
		last := min(len(t.losses[i]), len(t.best.Epochs)) - 1
		fmt.Fprintf(tw, "%s\t%.4f\t%.2f\t%.5f\t%.5f\t%d\n", r.Name, t.theirs[i], t.ours/t.theirs[i],
			t.losses[i][last], t.best.Epochs[last].Loss, last+1)
	}
	return tw.Flush()
}
