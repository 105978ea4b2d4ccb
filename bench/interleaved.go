package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"siafu/bench/trials"
	"siafu/bench/yardstick"
	"siafu/graph"
	"siafu/internal/fault"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// repetitions is the number of alternations of siafu and PyTorch, and the duration of
// PyTorch's training each time; siafu trains the requested epochs.
type repetitions struct {
	rounds    int
	rivalTime time.Duration
}

// epochInterleaved trains interleaved with PyTorch and prints siafu's best run, then
// both sides' best epochs.
func epochInterleaved(ctx context.Context, o EpochOptions, p repetitions, w io.Writer) error {
	d, err := graph.Open(o.Data)
	if err != nil {
		return err
	}
	defer d.Close()
	twin, err := torchTraining(o.Config, d)
	if err != nil {
		return err
	}
	lab, err := yardstick.NewLab()
	if err != nil {
		return err
	}
	defer lab.Close()
	ctx, stop := trials.UntilInterrupted(ctx)
	defer stop()
	rivals, reason, err := epochRivals(ctx, lab, d, twin)
	defer yardstick.CloseAll(rivals)
	if err != nil {
		return err
	}
	t, err := runInterleaved(ctx, o, p, rivals)
	if err != nil {
		return err
	}
	for i, r := range rivals {
		theirs, ours, epoch := t.lastLosses(i)
		if twin.Dropout != 0 || twin.InputDropout != 0 {
			break
		}
		if err := yardstick.SameLoss("bench epoch", r.Name, epoch, theirs, ours); err != nil {
			return err
		}
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

// torchTraining returns the run that PyTorch repeats, from the same initial weights.
func torchTraining(c config.Config, d *graph.Dataset) (yardstick.Training, error) {
	for _, r := range []struct{ flag, got, want string }{
		{"model", c.Model, "gcn"}, {"optimizer", c.Optimizer, "adam"}, {"init", c.Init, ""},
	} {
		if r.got != r.want {
			return yardstick.Training{}, fault.New(fault.Usage, "bench epoch", "", "--yardstick with --%s=%s", r.flag, r.got).
				Then("set --%s=%s, the only value that PyTorch's side has", r.flag, r.want)
		}
	}
	return yardstick.TrainingOf(c, d)
}

// epochRivals starts a PyTorch for each variant, or returns the reason why it cannot.
func epochRivals(ctx context.Context, lab *yardstick.Lab, d *graph.Dataset, g yardstick.Training) (rivals []*yardstick.Rival, reason string, err error) {
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

// interleaved has the results of both sides.
type interleaved struct {
	best   *runfolder.Run // siafu's run with the fastest epoch
	ours   float64        // seconds of that epoch
	theirs []float64      // of each rival's fastest
	losses [][]float32    // of each rival's epochs
}

// runInterleaved trains the sides alternately, never at the same time.
func runInterleaved(ctx context.Context, o EpochOptions, p repetitions, rivals []*yardstick.Rival) (*interleaved, error) {
	t := &interleaved{ours: math.Inf(1), theirs: make([]float64, len(rivals)), losses: make([][]float32, len(rivals))}
	for turn := range p.rounds {
		for i, r := range rivals {
			seconds, err := r.Run(p.rivalTime)
			if err != nil {
				return nil, err
			}
			if turn == 0 || seconds < t.theirs[i] {
				t.theirs[i] = seconds
			}
		}
		run, err := trial(ctx, "bench epoch", o.Data, o.Config)
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
		return cmp.Compare(a.Seconds, b.Seconds)
	}).Seconds
}

// lastLosses returns both sides' losses in the last common epoch.
func (t *interleaved) lastLosses(rival int) (theirs, ours float64, epoch int) {
	epoch = min(len(t.losses[rival]), len(t.best.Epochs))
	return float64(t.losses[rival][epoch-1]), t.best.Epochs[epoch-1].Loss, epoch
}

// print prints the rivals' epochs.
func (t *interleaved) print(w io.Writer, rivals []*yardstick.Rival) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\tmin s\tours/theirs\tloss\tours\tin epoch")
	for i, r := range rivals {
		theirs, ours, epoch := t.lastLosses(i)
		fmt.Fprintf(tw, "%s\t%.4f\t%.2f\t%.5f\t%.5f\t%d\n", r.Name, t.theirs[i], t.ours/t.theirs[i], theirs, ours, epoch)
	}
	return tw.Flush()
}
