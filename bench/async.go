package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"siafu/graph/fault"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// AsyncOptions say what to train on. The run's own flags are train's.
type AsyncOptions struct {
	Data      string        `arg:"" help:"Dataset folder."`
	Staleness []int         `name:"bounds" default:"0,1" help:"Staleness bounds to measure."`
	Config    config.Config `embed:""`
}

// Run compares bounded asynchrony with the synchronous pipeline, as figures 5
// and 6 of Dorylus (OSDI'21) do: how many epochs each needs to the validation
// accuracy that the pipeline converges to, and how long an epoch takes; with
// --delay for all of them.
func (o AsyncOptions) Run(ctx context.Context, w io.Writer) error {
	if o.Config.Dropout != 0 || o.Config.InputDropout > 0 {
		return fault.New(fault.Usage, "bench async", "", "--dropout=%g", o.Config.Dropout).
			Then("use 0: accuracies are those of the passes that train")
	}
	pipe, err := asyncRun(ctx, o, "pipe", 0)
	if err != nil {
		return err
	}
	target := converged(pipe)
	fmt.Fprintf(w, "%s: the pipeline converges to %.2f %% on validation vertices\n", pipe.Summary.Dataset, 100*target)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "mode\tepochs to it\tR\ts/epoch\tto pipe\tseconds to it\tto pipe\tfinal test\t")
	base := reach(pipe, target)
	line := func(name string, r *runfolder.Run) {
		m := reach(r, target)
		fmt.Fprintf(t, "%s\t%s\t%.2f\t%.4f\t%.2f\t%.3f\t%.2f\t%.4f\t\n", name, m.name(), m.epochs/base.epochs,
			m.perEpoch, m.perEpoch/base.perEpoch, m.seconds, m.seconds/base.seconds, r.Summary.FinalTestAcc)
	}
	line("pipe", pipe)
	for _, s := range o.Staleness {
		r, err := asyncRun(ctx, o, "async", s)
		if err != nil {
			return err
		}
		line(fmt.Sprintf("async s=%d", s), r)
	}
	return t.Flush()
}

func asyncRun(ctx context.Context, o AsyncOptions, mode string, s int) (*runfolder.Run, error) {
	c := o.Config
	c.Mode, c.Staleness, c.Out, c.EvalEvery, c.CheckpointEvery = mode, s, "", 1, "off"
	return trial(ctx, "bench async", o.Data, c)
}

// converged is the mean validation accuracy of a run's last tenth, less a tenth
// of a point, so that noise does not decide.
func converged(r *runfolder.Run) float64 {
	last := r.Epochs[len(r.Epochs)*9/10:]
	sum := 0.0
	for _, e := range last {
		sum += *e.ValAcc
	}
	return sum/float64(len(last)) - 0.001
}

// reached is when a run first had an accuracy.
type reached struct {
	epochs, seconds, perEpoch float64
	never                     bool
}

func reach(r *runfolder.Run, target float64) reached {
	var m reached
	var each []float64
	m.never = true
	for _, e := range r.Epochs {
		each = append(each, e.Seconds)
		if m.never {
			m.epochs++
			m.seconds += e.Seconds
			m.never = *e.ValAcc < target
		}
	}
	slices.Sort(each)
	m.perEpoch = each[len(each)/2]
	return m
}

func (m reached) name() string {
	if m.never {
		return fmt.Sprintf("never in %.0f", m.epochs)
	}
	return fmt.Sprintf("%.0f", m.epochs)
}
