package bench

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"siafu/bench/trials"
	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/inventory"
	"siafu/internal/scratch"
	"siafu/ranks/config"
	"siafu/ranks/report/chart"
	"siafu/ranks/trace"
	"siafu/ranks/world"
)

// BreakdownOptions are the options of bench breakdown: a dataset to train on, or a timeline to
// read. Training flags are train's.
type BreakdownOptions struct {
	Data    string        `arg:"" optional:"" help:"Dataset folder."`
	From    string        `placeholder:"FILE" help:"Timeline of train --trace to read instead of training."`
	Picture string        `placeholder:"FILE" help:"SVG file for a chart of the tasks of all ranks."`
	Epochs  []int         `name:"picture-epochs" default:"3,4" help:"First and last epoch of the chart."`
	Config  config.Config `embed:""`
}

// Run runs Breakdown, and prints this machine first unless it reads a timeline.
func (o BreakdownOptions) Run(ctx context.Context, w io.Writer) error {
	if o.From == "" { // else it was another machine
		trials.Machine(w)
	}
	return Breakdown(ctx, o, w)
}

// Breakdown prints the seconds of each kind of task in an epoch, as in figure 10(a) of Dorylus
// (OSDI'21, §7.6). It also prints how much communication overlapped with other work, and the
// idle time of each rank. It trains in an in-process world, or reads the timeline of a run.
func Breakdown(ctx context.Context, o BreakdownOptions, w io.Writer) error {
	if (o.Data == "") == (o.From == "") {
		return fault.New(fault.Usage, "bench breakdown", "", "it takes either DATA or --from FILE").Then(`see "siafu help bench breakdown"`)
	}
	path := o.From
	if l, launched := world.Launched(); launched && path == "" {
		return fault.New(fault.Usage, "bench breakdown", "", "it trains in one process and cannot run under %s", l.Name).
			Then(`use "siafu train --trace FILE" there, and then --from FILE`)
	}
	if path == "" {
		tmp, err := scratch.Temp()
		if err != nil {
			return fault.System("bench breakdown", "", err)
		}
		defer tmp.Close()
		c := o.Config
		c.Trace = cmp.Or(c.Trace, filepath.Join(tmp.Path, "trace.json"))
		if _, err := trial(ctx, "bench breakdown", o.Data, c); err != nil {
			return err
		}
		path = c.Trace
	}
	f, err := trace.Read(path)
	if err != nil {
		return err
	}
	b, err := newBreakdown(f, path)
	if err != nil {
		return err
	}
	if err := b.print(w); err != nil || o.Picture == "" {
		return err
	}
	return writeChart(o.Picture, f, o.Epochs)
}

// writeChart writes the chart of a first and a last epoch.
func writeChart(path string, f *trace.File, epochs []int) error {
	if len(epochs) != 2 {
		return fault.New(fault.Usage, "bench breakdown", "", "%d epochs for a picture", len(epochs)).Then("name the first and the last, as 3,4")
	}
	if err := inventory.Overwrite("bench breakdown", path, isPicture); err != nil {
		return err
	}
	return durable.Write("bench breakdown", path, func(w io.Writer) error {
		if _, err := fmt.Fprintln(w, pictureMark); err != nil {
			return err
		}
		return chart.Timeline(w, f, epochs[0], epochs[1])
	})
}

// pictureMark marks our charts, so that no other file is overwritten.
const pictureMark = "<!-- siafu bench breakdown -->"

func isPicture(head []byte) bool { return bytes.Contains(head, []byte(pictureMark)) }

// print prints the three tables.
func (b *breakdown) print(w io.Writer) error {
	who := fmt.Sprintf("%d ranks", len(b.graph)+len(b.servers))
	if n := b.info["ranks"]; n != "" {
		who = fmt.Sprintf("%d parts on %s ranks", len(b.graph), n)
	}
	fmt.Fprintf(w, "%s, %s (%d servers) x %s threads, --mode %s, %s, %d epochs%s\n",
		b.info["dataset"], who, len(b.servers), b.info["threads"], b.info["mode"], b.info["program"],
		len(b.epochs), b.leftOut())
	for _, table := range []func(io.Writer){b.printTasks, b.printCommunication, b.printRanks} {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		table(t)
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (b *breakdown) leftOut() string {
	if b.first {
		return ", the first left out"
	}
	return ""
}

// printTasks prints the means of graph ranks and of servers, whose updates run concurrently.
func (b *breakdown) printTasks(w io.Writer) {
	fmt.Fprintln(w, "task\ts/epoch\tshare\tof it waiting\t")
	room := b.mean(b.graph, (*rankTime).workerTime)
	line := func(name string, of []*rankTime, f func(*rankTime) spent) {
		seconds := b.mean(of, func(r *rankTime) float64 { return f(r).seconds })
		waited := b.mean(of, func(r *rankTime) float64 { return f(r).waited })
		fmt.Fprintf(w, "%s\t%.6f\t%.1f %%\t%.6f\t\n", name, seconds, percent(seconds, room), waited)
	}
	for _, task := range b.tasks {
		line(task, b.graph, func(r *rankTime) spent { return r.tasks[task] })
	}
	line("between tasks", b.graph, func(r *rankTime) spent { return spent{seconds: r.between} })
	fmt.Fprintf(w, "epoch\t%.6f\t100.0 %%\t\t\n", room)
	if len(b.servers) > 0 {
		line("WU on servers", b.servers, func(r *rankTime) spent { return r.total() })
	}
}

// printCommunication prints how much communication overlapped with other work.
func (b *breakdown) printCommunication(w io.Writer) {
	if len(b.graph) < 2 {
		return
	}
	fmt.Fprintln(w, "\ncommunication\ts/epoch\tof it waiting\thidden\tat most\tshare hidden\t")
	for _, task := range communication {
		mean := func(f func(overlapBounds, spent) float64) float64 {
			return b.mean(b.graph, func(r *rankTime) float64 { return f(r.hidden[task], r.tasks[task]) })
		}
		seen := mean(func(_ overlapBounds, s spent) float64 { return s.seconds })
		least := mean(func(h overlapBounds, _ spent) float64 { return h.least })
		fmt.Fprintf(w, "%s\t%.6f\t%.6f\t%.6f\t%.6f\t%.1f %%\t\n", task, seen,
			mean(func(_ overlapBounds, s spent) float64 { return s.waited }), least,
			mean(func(h overlapBounds, _ spent) float64 { return h.most }), percent(least, least+seen))
	}
}

// printRanks prints each rank's use of an epoch's time.
func (b *breakdown) printRanks(w io.Writer) {
	fmt.Fprintln(w, "\nrank\thost\tworking\twaiting\tbetween tasks\tidle\t")
	epochs := float64(len(b.epochs))
	for _, r := range slices.Concat(b.graph, b.servers) {
		all := r.total()
		fmt.Fprintf(w, "%d %s\t%s\t%.6f\t%.6f\t%.6f\t%.1f %%\t\n", r.process.Rank, r.process.Role, r.process.Host,
			(all.seconds-all.waited)/epochs, all.waited/epochs, r.between/epochs, percent(all.waited+r.between, r.workerTime()))
	}
}

func percent(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * part / whole
}
