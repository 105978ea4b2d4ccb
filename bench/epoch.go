package bench

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/internal/scratch"
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
	err := printTable(w, "\tmin s\tmedian s", append([]string{"epoch"}, schedule.Kinds()...), func(task string) string {
		var x []float64
		for _, e := range epochs {
			if task == "epoch" {
				x = append(x, e.Seconds)
			} else {
				x = append(x, e.TaskSeconds[task])
			}
		}
		slices.Sort(x)
		return fmt.Sprintf("%s\t%.4f\t%.4f", task, x[0], x[len(x)/2])
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "peak memory %d MiB, ghosts %.1f MiB an epoch\n", run.Summary.PeakRSSBytes>>20,
		float64(epochs[0].GhostBytesSent)/(1<<20))
	return err
}
