package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"siafu/bench/trials"
	"siafu/bench/yardstick"
	"siafu/graph"
	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/internal/scratch"
	"siafu/internal/table"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
	"siafu/ranks/schedule"
)

// EpochOptions are the options of bench epoch. Training flags are train's.
type EpochOptions struct {
	Data      string        `arg:"" optional:"" help:"Dataset folder; none with --like."`
	Like      string        `help:"Published graph for a synthetic graph with its statistics. The graph is generated as by siafu generate."`
	Scale     float64       `default:"1" help:"Factor for vertices and edges of the synthetic graph."`
	Yardstick bool          `help:"Compare epochs with PyTorch, interleaved, if it is installed."`
	Roof      bool          `help:"Compare each task and its kernels with the limits of this machine: multiply-adds, exponentials and bytes a second, measured in the same run."`
	Config    config.Config `embed:""`
}

// Run trains in an in-process world and prints the time of an epoch and its parts. It omits
// the first epoch, in which memory is touched for the first time.
func (o EpochOptions) Run(ctx context.Context, w io.Writer) error {
	if o.Config.Epochs < 2 {
		return fault.New(fault.Usage, "bench epoch", "", "--epochs=%d", o.Config.Epochs).Then("measure 2 or more")
	}
	if (o.Data == "") == (o.Like == "") {
		return fault.New(fault.Usage, "bench epoch", "", "a dataset folder and --like").Then("give only one of them")
	}
	if o.Like != "" {
		tmp, err := generated(o.Like, o.Scale)
		if err != nil {
			return err
		}
		defer tmp.Close()
		o.Data = filepath.Join(tmp.Path, o.Like)
	}
	if o.Roof {
		return epochRoof(ctx, o, roofBudget, w)
	}
	if o.Yardstick {
		return epochInterleaved(ctx, o, repetitions{rounds: 3, rivalTime: 2 * time.Second}, w)
	}
	run, err := trial(ctx, "bench epoch", o.Data, o.Config)
	if err != nil {
		return err
	}
	return printEpochs(w, run)
}

// generated makes a synthetic graph in a temporary folder, which it returns.
func generated(like string, scale float64) (*scratch.Folder, error) {
	tmp, err := scratch.Temp()
	if err != nil {
		return nil, fault.System("bench epoch", "", err)
	}
	_, err = generate.Write(filepath.Join(tmp.Path, like), generate.Options{Like: like, Scale: scale, Seed: 1}, false)
	if err != nil {
		tmp.Close()
	}
	return tmp, err
}

// printEpochs prints minimum and median of the epochs except the first.
func printEpochs(w io.Writer, run *runfolder.Run) error {
	epochs := run.Epochs[1:]
	fmt.Fprintf(w, "%s, %d ranks (%d servers) x %d threads, %d epochs\n",
		run.Summary.Dataset, run.Summary.Ranks, run.Summary.Servers, run.Summary.Threads, len(epochs))
	t := table.Right("", "min s|%.3g", "median s|%.3g")
	for _, task := range append([]string{"epoch"}, schedule.Kinds()...) {
		var x []float64
		for _, e := range epochs {
			if task == "epoch" {
				x = append(x, e.Seconds)
			} else {
				x = append(x, e.TaskSeconds[task])
			}
		}
		slices.Sort(x)
		t.Add(task, x[0], x[len(x)/2])
	}
	if err := t.Text(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "peak memory %d MiB, ghosts %.1f MiB an epoch\n", run.Summary.PeakRSSBytes>>20,
		float64(epochs[0].GhostBytesSent)/(1<<20))
	return err
}

// repetitions is the number of alternations of siafu and PyTorch, and the duration of
// PyTorch's training each time; siafu trains the requested epochs.
type repetitions struct {
	rounds    int
	rivalTime time.Duration
}

