package bench

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"siafu/bench/trials"
	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/inventory"
	"siafu/internal/scratch"
	"siafu/internal/table"
	"siafu/ranks/config"
	"siafu/ranks/report/chart"
	"siafu/ranks/schedule"
	"siafu/ranks/simulate"
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

// Run prints the seconds of each kind of task in an epoch, as in figure 10(a) of Dorylus
// (OSDI'21, §7.6). It also prints how much communication overlapped with other work, and the
// idle time of each rank. It trains in an in-process world and prints this machine first, or
// reads the timeline of a run.
func (o BreakdownOptions) Run(ctx context.Context, w io.Writer) error {
	if o.From == "" { // else it was another machine
		trials.Machine(w)
	}
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
		return fault.New(fault.Usage, "bench breakdown", "", "%d epochs for a picture", len(epochs)).
			Then("name the first and the last, as 3,4")
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

func (b *breakdown) print(w io.Writer) error {
	who := fmt.Sprintf("%d ranks", len(b.graph)+len(b.servers))
	if n := b.info["ranks"]; n != "" {
		who = fmt.Sprintf("%d parts on %s ranks", len(b.graph), n)
	}
	leftOut := ""
	if b.first {
		leftOut = ", the first left out"
	}
	fmt.Fprintf(w, "%s, %s (%d servers) x %s threads, --mode %s, %s, %d epochs%s\n",
		b.info["dataset"], who, len(b.servers), b.info["threads"], b.info["mode"], b.info["program"],
		len(b.epochs), leftOut)
	b.ofTasks().Text(w)
	if len(b.graph) > 1 {
		fmt.Fprintln(w)
		b.ofCommunication().Text(w)
	}
	fmt.Fprintln(w)
	return b.ofRanks().Text(w)
}

// ofTasks has the means of graph ranks and of servers, whose updates run concurrently.
func (b *breakdown) ofTasks() *table.Table {
	t := table.Right("task", "s/epoch|%.6f", "share|%.1f %%", "of it waiting|%.6f")
	room := b.mean(b.graph, (*rankTime).workerTime)
	line := func(name string, of []*rankTime, f func(*rankTime) spent) {
		seconds := b.mean(of, func(r *rankTime) float64 { return f(r).seconds })
		waited := b.mean(of, func(r *rankTime) float64 { return f(r).waited })
		t.Add(name, seconds, percent(seconds, room), waited)
	}
	for _, task := range b.tasks {
		line(task, b.graph, func(r *rankTime) spent { return r.tasks[task] })
	}
	line("between tasks", b.graph, func(r *rankTime) spent { return spent{seconds: r.between()} })
	t.Add("epoch", room, 100.0)
	if len(b.servers) > 0 {
		line("WU on servers", b.servers, func(r *rankTime) spent { return r.total() })
	}
	return t
}

func (b *breakdown) ofCommunication() *table.Table {
	t := table.Right("communication", "s/epoch|%.6f", "of it waiting|%.6f", "hidden|%.6f", "at most|%.6f", "share hidden|%.1f %%")
	for _, task := range communication {
		mean := func(f func(overlapBounds, spent) float64) float64 {
			return b.mean(b.graph, func(r *rankTime) float64 { return f(r.hidden[task], r.tasks[task]) })
		}
		seen := mean(func(_ overlapBounds, s spent) float64 { return s.seconds })
		least := mean(func(h overlapBounds, _ spent) float64 { return h.least })
		t.Add(task, seen, mean(func(_ overlapBounds, s spent) float64 { return s.waited }), least,
			mean(func(h overlapBounds, _ spent) float64 { return h.most }), percent(least, least+seen))
	}
	return t
}

func (b *breakdown) ofRanks() *table.Table {
	t := table.Right("rank", "host", "working|%.6f", "waiting|%.6f", "between tasks|%.6f", "idle|%.1f %%")
	epochs := float64(len(b.epochs))
	for _, r := range slices.Concat(b.graph, b.servers) {
		all := r.total()
		t.Add(fmt.Sprintf("%d %s", r.Rank, r.Role), r.Host, (all.seconds-all.waited)/epochs, all.waited/epochs, r.between()/epochs,
			percent(all.waited+r.between(), r.workerTime()))
	}
	return t
}

func percent(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * part / whole
}

// communication lists the tasks that exchange rows between ranks.
var communication = []string{"SC", "∇SC"}

// breakdown has the times of some epochs by task.
type breakdown struct {
	info           map[string]string
	epochs         []int // complete on every graph rank, ascending
	first          bool  // the first epoch is left out
	tasks          []string
	graph, servers []*rankTime
}

// rankTime has the times of one rank in those epochs; all numbers are total seconds.
type rankTime struct {
	*simulate.Events // of all epochs
	tasks            map[string]spent
	hidden           map[string]overlapBounds
	workers          int
	span             float64 // from the first task of an epoch to the first task of the next
}

// workerTime returns the total time of all workers of a rank.
func (r *rankTime) workerTime() float64 { return r.span * float64(max(r.workers, 1)) }

// spent is the time of one kind of task, and the part of it spent waiting for other ranks.
type spent struct{ seconds, waited float64 }

// overlapBounds bounds the time that a rank did other work during an exchange. Rows may be in
// transit from the time when a rank has sent its own until it requests the others' (most).
// They certainly are until the last rank has sent (least).
type overlapBounds struct{ least, most float64 }

// newBreakdown adds up a timeline. path names it in a fault.
func newBreakdown(f *trace.File, path string) (*breakdown, error) {
	b := &breakdown{info: f.Info}
	graph, servers := simulate.EventsOf(f)
	if b.epochs, b.first = simulate.CompleteEpochs(graph); len(b.epochs) == 0 {
		return nil, fault.New(fault.Data, "bench breakdown", path, "no epoch is complete on every graph rank").
			Then("train for 2 epochs or more")
	}
	chosen := map[int]bool{}
	for _, epoch := range b.epochs {
		chosen[epoch] = true
	}
	sent := map[exchange]time.Duration{} // when the last rank had sent its rows
	for _, e := range graph {
		r := newRankTime(e, chosen)
		r.span = r.spans(chosen)
		for x, w := range r.windows() {
			sent[x] = max(sent[x], w.begin)
		}
		b.graph = append(b.graph, r)
	}
	for _, e := range servers {
		r := newRankTime(e, chosen)
		r.span = b.graph[0].span
		b.servers = append(b.servers, r)
	}
	found := map[string]bool{}
	for _, r := range b.graph {
		r.addHidden(chosen, sent)
		for task := range r.tasks {
			found[task] = true
		}
	}
	// In report order; unknown tasks come last.
	b.tasks = slices.DeleteFunc(schedule.Kinds(), func(task string) bool { return !found[task] })
	for _, task := range b.tasks {
		delete(found, task)
	}
	b.tasks = append(b.tasks, slices.Sorted(maps.Keys(found))...)
	return b, nil
}

// newRankTime adds up tasks, and counts their workers.
func newRankTime(events *simulate.Events, chosen map[int]bool) *rankTime {
	r := &rankTime{Events: events, tasks: map[string]spent{}, hidden: map[string]overlapBounds{}}
	workers := map[int]bool{}
	for _, e := range r.List {
		workers[e.Worker] = true
		if chosen[e.Epoch] {
			s := r.tasks[e.Task]
			r.tasks[e.Task] = spent{s.seconds + e.Dur.Seconds(), s.waited + e.Wait.Seconds()}
		}
	}
	r.workers = len(workers)
	return r
}

func (r *rankTime) total() spent {
	var sum spent
	for _, s := range r.tasks {
		sum.seconds += s.seconds
		sum.waited += s.waited
	}
	return sum
}

// between returns the time in no task, of all workers.
func (r *rankTime) between() float64 { return max(r.workerTime()-r.total().seconds, 0) }

// spans returns the duration of the selected epochs: each until the first task of the next
// one, or else until its own last task.
func (r *rankTime) spans(chosen map[int]bool) float64 {
	begin, end := map[int]time.Duration{}, map[int]time.Duration{}
	for _, e := range r.List {
		if _, ok := begin[e.Epoch]; !ok {
			begin[e.Epoch] = e.Start
		}
		end[e.Epoch] = max(end[e.Epoch], e.End())
	}
	sum := 0.0
	for epoch := range chosen {
		until, ok := begin[epoch+1]
		if !ok {
			until = end[epoch]
		}
		sum += (until - begin[epoch]).Seconds()
	}
	return sum
}

// exchange names one exchange of rows in a run.
type exchange struct {
	task                   string
	epoch, layer, interval int
}

// window is the time from a rank's send of its rows to its request for the others'; from and
// to are the indices of the two tasks in its events.
type window struct {
	from, to   int
	begin, end time.Duration
}

// windows returns the windows of a rank's exchanges.
func (r *rankTime) windows() map[exchange]window {
	all := map[exchange]window{}
	for i := range r.List {
		e := &r.List[i]
		if !slices.Contains(communication, e.Task) {
			continue
		}
		x := exchange{e.Task, e.Epoch, e.Layer, e.Interval}
		w, begun := all[x]
		if !begun {
			w = window{from: i, begin: e.End()}
		}
		w.to, w.end = i, max(e.Start, w.begin)
		all[x] = w
	}
	return all
}

// addHidden adds up a rank's work in the windows of its exchanges.
func (r *rankTime) addHidden(chosen map[int]bool, sent map[exchange]time.Duration) {
	for x, w := range r.windows() {
		if !chosen[x.epoch] {
			continue
		}
		h := r.hidden[x.task]
		for i := w.from + 1; i < w.to; i++ {
			h.least += overlap(&r.List[i], w.begin, min(w.end, sent[x]))
			h.most += overlap(&r.List[i], w.begin, w.end)
		}
		r.hidden[x.task] = h
	}
}

// overlap returns the seconds that a task worked between two times. Its waits are distributed
// evenly.
func overlap(e *trace.Event, begin, end time.Duration) float64 {
	inside := min(e.End(), end) - max(e.Start, begin)
	if inside <= 0 {
		return 0
	}
	return inside.Seconds() * (1 - e.Wait.Seconds()/e.Dur.Seconds())
}

// mean returns the mean over ranks of their sums, for one epoch.
func (b *breakdown) mean(of []*rankTime, f func(*rankTime) float64) float64 {
	sum := 0.0
	for _, r := range of {
		sum += f(r)
	}
	return sum / float64(max(len(of), 1)*len(b.epochs))
}
