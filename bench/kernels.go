package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"regexp"
	"runtime"
	"slices"
	"time"

	"siafu/bench/trials"
	"siafu/bench/yardstick"
	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/table"
	"siafu/kernels"
)

// KernelsOptions are the options of bench kernels.
type KernelsOptions struct {
	Threads   int      `default:"0" help:"Worker threads; 0: this machine's processors."`
	Data      []string `placeholder:"DIR" help:"Dataset folders for gathers, in addition to a uniform random graph."`
	Only      string   `default:"" placeholder:"REGEX" help:"Regular expression for the kernels and shapes to measure."`
	Yardstick bool     `help:"Compare with a C loop and OpenBLAS, interleaved. What this machine lacks (gcc, OpenBLAS) is omitted."`
}

// effort has the sizes of shapes and the duration of a measurement.
type effort struct {
	vertices int           // rows of the shapes
	budget   time.Duration // of one side of a line
	turns    int           // parts of the budget if sides alternate
}

// Run measures every kernel and prints its times and rates.
func (o KernelsOptions) Run(ctx context.Context, w io.Writer) error {
	e := effort{vertices: 100_000, budget: 400 * time.Millisecond, turns: 1}
	if o.Yardstick {
		e.budget, e.turns = time.Second, 8
	}
	return measureKernels(ctx, o, e, w)
}

// pattern compiles the value of --only.
func pattern(op, only string) (*regexp.Regexp, error) {
	p, err := regexp.Compile(only)
	if err != nil {
		return nil, fault.New(fault.Usage, op, "", "--only: %v", err)
	}
	return p, nil
}

// work names a measured kernel, and has the work of a call.
type work struct {
	kernel, shape string
	edges         float64 // gathered, 0 if none
	flops         float64 // multiplications and additions, 0 if irrelevant
	bytes         float64
}

// matches reports whether --only selects the kernel.
func (c work) matches(only *regexp.Regexp) bool { return only.MatchString(c.kernel + " " + c.shape) }

// rate returns a cell with the amount of work per second in a unit; "-" is a figure that is
// meaningless for the kernel.
func rate(amount, seconds, unit float64, format string) string {
	if amount == 0 || unit == 0 {
		return "-"
	}
	return fmt.Sprintf(format, amount/seconds/unit)
}

// omissions has the reasons for omitted measurements, each once.
type omissions []string

func (o *omissions) add(reason string) {
	if !slices.Contains(*o, reason) {
		*o = append(*o, reason)
	}
}

func (o omissions) print(w io.Writer) {
	for _, reason := range o {
		fmt.Fprintln(w, "left out:", reason)
	}
}

func measureKernels(ctx context.Context, o KernelsOptions, e effort, w io.Writer) error {
	only, err := pattern("bench kernels", o.Only)
	if err != nil {
		return err
	}
	var data []*graph.Dataset
	for _, dir := range o.Data {
		d, err := graph.Open(dir)
		if err != nil {
			return err
		}
		defer d.Close()
		data = append(data, d)
	}
	if o.Threads < 1 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	team := kernels.NewTeam(o.Threads)
	defer team.Close()
	m := &meter{effort: e, team: team, w: w}
	if o.Yardstick {
		if m.runner, err = yardstick.NewRunner(); err != nil {
			return err
		}
		defer m.runner.Close()
		var stop context.CancelFunc
		ctx, stop = trials.UntilInterrupted(ctx)
		defer stop()
	}
	return m.run(ctx, kernelCases(e.vertices, data), only)
}

// meter measures the lines one by one.
type meter struct {
	effort
	team    *kernels.Team
	runner  *yardstick.Runner // nil without yardsticks
	w       io.Writer
	skipped omissions // of yardsticks
}

// kernelResult is a measured line.
type kernelResult struct {
	kernelCase
	seconds   float64
	theirs    float64 // seconds of the best reference, 0 without one
	reference string
}

