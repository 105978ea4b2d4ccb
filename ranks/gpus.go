package ranks

import (
	"fmt"
	"hash/fnv"
	"io"
	"slices"

	"siafu/cuda"
	"siafu/cuda/device"
	"siafu/cuda/driver"
	"siafu/graph/fault"
	"siafu/graph/partition"
	"siafu/graph/size"
	"siafu/kernels"
	"siafu/ranks/config"
	"siafu/ranks/forecast"
	"siafu/ranks/world"
)

// With --tensor cuda a graph rank computes on a GPU of its host: ranks take them in
// turn, and share them where they are more. Each says which one it has before rank 0
// opens anything, and asks for the memory of its arrays before it makes one.

// gpus are those of a host.
type gpus struct {
	list      func() ([]driver.GPU, error) // one at least
	open      func(n int) (device.Device, error)
	libraries func() []driver.Found // beside the driver; nil: nobody knows
}

// gpusHere are those that the driver knows.
func gpusHere() gpus { return gpus{driver.List, driver.Open, driver.Libraries} }

// gpu is where a member computes.
type gpu struct {
	device.Device
	number int     // of those that this process may use
	id     string  // of all GPUs of the run
	users  []int64 // 1 for each member of the run's world that computes on it; set by meetOnGPUs
}

// Close ends the device. A nil gpu has none.
func (g *gpu) Close() {
	if g != nil {
		_ = g.Device.Close() // the run has ended, one way or the other
	}
}

// openGPU gives a member with a part of the graph its GPU, and has it compute there.
func (r *run) openGPU() error {
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
	r.gpu = &gpu{Device: d, number: n, id: hosts[r.rank] + " " + list[n].ID}
	var first *cuda.Ops
	r.ops = func() (kernels.Ops, error) {
		if first != nil {
			return first.Fork(), nil
		}
		var err error
		if first, err = cuda.New(d, cuda.Products(r.cfg.CUDABLAS)); err != nil {
			return nil, err
		}
		return first, nil
	}
	return nil
}

// localRank counts the graph ranks on a part's host before the one that carries it.
// hosts are those of parts.
func localRank(v world.View, hosts []string, part int) int {
	var here []int
	for q := range v.Parts {
		if r := v.Rank(q); hosts[q] == hosts[part] && !slices.Contains(here, r) {
			here = append(here, r)
		}
	}
	return slices.Index(here, v.Rank(part))
}

// meetOnGPUs finds out who computes on the same GPU. Collective over the world.
func (r *run) meetOnGPUs() error {
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

// cacheFits tells whether so many bytes of each member fit into half of what is
// free on the GPU.
func (g *gpu) cacheFits(bytes int64) bool {
	free, _, err := g.Memory()
	here := int64(0)
	for _, u := range g.users {
		here += u
	}
	return err == nil && size.Product(bytes, here) <= free/2 // who cannot say fails elsewhere
}

// onGPUs refuses a run whose arrays do not fit into the GPUs' memory. Collective over
// the world.
func (g gate) onGPUs(r *run, f *forecast.Forecast) error {
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

// deviceBytes is what arrays of this member take on its GPU.
func (r *run) deviceBytes(f *forecast.Forecast) int64 {
	return r.foretold(f, r.rank, partition.CountShard(r.shard)).Of(forecast.Device)
}

// onGPU is onGPUs of one, given what all members need.
func (g gate) onGPU(r *run, needs []int64) error {
	need, here := int64(0), int64(0)
	for q, user := range r.gpu.users {
		need, here = size.Sum(need, size.Product(user, needs[q])), here+user
	}
	free, total, err := r.gpu.Memory()
	if err != nil || need <= free {
		return err
	}
	text := fmt.Sprintf("GPU %d of %s (%s) is to hold arrays of %s, for %d of the run's ranks or their parts, and %s of %s are free",
		r.gpu.number, r.world.Hosts()[r.rank], r.gpu.Properties().Name, megabytes(need), here, megabytes(free), megabytes(total))
	if g.force {
		fmt.Fprintf(g.warn, "siafu: warning: %s\n", text)
		return nil
	}
	return fault.New(fault.Config, g.op, r.data, "%s", text).
		Then("use more ranks on more GPUs, --recompute, --cache-input off or --features bf16; or train all the same with --force-memory, or on the processor with --tensor cpu")
}

// gpuLines says whether tensor work can run on GPUs, and on which, or why not.
func gpuLines(w io.Writer, g gpus) {
	list, err := g.list()
	if err != nil {
		fmt.Fprintf(w, "tensor cuda=false: %v\n", err)
		return
	}
	fmt.Fprintln(w, "tensor cuda=true")
	for n, each := range list {
		fmt.Fprintf(w, "gpu number=%d name=%q memory_bytes=%d driver=%s id=%s\n", n, each.Name, each.Memory, each.Driver, each.ID)
	}
	if g.libraries != nil {
		libraryLines(w, g.libraries())
	}
}

// libraryLines says which libraries of products there are beside the GPUs.
func libraryLines(w io.Writer, found []driver.Found) {
	for _, l := range found {
		if l.Err != nil {
			fmt.Fprintf(w, "%s=false: %v; install it and name its folder in LD_LIBRARY_PATH\n", l.Name, l.Err)
			continue
		}
		fmt.Fprintf(w, "%s=true version=%s\n", l.Name, l.Version)
	}
}
