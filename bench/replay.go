package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"time"

	"siafu/bench/trials"
	"siafu/internal/fault"
	"siafu/internal/table"
	"siafu/ranks/plan"
	"siafu/ranks/runfolder"
	"siafu/ranks/simulate"
	"siafu/slurm/hosts"
)

// ReplayOptions are the options of bench replay: trainings over links, and their simulations.
type ReplayOptions struct {
	Data   string   `arg:"" help:"Dataset folder."`
	Ranks  []int    `default:"1,2,4" help:"Numbers of graph ranks, each rank on its own emulated host."`
	Rates  []string `default:"10gbit,1gbit,200mbit" help:"Link rates of the hosts."`
	Modes  []string `default:"pipe,async" enum:"pipe,nopipe,async" help:"Values of --mode to measure."`
	Tensor []string `default:"cpu,lambda" enum:"cpu,lambda" help:"Values of --tensor to measure. lambda: in processes of this machine (--lambda local)."`
	Epochs int      `default:"8" help:"Epochs of each run. The first epoch is not counted."`
	Work   string   `placeholder:"DIR" help:"Folder for runs and timelines; existing runs are reused. Empty: none."`
	Copy   string   `default:"" help:"Copy rate between a processor and its network card. Empty: rate of this machine's loopback device."`
	Train  []string `arg:"" optional:"" help:"Flags of train, after --."`
}

// Replayed is a run and its simulation.
type Replayed struct {
	Tensor   string
	Mode     string
	Ranks    int
	Link     string  // empty for one rank
	Recorded float64 // seconds per epoch
	Again    float64 // the same, replayed unchanged
	Measured float64 // over the link: median of epochs except the first
	Modelled float64 // the recording, replayed over such a link
}

// Ratio returns modelled divided by measured.
func (r *Replayed) Ratio() float64 { return r.Modelled / r.Measured }

// Within is the accepted relative error of a model.
const Within = 0.15

const opReplay = "bench replay"

// unlimited is a rate of links in bytes per second that no host of this machine reaches.
const unlimited = 100e9 / 8

// Run records a run for each number of ranks, mode and place of tensor work, and trains the same
// under mpirun over links. It prints both with the replay's estimate for such links. Recordings on
// CPUs are made in one process. Functions are recorded under mpirun over unlimited links, because
// each rank's process has its own functions.
func (o ReplayOptions) Run(ctx context.Context, w io.Writer) error {
	if o.Epochs < 3 || slices.Min(o.Ranks) < 1 {
		return fault.New(fault.Usage, opReplay, "", "--epochs %d --ranks %v", o.Epochs, o.Ranks).
			Then("set 3 epochs or more, and 1 rank or more")
	}
	for _, rate := range append(slices.Clone(o.Rates), cmp.Or(o.Copy, "1gbit")) {
		if _, err := plan.Bandwidth(rate); err != nil {
			return err
		}
	}
	var list []*Replayed
	err := trials.OnSite(ctx, opReplay, func(ctx context.Context, site *trials.Site) (err error) {
		list, err = o.replayAll(ctx, site)
		return err
	})
	if err != nil {
		return err
	}
	return printReplayed(w, list)
}

func (o *ReplayOptions) replayAll(ctx context.Context, site *trials.Site) (list []*Replayed, err error) {
	if o.Copy == "" {
		rate, err := hosts.Loopback()
		if err != nil {
			return nil, err
		}
		o.Copy = fmt.Sprintf("%.0fmbit", max(rate*8/1e6, 1))
	}
	kept, err := trials.NewArchive(opReplay, cmp.Or(o.Work, site.Path("kept")), 0)
	if err != nil {
		return nil, err
	}
	kept.Runner = site
	for _, ranks := range o.Ranks {
		for _, tensor := range o.Tensor {
			for _, mode := range o.Modes {
				more, err := o.replayTrial(ctx, kept, Replayed{Tensor: tensor, Mode: mode, Ranks: ranks})
				if err != nil {
					return nil, err
				}
				list = append(list, more...)
			}
		}
	}
	return list, nil
}

// trial returns the recording of a line.
func (o *ReplayOptions) trial(r *Replayed) trials.Trial {
	flags := append([]string{"--recompute-ghosts", "none"}, o.Train...) // the choice of auto depends on the link
	flags = append(flags, "--servers", "0", "--threads", "1", "--epochs", strconv.Itoa(o.Epochs), "--eval-every", "0",
		"--mode", r.Mode, "--tensor", r.Tensor)
	if r.Tensor == "lambda" {
		flags = append(flags, "--lambda", "local")
	}
	return trials.Trial{Data: o.Data, Ranks: r.Ranks, Flags: flags, Record: true}
}

// replayTrial runs a recording and the compared runs: over each link, or for one rank once more.
func (o *ReplayOptions) replayTrial(ctx context.Context, kept *trials.Archive, r Replayed) (list []*Replayed, err error) {
	t, copies := o.trial(&r), o.Copy
	if r.Tensor == "lambda" && r.Ranks > 1 {
		t.Rate, copies = unlimited, "" // a recording over links contains copies
	}
	run, err := kept.Get(ctx, t)
	if err != nil {
		return nil, err
	}
	folder := kept.Folder(t)
	t.Record = false
	replay := simulate.Options{Run: folder, Trace: trials.Timeline(folder), Servers: -1, Staleness: -1,
		Processors: runtime.NumCPU(), GhostPower: 0.5, Scale: 1,
		FunctionOptions: simulate.FunctionOptions{Invocation: -1, LambdaMemory: 192, LambdaTariff: "x86_64"}}
	r.Recorded = medianEpoch(run)
	again, _, err := replay.Replay()
	if err != nil {
		return nil, err
	}
	r.Again = again.Median
	links := o.Rates
	if r.Ranks == 1 {
		t.Turn, links = 1, []string{""}
	}
	for _, link := range links {
		each := r
		each.Link, each.Modelled = link, r.Again
		if link != "" {
			if t.Rate, err = plan.Bandwidth(link); err != nil {
				return nil, err
			}
		}
		if run, err = kept.Get(ctx, t); err != nil {
			return nil, err
		}
		each.Measured = medianEpoch(run)
		if link != "" {
			replay.Rate, replay.Latency, replay.Copy = link, time.Duration(run.Link.Latency*1e9), copies
			over, _, err := replay.Replay()
			if err != nil {
				return nil, err
			}
			each.Modelled = over.Median
		}
		list = append(list, &each)
	}
	return list, nil
}

// medianEpoch returns the median time of a run's epochs except the first.
func medianEpoch(run *trials.Result) float64 {
	return runfolder.MedianSeconds(run.Epochs[min(1, len(run.Epochs)-1):])
}

// printReplayed prints runs and their simulations.
func printReplayed(w io.Writer, list []*Replayed) error {
	good := 0
	t := table.Right("tensor", "mode", "ranks", "link", "recorded s/epoch|%.4f", "replayed|%.4f", "measured|%.4f",
		"modelled|%.4f", "modelled to measured|%.3f")
	for _, r := range list {
		if math.Abs(r.Ratio()-1) <= Within {
			good++
		}
		t.Add(r.Tensor, r.Mode, r.Ranks, r.Link, r.Recorded, r.Again, r.Measured, r.Modelled, r.Ratio())
	}
	if err := t.Text(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d of %d are within %.0f %%\n", good, len(list), 100*Within)
	return err
}
