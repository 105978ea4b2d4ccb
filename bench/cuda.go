package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"siafu/bench/trials"
	"siafu/cuda"
	"siafu/cuda/device"
	"siafu/cuda/driver"
	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// CUDAOptions are the options of bench cuda, which uses the driver's first GPU.
type CUDAOptions struct {
	Data    string  `arg:"" optional:"" help:"Dataset folder. None: a synthetic graph is generated."`
	Like    string  `default:"reddit-small" help:"Published graph whose statistics the synthetic graph has."`
	Scale   float64 `default:"1" help:"Factor for vertices and edges of the synthetic graph."`
	Repeats int     `default:"15" help:"Repetitions of each measurement after a warm-up. The median counts."`
	Epochs  int     `default:"10" help:"Epochs of a GCN and of a GAT to train, 2 or more; 0: none."`
	Only    string  `default:"" placeholder:"REGEX" help:"Regular expression for the kernels and shapes to measure."`
}

// gpuEffort has the extent of measurements, and the device.
type gpuEffort struct {
	copied int // maximum bytes of a copy
	open   func() (device.Device, error)
	torch  string        // PyTorch's name of the device
	turn   time.Duration // of PyTorch's epochs
	train  func(ctx context.Context, data string, c config.Config) (*runfolder.Run, error)
}

// Run measures gathers, dense products and epochs, and those of NVIDIA's libraries and
// PyTorch, and prints a table of each. Without a GPU or a driver it returns a Config fault
// before it makes a graph.
func (o CUDAOptions) Run(ctx context.Context, w io.Writer) error {
	if _, err := driver.List(); err != nil {
		return err
	}
	ctx, stop := trials.UntilInterrupted(ctx)
	defer stop()
	return measureGPU(ctx, o, gpuEffort{
		copied: 1 << 30, torch: "cuda", turn: 5 * time.Second,
		open: func() (device.Device, error) { return driver.Open(0) },
		train: func(ctx context.Context, data string, c config.Config) (*runfolder.Run, error) {
			c.Tensor = config.TensorCUDA
			return trial(ctx, "bench cuda", data, c)
		},
	}, w)
}

func measureGPU(ctx context.Context, o CUDAOptions, e gpuEffort, w io.Writer) error {
	only, err := pattern("bench cuda", o.Only)
	if err != nil {
		return err
	}
	if o.Repeats < 1 || o.Epochs == 1 || o.Epochs < 0 {
		return fault.New(fault.Usage, "bench cuda", "", "--repeats=%d --epochs=%d", o.Repeats, o.Epochs).
			Then("repeat once or more; train 2 epochs or more, or 0")
	}
	if o.Data == "" {
		tmp, err := generated(o.Like, o.Scale)
		if err != nil {
			return err
		}
		defer tmp.Close()
		o.Data = filepath.Join(tmp.Path, o.Like)
	}
	d, err := graph.Open(o.Data)
	if err != nil {
		return err
	}
	defer d.Close()
	fmt.Fprintf(w, "dataset: %s, %d vertices, %d edges, generated: %t\n", d.Meta.Name, d.Meta.Vertices,
		d.In.Offsets[d.In.Rows()], d.Meta.Synthetic)
	if err := measureGPUKernels(ctx, o, e, only, d, w); err != nil || o.Epochs == 0 {
		return err
	}
	return gpuEpochs(ctx, o, e, d, w)
}

// measureGPUKernels opens the device for the tables of kernels, and closes it.
func measureGPUKernels(ctx context.Context, o CUDAOptions, e gpuEffort, only *regexp.Regexp, d *graph.Dataset, w io.Writer) (err error) {
	defer mapped.Catch(&err)
	r, err := newRig(o, e, w)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.header(e.copied); err != nil {
		return err
	}
	lines := 0
	for _, table := range []func(*mapped.Arena) []gpuCase{
		func(a *mapped.Arena) []gpuCase { return r.gathers(a, d) },
		func(*mapped.Arena) []gpuCase { return r.products(d.In.Rows()) },
	} {
		n, err := r.table(ctx, table, only)
		if err != nil {
			return err
		}
		lines += n
	}
	if lines == 0 && o.Only != "" {
		return fault.New(fault.Usage, "bench cuda", "", "--only=%q matches no line", o.Only)
	}
	r.missing.print(w)
	_, err = fmt.Fprintln(w, `Times are medians by events of the device. GB/s count a row once for each edge that gathers it, and all
other operands once: more than "of device" allows comes from its caches. "differ" is the greatest
difference of an element from siafu's, in parts of it.`)
	return err
}

// gpuRig is a device while kernels on it are measured.
type gpuRig struct {
	device     device.Device
	own        *cuda.Ops
	blas       *cuda.Ops     // nil without cuBLAS
	sparse     device.Sparse // nil without cuSPARSE
	begin, end device.Event
	repeats    int
	copying    float64 // bytes a second, read and written
	w          io.Writer
	missing    omissions
}

