package bench

import (
	"context"
	"fmt"
	"io"
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
	only, err := regexp.Compile(o.Only)
	if err != nil {
		return fault.New(fault.Usage, "bench cuda", "", "--only: %v", err)
	}
	if o.Repeats < 1 || o.Epochs == 1 || o.Epochs < 0 {
		return fault.New(fault.Usage, "bench cuda", "", "--repeats=%d --epochs=%d", o.Repeats, o.Epochs).Then("repeat once or more; train 2 epochs or more, or 0")
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
	fmt.Fprintf(w, "dataset: %s, %d vertices, %d edges, generated: %t\n", d.Meta.Name, d.Meta.Vertices, d.In.Offsets[d.In.Rows()], d.Meta.Synthetic)
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
	for _, table := range []func() ([]gpuCase, func(), error){
		func() ([]gpuCase, func(), error) { return r.gathers(d) },
		func() ([]gpuCase, func(), error) { return r.products(d.In.Rows()), func() {}, nil },
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
	for _, s := range r.missing {
		fmt.Fprintln(w, "left out:", s)
	}
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
	missing    []string // omitted measurements, and the reasons
}

// newRig opens the device, and the available libraries.
func newRig(o CUDAOptions, e gpuEffort, w io.Writer) (*gpuRig, error) {
	d, err := e.open()
	if err != nil {
		return nil, err
	}
	r := &gpuRig{device: d, repeats: o.Repeats, w: w}
	if err := r.open(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *gpuRig) open() (err error) {
	if r.begin, err = r.device.NewEvent(); err != nil {
		return err
	}
	if r.end, err = r.device.NewEvent(); err != nil {
		return err
	}
	if r.own, err = cuda.New(r.device, cuda.Own); err != nil {
		return err
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
	return nil
}

// miss records an omitted measurement, once.
func (r *gpuRig) miss(what string, why error) {
	if s := fmt.Sprintf("%s: %v", what, why); !slices.Contains(r.missing, s) {
		r.missing = append(r.missing, s)
	}
}

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

// header prints the device and its copy rate.
func (r *gpuRig) header(bytes int) error {
	p := r.device.Properties()
	free, total, err := r.device.Memory()
	if err != nil {
		return err
	}
	if r.copying, err = r.copyRate(min(bytes, int(free/8))); err != nil {
		return err
	}
	fmt.Fprintf(r.w, "device: %s, compute capability %d.%d, %d multiprocessors, driver of CUDA %s\n", p.Name, p.Major, p.Minor, p.Multiprocessors, p.Driver)
	fmt.Fprintf(r.w, "memory: %d MiB, %d free; %s GB/s by its clock and bus, copies at %.1f GB/s\n", total>>20, free>>20, rate(p.Bandwidth()), r.copying/1e9)
	if r.blas != nil {
		fmt.Fprintf(r.w, "dense products: %s\n", r.blas.Kernel())
	}
	if r.sparse != nil {
		fmt.Fprintf(r.w, "sparse products: %s\n", r.sparse.Name())
	}
	return nil
}

// rate formats bytes per second as GB/s, "unknown" for 0.
func rate(bytes float64) string {
	if bytes == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.1f", bytes/1e9)
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
