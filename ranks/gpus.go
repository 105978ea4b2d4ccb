package ranks

import (
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"unsafe"

	"siafu/cuda"
	"siafu/cuda/device"
	"siafu/cuda/driver"
	"siafu/internal/fault"
	"siafu/internal/size"
	"siafu/kernels"
	"siafu/ranks/config"
	"siafu/ranks/forecast"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
)

// With --tensor cuda a graph rank computes on a GPU of its host. GPUs are assigned to ranks
// round-robin, and shared if there are more ranks. Each rank reports its GPU before rank 0
// opens anything, and checks the memory for its arrays before it allocates one.

type gpus struct {
	list      func() ([]driver.GPU, error) // at least one
	open      func(n int) (device.Device, error)
	libraries func() []driver.Found // in addition to the driver; nil: unknown
}

func gpusHere() gpus { return gpus{driver.List, driver.Open, driver.Libraries} }

type gpu struct {
	device.Device
	world  world.Comm
	number int     // index among the GPUs visible to this process
	id     string  // unique among the run's GPUs
	users  []int64 // by member of the run's world: 1 if it computes on this GPU; set by agreeOnGPUs
}

// deviceUser is a world whose library may access device memory directly, such as mpi's.
type deviceUser interface {
	UseDevice(call, context unsafe.Pointer)
}

// shareWithMPI permits or forbids the world's library to access the device's memory.
func (g *gpu) shareWithMPI(w world.Comm, permit bool) {
	user, uses := w.(deviceUser)
	d, threaded := g.Device.(device.Threaded)
	if !uses || !threaded {
		return
	}
	if !permit {
		user.UseDevice(nil, nil)
		return
	}
	user.UseDevice(d.Thread())
}

// Close ends the device.
func (g *gpu) Close() {
	g.shareWithMPI(g.world, false)
	_ = g.Device.Close() // the run has ended, so an error has no consequence
}

// openGPU opens the GPU of a member with a part of the graph, and sets the work that the
// configuration assigns to it.
func (r *member) openGPU() error {
	if r.cfg.Tensor != config.TensorCUDA || r.isServer() {
		return nil
	}
	list, err := r.gpus.list()
	if err != nil {
		return err
	}
	hosts := r.world.Hosts()
	n := localRank(r.view, hosts, r.rank) % len(list)
	d, err := r.gpus.open(n)
	if err != nil {
		return err
	}
	r.gpu = &gpu{Device: d, world: r.world, number: n, id: hosts[r.rank] + " " + list[n].ID}
	r.closes(r.gpu.Close, true)
	if r.cfg.GPUsApply() {
		return nil
	}
	r.gpu.shareWithMPI(r.world, true)
	var first *cuda.Ops
	r.ops = func() (kernels.Ops, error) {
		if first != nil {
			return first.Fork(), nil
		}
		var err error
		if first, err = cuda.New(d, cuda.Products(r.cfg.CUDABLAS)); err != nil {
			return nil, err
		}
		if r.limits.Log != nil {
			first.Tell(r.limits.Log)
		}
		return first, nil
	}
	return nil
}

// applyOnGPU makes the backend for the tensor work, but not the graph work, of a graph rank on
// its GPU.
func (r *joined) applyOnGPU() (tensor.Backend, error) {
	queues, err := cuda.Queues(r.gpu.Device, cuda.Products(r.cfg.CUDABLAS), tensor.DeviceQueues)
	if err != nil {
		return nil, err
	}
	return tensor.NewDevice(queues), nil
}

// localRank returns the number of graph ranks on a part's host that come before the rank of the
// part. hosts has the host of each part.
func localRank(v world.View, hosts []string, part int) int {
	var here []int
	for q := range v.Parts {
		if r := v.Rank(q); hosts[q] == hosts[part] && !slices.Contains(here, r) {
			here = append(here, r)
		}
	}
	return slices.Index(here, v.Rank(part))
}