func (m *meter) run(ctx context.Context, cases []kernelCase, only *regexp.Regexp) error {
	var results []kernelResult
	for _, c := range cases {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !c.matches(only) {
			continue
		}
		r, err := m.measure(ctx, c)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	if len(results) == 0 {
		return fault.New(fault.Usage, "bench kernels", "", "--only=%q matches no line", only)
	}
	return m.print(results)
}

// measure measures one line, interleaved with its references, if any.
func (m *meter) measure(ctx context.Context, c kernelCase) (kernelResult, error) {
	b := &fixture{m.team, mapped.NewArena()}
	defer b.arena.Free()
	r := kernelResult{kernelCase: c}
	p, err := c.prepare(b)
	if err != nil {
		return r, err
	}
	references, err := m.references(ctx, p)
	defer yardstick.CloseAll(references)
	if err != nil {
		return r, err
	}
	p.call()
	if len(references) == 0 {
		r.seconds = minSeconds(m.budget, p.call)
		return r, nil
	}
	for _, reference := range references {
		if err := agree(p, reference); err != nil {
			return r, err
		}
	}
	return r, m.alternate(&r, p, references)
}

// references starts the references of a line. Missing ones are recorded and omitted.
func (m *meter) references(ctx context.Context, p prepared) ([]*yardstick.Reference, error) {
	if m.runner == nil || p.references == nil {
		return nil, nil
	}
	references, err := p.references(ctx, m.runner)
	if fault.KindOf(err) == fault.Missing {
		m.skipped.add(err.Error())
		return nil, nil
	}
	return references, err
}

// alternate runs the sides alternately, never at the same time, so that noise affects both
// alike.
func (m *meter) alternate(r *kernelResult, p prepared, references []*yardstick.Reference) error {
	r.seconds = math.Inf(1)
	turn := m.budget / time.Duration(m.turns)
	for range m.turns {
		for _, reference := range references {
			if err := reference.Run(turn); err != nil {
				return err
			}
		}
		r.seconds = min(r.seconds, minSeconds(turn, p.call))
	}
	best := slices.MinFunc(references, func(a, b *yardstick.Reference) int { return cmp.Compare(a.Seconds, b.Seconds) })
	r.theirs, r.reference = best.Seconds, best.Name
	return nil
}

// agree compares a reference's result with the kernel's: sums of n products of numbers in ±1 in
// another order differ by rounding, far below n/2²⁰.
func agree(p prepared, r *yardstick.Reference) error {
	theirs, err := r.Result()
	if err != nil {
		return err
	}
	if len(theirs) != len(p.result) {
		return fault.New(fault.Runtime, "bench kernels", r.Name, "its result has %d elements instead of %d", len(theirs), len(p.result))
	}
	tolerance := 1e-5 + float64(p.terms)/(1<<20)
	for i, v := range theirs {
		if d := math.Abs(float64(v) - float64(p.result[i])); !(d <= tolerance) {
			return fault.New(fault.Runtime, "bench kernels", r.Name, "element %d is %v instead of %v", i, v, p.result[i])
		}
	}
	return nil
}

func (m *meter) print(results []kernelResult) error {
	fmt.Fprintf(m.w, "%d threads, %s\n", m.team.Workers(), m.team.Kernel())
	columns := []string{"kernel", "shape", "ms", "M edges/s", "GFLOP/s", "GB/s"}
	if m.runner != nil {
		columns = append(columns, "theirs ms", "ours/theirs", "yardstick")
	}
	t := table.Left(columns...)
	for _, r := range results {
		t.Row(r.cells()...)
	}
	if err := t.Text(m.w); err != nil {
		return err
	}
	fmt.Fprintln(m.w, `Times are the least of several. GB/s count every operand and result once.`)
	m.skipped.print(m.w)
	return nil
}

func (r kernelResult) cells() []string {
	cells := []string{r.kernel, r.shape, fmt.Sprintf("%.3f", r.seconds*1e3),
		rate(r.edges, r.seconds, 1e6, "%.0f"), rate(r.flops, r.seconds, 1e9, "%.1f"), rate(r.bytes, r.seconds, 1e9, "%.1f")}
	if r.theirs > 0 {
		cells = append(cells, fmt.Sprintf("%.3f", r.theirs*1e3), fmt.Sprintf("%.2f", r.seconds/r.theirs), r.reference)
	}
	return cells
}
