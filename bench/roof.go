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

	// doubleCost is the cost of an exponential of float64 in those of float32. A vector has half as many elements. Its
	// polynomial of degree 11 and conversions take 25 operations instead of 11.
	doubleCost = 4.5
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
	set := c.KernelVariant()
	if set == "openblas" { // it chooses its own instructions
		set = kernels.Variants()[0]
	}
	watch := newWatch(c.Epochs, machine.Caches(set))
	c.Epochs += 2
	run, err := watchedTrial(ctx, "bench epoch", o.Data, c, watch.wrap)
	if err != nil {
		return err
	}
	run.Epochs = run.Epochs[:watch.timed]
	if err := printEpochs(w, run); err != nil {
		return err
	}
	r := &roof{watch: watch, lanes: max(map[string]int{"avx512": 16, "avx2": 8}[set], 1), epochs: run.Epochs[1:]}
	widths := map[int]bool{0: true}
	for _, d := range r.demands {
		for width := range d.bytes {
			widths[width] = true
		}
	}
	for _, threads := range slices.Compact([]int{1, run.Summary.Threads}) { // more threads can do what one does
		for range 2 { // in case there is other load the first time
			r.top.Measure(set, threads, r.sizes, slices.Sorted(maps.Keys(widths)), budget)
		}
		r.limits = append(r.limits, r.top)
	}
	return r.print(w)
}

// roof has the kernels of epochs and the limits of the machine.
type roof struct {
	*watch
	lanes  int // of a vector
	epochs []runfolder.Epoch
	limits []machine.Limits // with one thread and with all
	top    machine.Limits   // the last of them
}

// line is a line of the table.
type line struct {
	name           string
	work           [3]float64 // multiply-adds, bytes of operands and of gathered rows
	seconds, least float64
	limit, reason  string
}

// lines returns a stage, in the epoch in which it takes the least time, and then its kernels.
func (r *roof) lines(stage string) (lines []*line) {
	best := slices.MinFunc(r.epochs, func(a, b runfolder.Epoch) int { return cmp.Compare(a.TaskSeconds[stage], b.TaskSeconds[stage]) })
	sum := &line{name: stage, seconds: best.TaskSeconds[stage]}
	other := &line{name: "  other", seconds: sum.seconds, reason: "not counted"}
	for id, d := range r.demands {
		timed := r.demands[kernelID{best.Epoch, stage, id.kernel}]
		if id.stage != stage || id.epoch != r.timed+2 || timed == nil {
			continue
		}
		l := r.line(id.kernel, d, timed)
		lines = append(lines, l)
		for k, amount := range l.work {
			sum.work[k] += amount
		}
		sum.least, other.seconds = sum.least+l.least, other.seconds-l.seconds
	}
	slices.SortFunc(lines, func(a, b *line) int { return cmp.Compare(b.seconds, a.seconds) })
	if lines = append(lines, other); sum.least > 0 {
		sum.limit = slices.MaxFunc(lines, func(a, b *line) int { return cmp.Compare(a.least, b.least) }).limit
	}
	if sum.least < goodShare*sum.seconds {
		worst := slices.MaxFunc(lines, func(a, b *line) int { return cmp.Compare(a.seconds-a.least, b.seconds-b.least) })
		sum.reason = strings.TrimSpace(worst.name)
	}
	if 20*other.seconds < sum.seconds || len(lines) == 1 {
		lines = lines[:len(lines)-1]
	}
	return slices.Insert(lines, 0, sum)
}

// line returns a kernel with its work in one epoch and its time in another.
func (r *roof) line(kernel string, d, timed *demand) *line {
	l := &line{name: "  " + kernel, seconds: timed.seconds / float64(r.workers), reason: "not counted"}
	if len(d.bytes) == 0 {
		return l
	}
	operands, rows, _ := d.traffic()
	l.work = [3]float64{d.multiplyAdds, operands, rows}
	l.least, l.limit = d.least(r.top)
	if l.reason = ""; l.least < goodShare*l.seconds {
		l.reason = r.reason(d, timed)
	}
	return l
}

// traffic returns the bytes of operands and of gathered rows, and the latter by level.
func (d *demand) traffic() (operands, rows float64, levels [machine.Levels]float64) {
	for width, bytes := range d.bytes {
		for k, b := range bytes {
			if width == 0 {
				operands += b
				continue
			}
			rows, levels[k] = rows+b, levels[k]+b
		}
	}
	return operands, rows, levels
}

// least returns the least time of a kernel, and the limit that determines it: the time of its multiply-adds, of its
// exponentials, or of the bytes that a level of the caches passes on from itself or from slower levels.
func (d *demand) least(l machine.Limits) (seconds float64, limit string) {
	seconds, limit = d.multiplyAdds/l.MultiplyAdds, "multiply-adds"
	if time := (d.exponentials + doubleCost*d.doubles) / l.Exponentials; time > seconds {
		seconds, limit = time, "exponentials"
	}
	for k, level := range l.Levels {
		time := 0.
		for width, bytes := range d.bytes {
			for _, b := range bytes[k:] {
				time += b / level.Reads[width]
			}
		}
		if time > seconds {
			seconds, limit = time, level.Name
		}
	}
	return seconds, limit
}