// agreeOnGPUs finds the members that share a GPU. Collective over the world.
func (r *member) agreeOnGPUs() error {
	if r.cfg.Tensor != config.TensorCUDA {
		return nil
	}
	ids := make([]int64, r.world.Size())
	if r.gpu != nil {
		h := fnv.New64a()
		_, _ = io.WriteString(h, r.gpu.id)
		ids[r.rank] = int64(h.Sum64() | 1) // servers have 0
	}
	if err := world.SumInt64s(r.world, ids); err != nil || r.gpu == nil {
		return err
	}
	r.gpu.users = make([]int64, len(ids))
	for q, id := range ids {
		if id == ids[r.rank] {
			r.gpu.users[q] = 1
		}
	}
	return nil
}

// cacheFits reports whether the given bytes per member fit into half of the GPU's free memory.
func (g *gpu) cacheFits(bytes int64) bool {
	free, _, err := g.Memory()
	here := int64(0)
	for _, u := range g.users {
		here += u
	}
	return err == nil && size.Product(bytes, here) <= free/2 // an unknown size fails elsewhere
}

// onGPUs returns a fault if the arrays of the run do not fit into the memory of the GPUs. Collective
// over the world.
func (g memoryGate) onGPUs(r *joined, f *forecast.Forecast) error {
	if r.cfg.Tensor != config.TensorCUDA {
		return nil
	}
	needs := make([]int64, r.world.Size())
	if r.gpu != nil {
		needs[r.rank] = r.deviceBytes(f)
	}
	err := world.SumInt64s(r.world, needs)
	if err == nil && r.gpu != nil {
		err = g.onGPU(r, needs)
	}
	return agree(r.world, err)
}

// deviceBytes returns the bytes of this member's arrays on its GPU.
func (r *joined) deviceBytes(f *forecast.Forecast) int64 {
	return r.partEstimate(f, r.rank, r.counts()).Of(forecast.Device)
}

// onGPU checks the memory of this member's GPU. needs has the bytes of all members.
func (g memoryGate) onGPU(r *joined, needs []int64) error {
	need, here := int64(0), int64(0)
	for q, user := range r.gpu.users {
		need, here = size.Sum(need, size.Product(user, needs[q])), here+user
	}
	free, total, err := r.gpu.Memory()
	if err != nil || need <= free {
		return err
	}
	text := fmt.Sprintf("GPU %d of %s (%s) needs %s for arrays of %d of the run's ranks or parts, but only %s of %s are free",
		r.gpu.number, r.world.Hosts()[r.rank], r.gpu.Properties().Name, megabytes(need), here, megabytes(free), megabytes(total))
	if g.force {
		fmt.Fprintf(g.warn, "siafu: warning: %s\n", text)
		return nil
	}
	less := ""
	if g.op == "train" {
		less = ", --recompute, --cache-input off or --precision features=bf16"
	}
	return fault.New(fault.Config, g.op, r.data, "%s", text).
		Then("use more ranks on more GPUs%s; or %s anyway with --force-memory, or on the CPU with --tensor cpu", less, g.op)
}

// findGPUs reports the GPUs for tensor work, or why there are none.
func findGPUs(f *doctorReport, g gpus) {
	list, err := g.list()
	if err != nil {
		f.add("tensor", err.Error(), "cuda", false)
		return
	}
	f.add("tensor", "", "cuda", true)
	for n, each := range list {
		f.add("gpu", "", "number", n, "name", each.Name, "memory_bytes", each.Memory, "driver", each.Driver, "id", each.ID)
	}
	if g.libraries != nil {
		findLibraries(f, g.libraries())
	}
}

// findLibraries reports the available libraries of matrix products.
func findLibraries(f *doctorReport, found []driver.Found) {
	for _, l := range found {
		if l.Err != nil {
			f.add("", fmt.Sprintf("%v; install it and name its folder in LD_LIBRARY_PATH", l.Err), l.Name, false)
			continue
		}
		f.add("", "", l.Name, true, "version", l.Version)
	}
}