func newRig(o CUDAOptions, e gpuEffort, w io.Writer) (*gpuRig, error) {
	d, err := e.open()
	if err != nil {
		return nil, err
	}
	r := &gpuRig{device: d, repeats: o.Repeats, w: w}
	r.begin, err = d.NewEvent()
	if err == nil {
		r.end, err = d.NewEvent()
	}
	if err == nil {
		r.own, err = cuda.New(d, cuda.Own)
	}
	if err != nil {
		r.own = nil
		r.close()
		return nil, err
	}
	if r.blas, err = cuda.New(r.device, cuda.CuBLAS); err != nil {
		r.blas = nil
		r.miss("cuBLAS", err)
	}
	if d, ok := r.device.(device.Libraries); ok {
		if r.sparse, err = d.Sparse(r.own.Stream()); err != nil {
			r.sparse = nil
			r.miss("cuSPARSE", err)
		}
	}
	return r, nil
}

func (r *gpuRig) miss(what string, why error) { r.missing.add(fmt.Sprintf("%s: %v", what, why)) }

// close closes everything. It ignores errors: a failed device has failed before.
func (r *gpuRig) close() {
	if r.sparse != nil {
		_ = r.sparse.Close()
	}
	for _, o := range []*cuda.Ops{r.blas, r.own} {
		if o != nil {
			o.Close()
		}
	}
	_ = r.device.Close()
}

func (r *gpuRig) header(bytes int) error {
	p := r.device.Properties()
	free, total, err := r.device.Memory()
	if err != nil {
		return err
	}
	if r.copying, err = r.copyRate(min(bytes, int(free/8))); err != nil {
		return err
	}
	fmt.Fprintf(r.w, "device: %s, compute capability %d.%d, %d multiprocessors, driver of CUDA %s\n", p.Name, p.Major,
		p.Minor, p.Multiprocessors, p.Driver)
	bandwidth := "unknown"
	if p.Bandwidth() > 0 {
		bandwidth = fmt.Sprintf("%.1f", p.Bandwidth()/1e9)
	}
	fmt.Fprintf(r.w, "memory: %d MiB, %d free; %s GB/s by its clock and bus, copies at %.1f GB/s\n", total>>20,
		free>>20, bandwidth, r.copying/1e9)
	if r.blas != nil {
		fmt.Fprintf(r.w, "dense products: %s\n", r.blas.Kernel())
	}
	if r.sparse != nil {
		fmt.Fprintf(r.w, "sparse products: %s\n", r.sparse.Name())
	}
	return nil
}

// copyRate returns the bytes per second that a copy on the device reads and writes.
func (r *gpuRig) copyRate(bytes int) (float64, error) {
	var at [2]device.Ptr
	for i := range at {
		p, err := r.device.Alloc(bytes)
		if err != nil {
			return 0, err
		}
		defer r.device.Free(p)
		at[i] = p
		if err := r.own.Stream().Set(p, 1, bytes); err != nil {
			return 0, err
		}
	}
	seconds, err := r.medians([]gpuSide{{"copy", r.own.Stream(), func() error { return r.own.Stream().Copy(at[0], at[1], bytes) }}})
	if err != nil {
		return 0, err
	}
	return 2 * float64(bytes) / seconds[0], nil
}

type gpuCase struct {
	work
	prepare func(a *mapped.Arena) (gpuWork, error)
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

// table measures and prints the matching lines of a table, and returns their number. The arena
// has the common operands of the lines.
func (r *gpuRig) table(ctx context.Context, lines func(*mapped.Arena) []gpuCase, only *regexp.Regexp) (int, error) {
	a := mapped.NewArena()
	defer a.Free()
	cases := slices.DeleteFunc(lines(a), func(c gpuCase) bool { return !c.matches(only) })
	if len(cases) > 0 {
		fmt.Fprintf(r.w, "\n%-18s %-34s %10s %10s %9s %9s %9s %9s %10s %9s\n", "kernel", "shape", "ms", "M edges/s", "GFLOP/s", "GB/s",
			"of device", "of copy", "ours/its", "differ")
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
	kernel, ratio, apart := c.kernel, "", ""
	if !math.IsNaN(differ) {
		kernel, ratio, apart = "  "+side, fmt.Sprintf("%.2f", ours/seconds), fmt.Sprintf("%.1e", differ)
	}
	fmt.Fprintf(r.w, "%-18s %-34s %10.4f %10s %9s %9s %9s %9s %10s %9s\n", kernel, c.shape, seconds*1e3,
		rate(c.edges, seconds, 1e6, "%.0f"), rate(c.flops, seconds, 1e9, "%.0f"), rate(c.bytes, seconds, 1e9, "%.1f"),
		rate(c.bytes, seconds, r.device.Properties().Bandwidth()/100, "%.0f %%"),
		rate(c.bytes, seconds, r.copying/100, "%.0f %%"), ratio, apart)
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
			return d, fault.New(fault.Runtime, "bench cuda", c.kernel+" "+c.shape,
				"row %d, column %d is %v by %s and %v by siafu, which differ by %.2g where rounding explains %.2g",
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
