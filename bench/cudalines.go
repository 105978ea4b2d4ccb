package bench

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"

	"siafu/cuda/device"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// gpuCase is a line of a table. Bytes and flops are per call.
type gpuCase struct {
	kernel, shape       string
	edges, bytes, flops float64
	prepare             func(a *mapped.Arena) (gpuWork, error)
}

// gpuWork is a line whose operands are on the device.
type gpuWork struct {
	sides []gpuSide // siafu's first
	// results of each side, on the device; nil: no comparison
	results []kernels.Mat
	terms   func(row int) int // of a sum in a row of the results
	close   func()            // nil: only the arena must be freed
}

// gpuSide is one way to compute a line.
type gpuSide struct {
	name   string
	stream device.Stream // of its work
	call   func() error
}

// table measures and prints the matching lines of a table, and returns their number.
func (r *gpuRig) table(ctx context.Context, lines func() ([]gpuCase, func(), error), only *regexp.Regexp) (int, error) {
	cases, done, err := lines()
	if err != nil {
		return 0, err
	}
	defer done()
	cases = slices.DeleteFunc(cases, func(c gpuCase) bool { return !only.MatchString(c.kernel + " " + c.shape) })
	if len(cases) > 0 {
		fmt.Fprintf(r.w, "\n%-18s %-34s %10s %10s %9s %9s %9s %9s %10s %9s\n", "kernel", "shape", "ms", "M edges/s", "GFLOP/s", "GB/s", "of device", "of copy", "ours/its", "differ")
	}
	for _, c := range cases {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := r.line(c); err != nil {
			return 0, err
		}
	}
	return len(cases), nil
}

// line measures a line and prints a row for each side.
func (r *gpuRig) line(c gpuCase) error {
	a := mapped.NewArena()
	defer a.Free()
	work, err := c.prepare(a)
	if work.close != nil {
		defer work.close()
	}
	if err != nil {
		return err
	}
	if err := r.device.Synchronize(); err != nil {
		return err
	}
	seconds, err := r.medians(work.sides)
	if err != nil {
		return err
	}
	for i, s := range work.sides {
		differ := math.NaN()
		if i > 0 {
			if differ, err = r.compare(c, s.name, work, i); err != nil {
				return err
			}
		}
		r.print(c, s.name, seconds[i], seconds[0], differ)
	}
	return nil
}

// print prints a side of a line; siafu's has the line's name.
func (r *gpuRig) print(c gpuCase, side string, seconds, ours, differ float64) {
	cell := func(work, unit float64, format string) string {
		if work == 0 || unit == 0 {
			return "-"
		}
		return fmt.Sprintf(format, work/seconds/unit)
	}
	kernel, ratio, apart := c.kernel, "", ""
	if !math.IsNaN(differ) {
		kernel, ratio, apart = "  "+side, fmt.Sprintf("%.2f", ours/seconds), fmt.Sprintf("%.1e", differ)
	}
	fmt.Fprintf(r.w, "%-18s %-34s %10.4f %10s %9s %9s %9s %9s %10s %9s\n", kernel, c.shape, seconds*1e3,
		cell(c.edges, 1e6, "%.0f"), cell(c.flops, 1e9, "%.0f"), cell(c.bytes, 1e9, "%.1f"),
		cell(c.bytes, r.device.Properties().Bandwidth()/100, "%.0f %%"), cell(c.bytes, r.copying/100, "%.0f %%"), ratio, apart)
}

// warmUps is the number of uncounted runs of each side: code is compiled, caches are filled
// and clocks rise.
const warmUps = 3

// medians runs the sides interleaved and returns the median seconds of each.
func (r *gpuRig) medians(sides []gpuSide) ([]float64, error) {
	times := make([][]float64, len(sides))
	for turn := range warmUps + r.repeats {
		for i, s := range sides {
			seconds, err := r.once(s)
			if err != nil {
				return nil, err
			}
			if turn >= warmUps {
				times[i] = append(times[i], seconds)
			}
		}
	}
	middle := make([]float64, len(sides))
	for i, t := range times {
		slices.Sort(t)
		middle[i] = t[len(t)/2]
	}
	return middle, nil
}

// once returns the seconds between events before and after a call.
func (r *gpuRig) once(s gpuSide) (seconds float64, err error) {
	defer mapped.Catch(&err)
	for _, step := range []func() error{
		func() error { return s.stream.Record(r.begin) },
		s.call,
		func() error { return s.stream.Record(r.end) },
		r.end.Synchronize,
	} {
		if err := step(); err != nil {
			return 0, err
		}
	}
	ms, err := r.end.Since(r.begin)
	return max(ms/1e3, 1e-9), err
}

// compare returns the largest relative difference of a side's result from siafu's. It returns
// a fault if rounding cannot explain the difference.
//
// A sum of n positive terms, each rounded twice, has a relative error of at most (n+2) 2⁻²⁴ in
// any order (Higham 2002, §4.2, to first order). Two such sums differ by at most twice that.
// Operands are positive, and one term is added for the second order.
func (r *gpuRig) compare(c gpuCase, side string, work gpuWork, i int) (float64, error) {
	ours, theirs := r.read(work.results[0]), r.read(work.results[i])
	largest, cols := 0.0, work.results[0].Cols
	for at, x := range ours {
		want, got := float64(x), float64(theirs[at])
		d := math.Abs(got - want)
		if d > 0 && want != 0 {
			d /= math.Abs(want)
		}
		if bound := 2 * float64(work.terms(at/cols)+3) / (1 << 24); !(d <= bound) {
			return d, fault.New(fault.Runtime, "bench cuda", c.kernel+" "+c.shape, "row %d, column %d is %v by %s and %v by siafu, which differ by %.2g where rounding explains %.2g",
				at/cols, at%cols, got, side, want, d, bound)
		}
		largest = max(largest, d)
	}
	return largest, nil
}

func (r *gpuRig) read(m kernels.Mat) []float32 {
	x := make([]float32, m.Rows*m.Cols)
	kernels.Read(r.own, x, m)
	return x
}

// positive returns a matrix on the device with values from 1/2 to 1.
func (r *gpuRig) positive(a *mapped.Arena, rows, cols int, seed uint64) kernels.Mat {
	m := kernels.NewMat(r.own, a, rows, cols)
	kernels.Write(r.own, m, positives(rows*cols, seed))
	return m
}

// positives returns n such values, which depend on their position and the seed.
func positives(n int, seed uint64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 0.5 + float32(scramble(uint64(i)^seed<<40)>>41)/(1<<24)
	}
	return x
}
