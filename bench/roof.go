package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"siafu/bench/machine"
	"siafu/internal/fault"
	"siafu/internal/table"
	"siafu/kernels"
	"siafu/ranks/runfolder"
	"siafu/ranks/schedule"
)

// roofBudget is the time to measure one rate of the machine.
const roofBudget = 50 * time.Millisecond

const (
	goodShare = 0.7   // below which the table names a reason
	shortCall = 20e-6 // seconds
)

// epochRoof trains two epochs more than requested, in which kernels count their work, and compares the least times
// of the others with the least times that the machine's limits permit.
func epochRoof(ctx context.Context, o EpochOptions, budget time.Duration, w io.Writer) error {
	c := o.Config
	c.Ranks = max(c.Ranks, 1)
	if c.Ranks > 1 || c.Servers > 0 || c.Tensor != "cpu" || o.Yardstick {
		return fault.New(fault.Usage, "bench epoch", "", "--roof with several ranks, servers, --tensor %s or --yardstick", c.Tensor).
			Then("set --ranks 1 --servers 0 --tensor cpu")
	}
	set := instructions(c.KernelVariant())
	watch := &watch{timed: c.Epochs, sizes: machine.Caches(set), all: newCaches()}
	c.Epochs += 2
	run, err := watchedTrial(ctx, "bench epoch", o.Data, c, watch.wrap)
	if err != nil {
		return err
	}
	run.Epochs = run.Epochs[:watch.timed]
	if err := printEpochs(w, run); err != nil {
		return err
	}
	r := &roof{watch: watch, workers: float64(len(watch.workers)), lanes: max(map[string]int{"avx512": 16, "avx2": 8}[set], 1),
		epoch: fastest(run.Epochs[1:]), best: map[string]runfolder.Epoch{}, kernels: map[kernelID]*demand{}}
	for _, stage := range schedule.Kinds() {
		r.best[stage] = slices.MinFunc(run.Epochs[1:], func(a, b runfolder.Epoch) int {
			return cmp.Compare(a.TaskSeconds[stage], b.TaskSeconds[stage])
		})
	}
	r.collect()
	for threads := 1; ; threads = min(2*threads, run.Summary.Threads) {
		l := r.measure(set, threads, budget)
		if len(r.limits) > 0 { // more threads can do what fewer do
			l = l.AtLeast(r.top())
		}
		if r.limits = append(r.limits, l); threads == run.Summary.Threads {
			return r.print(w)
		}
	}
}

// instructions returns the set of instructions of a variant of the kernels. OpenBLAS chooses its own.
func instructions(kernel string) string {
	if kernel == "openblas" {
		return kernels.Variants()[0]
	}
	return kernel
}

// roof has the kernels of an epoch and the limits of the machine.
type roof struct {
	*watch
	workers float64
	lanes   int                        // of a vector
	epoch   float64                    // seconds, minimum
	best    map[string]runfolder.Epoch // in which a stage takes the least time
	kernels map[kernelID]*demand       // with their times in these epochs, and epoch 0
	limits  []machine.Limits           // by number of threads
}

// top returns the limits of all threads.
func (r *roof) top() machine.Limits { return r.limits[len(r.limits)-1] }

// collect adds up the workers' times and work.
func (r *roof) collect() {
	all := map[kernelID]*demand{}
	for _, worker := range r.watch.workers {
		for id, d := range worker.demands {
			if all[id] == nil {
				all[id] = &demand{}
			}
			all[id].add(d)
		}
	}
	for id, d := range all {
		if id.epoch != r.timed+2 {
			continue
		}
		id.epoch = r.best[id.stage].Epoch
		if timed := all[id]; timed != nil {
			d.seconds, id.epoch = timed.seconds/r.workers, 0
			r.kernels[id] = d
		}
	}
}

// measure measures the limits twice, in case there is other load the first time.
func (r *roof) measure(set string, threads int, budget time.Duration) machine.Limits {
	widths := map[int]bool{}
	for _, d := range r.kernels {
		for width := range d.rows {
			widths[width] = true
		}
	}
	list := slices.Sorted(maps.Keys(widths))
	return machine.Measure(set, threads, list, budget).AtLeast(machine.Measure(set, threads, list, budget))
}

// least returns the least time of a kernel, and the limit that determines it: the time of its multiply-adds, or of
// the bytes that a level of the caches passes on from itself or from slower levels.
func (d *demand) least(l machine.Limits) (seconds float64, limit string) {
	seconds, limit = d.multiplyAdds/l.MultiplyAdds, "multiply-adds"
	for k, level := range l.Levels {
		time := 0.
		for from := k; from < machine.Levels; from++ {
			time += d.operands[from] / level.Sequential
			for width, bytes := range d.rows {
				time += bytes[from] / level.Rows[width]
			}
		}
		if time > seconds {
			seconds, limit = time, level.Name
		}
	}
	return seconds, limit
}

// bytes returns the bytes of operands and of gathered rows, by level.
func (d *demand) bytes() (operands, rows float64, levels [machine.Levels]float64) {
	for k, b := range d.operands {
		operands += b
		for _, bytes := range d.rows {
			rows += bytes[k]
			levels[k] += bytes[k]
		}
	}
	return operands, rows, levels
}