// reason returns what the work and the time show about a kernel that is below its limit.
func (r *roof) reason(d, timed *demand) string {
	var facts []string
	add := func(is bool, format string, numbers ...any) {
		if is {
			facts = append(facts, fmt.Sprintf(format, numbers...))
		}
	}
	_, rows, levels := d.traffic()
	unused := (r.lanes - d.columns%r.lanes) % r.lanes
	exponentials := d.exponentials + d.doubles
	add(d.exponentials > 0, "%.2f M exponentials", d.exponentials/1e6)
	add(d.doubles > 0, "%.2f M exponentials of float64", d.doubles/1e6)
	add(exponentials > 0 && rows == 0, "%.1f ns of a thread each", timed.seconds/exponentials*1e9)
	add(d.random > 0, "%.2f M random numbers", d.random/1e6)
	add(4*unused > d.columns, "%d columns in vectors of %d", d.columns, r.lanes)
	add(d.withZeros > 1.1*d.multiplyAdds, "%.0f %% zeros, share with them %.2f", 100*(1-d.multiplyAdds/d.withZeros),
		d.withZeros/r.top.MultiplyAdds/timed.seconds*float64(r.workers))
	add(d.terms > 0 && d.terms < r.lanes, "sums of %d terms", d.terms)
	add(d.transposed, "a transposed operand")
	add(rows > 0, "%.1f ns of a thread a row, %.0f %% of rows from L3, %.0f %% from memory", timed.seconds/d.gathered*1e9,
		100*levels[machine.Levels-2]/rows, 100*levels[machine.Levels-1]/rows)
	add(timed.seconds < shortCall*timed.calls, "calls of %.0f µs", timed.seconds/timed.calls*1e6)
	return cmp.Or(strings.Join(facts, "; "), "unknown")
}

// print prints the stages of the epoch with their kernels, and the limits.
func (r *roof) print(w io.Writer) error {
	fmt.Fprintf(w, "\nshares of the limits of %d threads; seconds of all threads / their number; work of a later epoch\n", r.top.Threads)
	t := table.Left("", "G multiply-adds", "GB", "GB of rows", "seconds", "limited by", "share", "reason")
	add := func(l *line) {
		cells := []string{l.name, "", "", "", fmt.Sprintf("%.3g", l.seconds), l.limit, "", l.reason}
		for k, amount := range l.work {
			if l.limit != "" {
				cells[1+k] = fmt.Sprintf("%.3f", amount/1e9)
			}
		}
		if l.least > 0 {
			cells[6] = fmt.Sprintf("%.2f", l.least/l.seconds)
		}
		t.Row(cells...)
	}
	idle := &line{name: "idle", seconds: fastest(r.epochs)}
	epoch := &line{name: "epoch", seconds: idle.seconds}
	for _, stage := range schedule.Kinds() {
		if lines := r.lines(stage); lines[0].seconds > 0 {
			idle.seconds, epoch.least = idle.seconds-lines[0].seconds, epoch.least+lines[0].least
			for _, l := range lines {
				add(l)
			}
		}
	}
	add(idle)
	add(epoch)
	if err := t.Text(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := limitsTable(r.limits).Text(w); err != nil {
		return err
	}
	if one := r.limits[0].MultiplyAdds; r.top.MultiplyAdds < 0.9*one*float64(r.top.Threads) {
		fmt.Fprintf(w, "shares are too large: %d threads make only %.1f times as many multiply-adds as one, as with other load\n",
			r.top.Threads, r.top.MultiplyAdds/one)
	}
	return nil
}

// limitsTable returns a table of the machine's limits.
func limitsTable(list []machine.Limits) *table.Table {
	head := []string{"threads", "level", "KiB", "G multiply-adds/s|%.1f", "G exponentials/s|%.1f", "GB/s|%.1f"}
	widths := slices.Sorted(maps.Keys(list[0].Levels[0].Reads))
	for _, width := range widths[1:] {
		head = append(head, fmt.Sprintf("rows of %d B|%%.1f", width))
	}
	t := table.Right(head...)
	for _, l := range list {
		for _, level := range l.Levels {
			size := ""
			if level.Bytes > 0 {
				size = fmt.Sprint(level.Bytes >> 10)
			}
			cells := []any{l.Threads, level.Name, size, l.MultiplyAdds / 1e9, l.Exponentials / 1e9}
			for _, width := range widths { // 0, sequential, is the first
				cells = append(cells, level.Reads[width]/1e9)
			}
			t.Add(cells...)
		}
	}
	return t
}