// epochInterleaved trains interleaved with PyTorch, never at the same time, with one variant of PyTorch in memory.
// It prints siafu's run with the fastest epoch, then both sides' best epochs. Variants that are missing here or
// that the system kills, as it does if memory is short, are left out.
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
	runner, err := yardstick.NewRunner()
	if err != nil {
		return err
	}
	defer runner.Close()
	ctx, stop := trials.UntilInterrupted(ctx)
	defer stop()
	var best *runfolder.Run
	var references []*yardstick.Reference
	var omitted []string
	losses := map[*yardstick.Reference][]float32{}
	for _, v := range twin.Variants(d) {
		r, err := runner.StartPyTorch(ctx, d, twin, v)
		for range p.rounds {
			if err == nil {
				err = r.Run(p.rivalTime)
			}
			if err != nil {
				break
			}
			run, err := trial(ctx, "bench epoch", o.Data, o.Config)
			if err != nil {
				return cmp.Or(err, r.Close())
			}
			if best == nil || fastest(run.Epochs[1:]) < fastest(best.Epochs[1:]) {
				best = run
			}
		}
		if err == nil {
			losses[r], err = r.Result()
		}
		missing := fault.KindOf(err) == fault.Missing
		switch {
		case missing || yardstick.Killed(err) && ctx.Err() == nil:
			omitted = append(omitted, err.Error())
		case err != nil:
			return err
		default:
			references = append(references, r)
			r.Close()
		}
		if missing { // for all variants
			break
		}
	}
	if best == nil {
		if best, err = trial(ctx, "bench epoch", o.Data, o.Config); err != nil {
			return err
		}
	}
	if err := printEpochs(w, best); err != nil {
		return err
	}
	for _, reason := range omitted {
		if _, err := fmt.Fprintln(w, "left out:", reason); err != nil {
			return err
		}
	}
	t := table.Left("", "min s|%.3g", "ours/theirs|%.2f", "loss|%.5f", "ours|%.5f", "in epoch")
	for _, r := range references {
		epoch, theirs, ours := lastLosses(losses[r], best)
		if twin.Dropout == 0 && twin.InputDropout == 0 {
			if err := yardstick.SameLoss("bench epoch", r.Name, epoch, theirs, ours); err != nil {
				return err
			}
		}
		t.Add(r.Name, r.Seconds, fastest(best.Epochs[1:])/r.Seconds, theirs, ours, epoch)
	}
	if len(references) == 0 {
		return nil
	}
	return t.Text(w)
}

// torchTraining returns the run that PyTorch repeats, from the same initial weights.
func torchTraining(c config.Config, d *graph.Dataset) (yardstick.Training, error) {
	network := "gcn"
	if c.Model == "sage" || c.Model == "gat" || d.Meta.Relations != nil && c.Model == "rgcn" {
		network = c.Model
	}
	for _, r := range []struct{ flag, got, want string }{
		{"model", c.Model, network}, {"model bases", fmt.Sprint(c.Bases), "0"}, {"model blocks", fmt.Sprint(c.Blocks), "0"},
		{"optimizer", c.Optimizer, "adam"}, {"init", c.Init, ""},
	} {
		if r.got != r.want {
			return yardstick.Training{}, fault.New(fault.Usage, "bench epoch", "", "--yardstick with --%s=%s", r.flag, r.got).
				Then("set --%s=%s, the only value that PyTorch's side has", r.flag, r.want)
		}
	}
	return yardstick.TrainingOf(c, d)
}

func fastest(epochs []runfolder.Epoch) float64 {
	return slices.MinFunc(epochs, func(a, b runfolder.Epoch) int {
		return cmp.Compare(a.Seconds, b.Seconds)
	}).Seconds
}

// lastLosses returns a reference's and siafu's losses in the last common epoch.
func lastLosses(losses []float32, run *runfolder.Run) (epoch int, theirs, ours float64) {
	epoch = min(len(losses), len(run.Epochs))
	return epoch, float64(losses[epoch-1]), run.Epochs[epoch-1].Loss
}