// reason returns what the measurement shows about a kernel that is below its limit.
func (r *roof) reason(d *demand) string {
	var facts []string
	add := func(is bool, format string, numbers ...any) {
		if is {
			facts = append(facts, fmt.Sprintf(format, numbers...))
		}
	}
	_, rows, levels := d.bytes()
	unused := (r.lanes - d.columns%r.lanes) % r.lanes
	add(d.exponentials > 0, "%.2f M exponentials", d.exponentials/1e6)
	add(d.exponentials > 0 && rows == 0, "%.1f ns of a thread each", d.seconds*r.workers/d.exponentials*1e9)
	add(4*unused > d.columns, "%d columns in vectors of %d", d.columns, r.lanes)
	add(d.withZeros > 1.1*d.multiplyAdds, "%.0f %% zeros, share with them %.2f", 100*(1-d.multiplyAdds/d.withZeros),
		d.withZeros/r.top().MultiplyAdds/d.seconds)
	add(d.terms > 0 && d.terms < r.lanes, "sums of %d terms", d.terms)
	add(d.transposed, "a transposed operand")
	add(rows > 0, "%.0f %% of rows from L3, %.0f %% from memory", 100*levels[machine.Levels-2]/rows, 100*levels[machine.Levels-1]/rows)
	add(d.seconds*r.workers < shortCall*d.calls, "calls of %.0f µs", d.seconds*r.workers/d.calls*1e6)
	return cmp.Or(strings.Join(facts, "; "), "unknown")
}

// print prints the stages of the epoch with their kernels, and the limits.
func (r *roof) print(w io.Writer) error {
	top := r.top()
	fmt.Fprintf(w, "\nshares of the limits of %d threads; seconds of all threads / their number; work of a later epoch\n", top.Threads)
	t := table.Left("", "G multiply-adds", "GB", "GB of rows", "seconds", "limited by", "share", "reason")
	rest, leastOfAll := r.epoch, 0.
	for _, stage := range schedule.Kinds() {
		var ids []kernelID
		sum, least, lost := &demand{}, 0., kernelID{}
		limits := map[string]float64{}
		for id, d := range r.kernels {
			if id.stage != stage {
				continue
			}
			ids = append(ids, id)
			sum.add(d)
			seconds, limit := d.least(top)
			least += seconds
			limits[limit] += seconds
			if other := r.kernels[lost]; other == nil || r.lost(d) > r.lost(other) {
				lost = id
			}
		}
		seconds := r.best[stage].TaskSeconds[stage]
		rest, leastOfAll = rest-seconds, leastOfAll+least
		other := seconds - sum.seconds
		switch {
		case seconds == 0:
			continue
		case len(ids) == 0:
			t.Row(stage, "", "", "", fmt.Sprintf("%.4f", seconds), "", "", "no count of work")
			continue
		}
		reason := ""
		if least < goodShare*seconds {
			reason = lost.kernel
			if other > r.lost(r.kernels[lost]) {
				reason = "other kernels and pauses"
			}
		}
		limit := slices.MaxFunc(slices.Collect(maps.Keys(limits)), func(a, b string) int { return cmp.Compare(limits[a], limits[b]) })
		sum.seconds = seconds
		row(t, stage, sum, limit, least/seconds, reason)
		slices.SortFunc(ids, func(a, b kernelID) int { return cmp.Compare(r.kernels[b].seconds, r.kernels[a].seconds) })
		for _, id := range ids {
			d := r.kernels[id]
			least, limit := d.least(top)
			reason := ""
			if least < goodShare*d.seconds {
				reason = r.reason(d)
			}
			row(t, "  "+id.kernel, d, limit, least/d.seconds, reason)
		}
		if 20*other > seconds {
			t.Row("  other", "", "", "", fmt.Sprintf("%.4f", other), "", "", "no count of work")
		}
	}
	t.Row("idle", "", "", "", fmt.Sprintf("%.4f", rest))
	t.Row("epoch", "", "", "", fmt.Sprintf("%.4f", r.epoch), "", fmt.Sprintf("%.2f", leastOfAll/r.epoch))
	if err := t.Text(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := limitsTable(r.limits).Text(w); err != nil {
		return err
	}
	if one := r.limits[0].MultiplyAdds; top.MultiplyAdds < 0.9*one*float64(top.Threads) {
		fmt.Fprintf(w, "shares are too large: %d threads make only %.1f times as many multiply-adds as one, as with other load\n",
			top.Threads, top.MultiplyAdds/one)
	}
	return nil
}

// lost returns the seconds that a kernel takes beyond its limit.
func (r *roof) lost(d *demand) float64 {
	least, _ := d.least(r.top())
	return d.seconds - least
}

func row(t *table.Table, name string, d *demand, limit string, share float64, reason string) {
	operands, rows, _ := d.bytes()
	t.Row(name, fmt.Sprintf("%.3f", d.multiplyAdds/1e9), fmt.Sprintf("%.3f", operands/1e9), fmt.Sprintf("%.3f", rows/1e9),
		fmt.Sprintf("%.4f", d.seconds), limit, fmt.Sprintf("%.2f", share), reason)
}

// limitsTable returns a table of the machine's limits.
func limitsTable(list []machine.Limits) *table.Table {
	head := []string{"threads", "level", "KiB|%.0f", "G multiply-adds/s|%.1f", "GB/s|%.1f"}
	widths := slices.Sorted(maps.Keys(list[0].Levels[0].Rows))
	for _, width := range widths {
		head = append(head, fmt.Sprintf("rows of %d B|%%.1f", width))
	}
	t := table.Right(head...)
	for _, l := range list {
		for _, level := range l.Levels {
			cells := []any{l.Threads, level.Name, float64(level.Bytes) / 1024, l.MultiplyAdds / 1e9, level.Sequential / 1e9}
			for _, width := range widths {
				cells = append(cells, level.Rows[width]/1e9)
			}
			t.Add(cells...)
		}
	}
	return t
}
