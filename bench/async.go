package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"siafu/internal/fault"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// AsyncOptions are the options of bench async. Training flags are train's.
type AsyncOptions struct {
	Data      string        `arg:"" help:"Dataset folder."`
	Staleness []int         `name:"bounds" default:"0,1" help:"Staleness bounds to measure."`
	Lingers   []float64     `default:"1" help:"Values of linger (--mode async:linger=X) to measure with each bound."`
	Seeds     int           `default:"1" help:"Number of seeds to average, from --seed."`
	Most      float64       `default:"2" help:"Maximum epochs of an asynchronous run, as a multiple of --epochs. A run ends earlier if it reaches the accuracy."`
	Config    config.Config `embed:""`
}

// Run compares bounded asynchrony with the synchronous pipeline, as figures 5 and 6 of Dorylus
// (OSDI'21) do: the number of epochs until the validation accuracy to which the pipeline with
// the same seed converges, and the time of an epoch; with --delay for all of them.
func (o AsyncOptions) Run(ctx context.Context, w io.Writer) error {
	refuse := func(flag string, value any, remedy string) error {
		return fault.New(fault.Usage, "bench async", "", "--%s=%v", flag, value).Then("%s", remedy)
	}
	switch {
	case o.Config.Dropout != 0 || o.Config.InputDropout > 0:
		return refuse("dropout", o.Config.Dropout, "set 0, because accuracies are measured in the training passes")
	case !(o.Most >= 1 && o.Most <= mostOfPipe):
		return refuse("most", o.Most, fmt.Sprintf("set 1 to %d", mostOfPipe))
	}
	e := &experiment{op: "bench async", data: o.Data, config: o.Config,
		columns: []string{"mode", "epochs to it", "R|%.2f", "from|%.2f", "to|%.2f", "s/epoch|%.4f", "to pipe|%.2f",
			"seconds to it|%.3f", "to pipe|%.2f", "old weights|%.2f", "old gathers|%.2f", "best|%.4f"}, row: asyncRow}
	e.config.Out, e.config.EvalEvery, e.config.CheckpointEvery = "", 1, "off"
	pipe := e.add("pipe", func(c *config.Config, turn int) {
		c.Mode, c.Staleness, c.Linger = "pipe", 0, config.Defaults().Linger
		c.Seed += uint64(turn)
	})
	for _, s := range o.Staleness {
		for _, l := range o.Lingers {
			e.add(fmt.Sprintf("async s=%d linger=%g", s, l), func(c *config.Config, turn int) {
				c.Mode, c.Staleness, c.Linger = "async", s, l
				c.Seed += uint64(turn)
				c.Epochs, c.TargetAcc = int(math.Ceil(o.Most*float64(c.Epochs))), min(converged(pipe.runs[turn]), 1)
			})
		}
	}
	if err := e.train(ctx, "seeds", o.Seeds); err != nil {
		return err
	}
	targets := 0.0
	for _, r := range pipe.runs {
		targets += converged(r)
	}
	fmt.Fprintf(w, "%s: the pipeline converges to %.2f %% on validation vertices\n", pipe.last().Dataset, 100*targets/float64(o.Seeds))
	return e.print(w)
}

// mostOfPipe bounds --most, so that --most times --epochs does not overflow.
const mostOfPipe = 1000

// asyncRow returns means over the seeds. Runs that never reached the accuracy count with their
// number of epochs, and R is then printed with >.
func asyncRow(s, pipe *setting) []any {
	var runs, bases []targetReached
	var ratios []float64
	sum, best, n := 0.0, 0.0, float64(len(s.runs))
	for k, r := range s.runs {
		target := converged(pipe.runs[k])
		m, base := firstReached(r, target), firstReached(pipe.runs[k], target)
		runs, bases, ratios = append(runs, m), append(bases, base), append(ratios, m.epochs/base.epochs)
		sum, best = sum+ratios[k], best+r.Summary.BestValAcc
	}
	m, base, ratio := meanOf(runs), meanOf(bases), any(sum/n)
	if m.never > 0 {
		ratio = fmt.Sprintf("> %.2f", ratio)
	}
	return []any{s.name, m.name(len(runs)), ratio, slices.Min(ratios), slices.Max(ratios), m.perEpoch, m.perEpoch / base.perEpoch,
		m.seconds, m.seconds / base.seconds, m.weights, m.gathers, best / n}
}

// converged returns the mean validation accuracy of a run's last tenth, minus a tenth of a
// point, to reduce the influence of noise.
func converged(r *runfolder.Run) float64 {
	last := r.Epochs[len(r.Epochs)*9/10:]
	sum := 0.0
	for _, e := range last {
		sum += *e.ValAcc
	}
	return sum/float64(len(last)) - 0.001
}

// targetReached is the time when a run first reached an accuracy, and the staleness until
// then.
type targetReached struct {
	epochs, seconds, perEpoch float64
	weights, gathers          float64 // runfolder.Late, the mean over all epochs
	never                     int     // 1: never reached
}

func firstReached(r *runfolder.Run, target float64) targetReached {
	m := targetReached{never: 1, perEpoch: runfolder.MedianSeconds(r.Epochs)}
	for _, e := range r.Epochs {
		if m.never > 0 {
			m.epochs++
			m.seconds += e.Seconds
			if *e.ValAcc >= target {
				m.never = 0
			}
		}
		if e.Late != nil {
			m.weights += e.Late.Weights / float64(len(r.Epochs))
			m.gathers += e.Late.Gathers / float64(len(r.Epochs))
		}
	}
	return m
}

// meanOf returns the mean of runs, with the number of runs that never reached the accuracy in
// never.
func meanOf(runs []targetReached) (m targetReached) {
	for _, r := range runs {
		m.never += r.never
		n := float64(len(runs))
		m.epochs += r.epochs / n
		m.seconds += r.seconds / n
		m.perEpoch += r.perEpoch / n
		m.weights += r.weights / n
		m.gathers += r.gathers / n
	}
	return m
}

func (m targetReached) name(runs int) string {
	if m.never > 0 {
		return fmt.Sprintf("%d of %d never in %.0f", m.never, runs, m.epochs)
	}
	return fmt.Sprintf("%.0f", m.epochs)
}
