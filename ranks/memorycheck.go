package ranks

import (
	"fmt"
	"io"
	"slices"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/size"
	"siafu/ranks/forecast"
	"siafu/ranks/world"
)

// Memory is checked before allocation: for an in-process world before its ranks start, for
// weights before rank 0 writes anything, and for all arrays of all ranks on a host when their
// shards are known. A run allocates no array and reads no weights before it has passed.

// memoryGate admits or refuses a command by its memory needs.
type memoryGate struct {
	op    string    // the command, "train"
	force bool      // continue despite a refusal (--force-memory)
	warn  io.Writer // for warnings
}

func trainGate(c *Config, out IO) memoryGate { return memoryGate{"train", c.ForceMemory, out.Err} }

func (r *member) trainGate() memoryGate { return trainGate(&r.cfg, r.out) }

// need is the memory of some ranks: at their peak, and the part that the system cannot
// reclaim.
type need struct{ peak, certain int64 }

// and adds a rank.
func (n need) and(m forecast.Memory) need {
	return need{size.Sum(n.peak, m.Peak()), size.Sum(n.certain, m.Certain())}
}

// Memory of an in-process rank for the other ranks, and of a worker for a goroutine and its
// kernels' arguments. A thousand ranks on a small graph took 3.4 GB, twenty thousand workers
// 0.25 GB; these constants are a little less.
const (
	pairBytes   = 2 << 10
	workerBytes = 12 << 10
)

// world returns a fault if the memory is too small for a world with the given number of ranks or
// parts in this process, and threads per rank. 0 threads count as 1.
func (g memoryGate) world(ranks, threads int) error {
	ranks, threads = max(ranks, 1), max(threads, 1)
	n := int64(size.Sum(size.Product(ranks, ranks, pairBytes), size.Product(ranks, threads, workerBytes)))
	if g.force {
		return nil
	}
	m := host.AwaitMemory(n)
	if n <= m.Available {
		return nil
	}
	err := fault.New(fault.Config, g.op, "", "%d ranks or parts with %d threads each need about %s before any data, but %s has %s",
		ranks, threads, megabytes(n), m.LimitedBy, megabytes(m.Available)).
		Then("use fewer ranks, parts or threads; more than the number of processors are not faster")
	if l, launched := world.Launched(); launched {
		return failOnRank0(l, err)
	}
	return err
}

// weights returns a fault if the weights, and arrays of the same size, do not fit on this host for
// any partition of the graph. One rank calls it.
func (g memoryGate) weights(r *member, meta *graph.Meta) error {
	f, _, err := forecast.Of(r.cfg, meta, r.Graph, r.Servers, false)
	if err != nil || g.force {
		return err
	}
	hosts, least := r.world.Hosts(), need{}
	for q, host := range hosts {
		if host == hosts[r.rank] {
			least = least.and(r.partEstimate(f, q, partition.RankReport{}))
		}
	}
	least.peak = least.certain
	if m := host.AwaitMemory(least.peak); compareMemory(least.peak, least.certain, m.Available) == refuse {
		return g.refusal(r, f, least, m)
	}
	return nil
}

// all estimates the memory of all ranks on this host. It warns if the peak exceeds the
// available memory. It refuses the run if the arrays alone exceed it, because the system
// cannot reclaim them. Collective over the world.
func (g memoryGate) all(r *joined, f *forecast.Forecast) error {
	n, part, err := r.hostNeed(f)
	if err != nil {
		return err
	}
	m := host.AwaitMemory(n.certain)
	switch compareMemory(n.peak, n.certain, m.Available) {
	case fits:
		if r.cfg.Survive && r.kind == "mpi" && r.isFirstOnHost() {
			g.warnOfLosses(r, n, part, m)
		}
	case refuse:
		if !g.force && r.view.Number == 0 { // after a loss, the run may continue more slowly
			err = g.refusal(r.member, f, n, m)
			break
		}
		fallthrough
	case doubts:
		if r.isFirstOnHost() {
			fmt.Fprintf(g.warn, "siafu: warning: %s\n", n.text(r.member, m))
		}
	}
	return agree(r.world, err)
}

// warnOfLosses warns if this host needs n, which fits, but has no memory for another part.
func (g memoryGate) warnOfLosses(r *joined, n, part need, m host.Memory) {
	after := need{size.Sum(n.peak, part.peak), size.Sum(n.certain, part.certain)}
	if r.cfg.Spares == 0 && compareMemory(after.peak, after.certain, m.Available) != fits {
		fmt.Fprintf(g.warn, "siafu: warning: after a loss, with another part, %s; set --survive spares=N, the number of ranks that may be lost, "+
			"or set more --parts\n", after.text(r.member, m))
	}
}

// checkMemory checks the memory of the run, before any allocation. Collective over the world.
func (r *joined) checkMemory() error {
	g := r.trainGate()
	f, err := r.forecast()
	if err != nil {
		return err
	}
	if err := g.all(r, f); err != nil {
		return err
	}
	return g.onGPUs(r, f)
}

func (g memoryGate) refusal(r *member, f *forecast.Forecast, n need, m host.Memory) error {
	smaller := ""
	if f.Net.LocalLayers > 0 && r.cfg.RecomputeGhosts != "auto" {
		smaller = fmt.Sprintf("receive more ghost rows than with --recompute-ghosts %s, ", r.cfg.RecomputeGhosts)
	}
	return fault.New(fault.Config, g.op, r.data, "%s", n.text(r, m)).
		Then(`%srun "siafu plan" to see what fits, or %s anyway with --force-memory`, smaller, g.op)
}

// text compares a need with the available memory.
func (n need) text(r *member, m host.Memory) string {
	return fmt.Sprintf("the ranks on %s need about %s at the peak and %s permanently, but %s has %s",
		r.world.Hosts()[r.rank], megabytes(n.peak), megabytes(n.certain), m.LimitedBy, megabytes(m.Available))
}

// megabytes formats a number of bytes. A positive number is never printed as 0.
func megabytes(bytes int64) string {
	return fmt.Sprintf("%d MB", (bytes+1e6-1)/1e6)
}

// hostNeed sums the ranks on this host, and the program once per process. part is the need of the
// largest part on any host. Collective over the world.
func (r *joined) hostNeed(f *forecast.Forecast) (here, part need, err error) {
	report := partition.RankReport{}
	if r.shard != nil {
		report = r.counts()
	}
	m := r.partEstimate(f, r.rank, report)
	mine := need{}.and(m)
	if r.cfg.Scratch != "" { // the rank is meant to run with less memory than its files
		mine.peak -= m.Of(forecast.Mapped)
	}
	all := make([]int64, 2*r.world.Size())
	all[2*r.rank], all[2*r.rank+1] = mine.peak, mine.certain
	if err := world.SumInt64s(r.world, all); err != nil {
		return need{}, need{}, err
	}
	hosts := r.world.Hosts()
	for q, host := range hosts {
		part = need{max(part.peak, all[2*q]), max(part.certain, all[2*q+1])}
		if host != hosts[r.rank] {
			continue
		}
		here = need{size.Sum(here.peak, all[2*q]), size.Sum(here.certain, all[2*q+1])}
		if r.speaksForProcess(q) {
			here.peak = size.Sum(here.peak, forecast.Program)
		}
	}
	return here, part, nil
}

// speaksForProcess reports whether the memory of member q's process is counted with q.
func (r *member) speaksForProcess(q int) bool {
	if r.kind != "mpi" { // a single process
		return q == r.rank
	}
	return q == r.view.Carried(r.view.Rank(q))[0]
}

// cacheFits returns 1 if the ÂX of all ranks of this host or GPU fits into half of its free memory.
// If ÂX is stored on both, it must fit into both.
func (r *joined) cacheFits() int64 {
	if r.cfg.Scratch != "" { // it can be in the scratch file
		return 1
	}
	bytes := forecast.CachedInputBytes(r.cfg, r.net, int64(r.shard.NumOwn()), int64(r.shard.NumGhosts()))
	fits := r.gpu == nil || r.gpu.cacheFits(bytes)
	if fits && !(r.gpu != nil && r.cfg.GPUsGather()) {
		fits = r.fitsHost(bytes)
	}
	if fits {
		return 1
	}
	return 0
}

// fitsHost reports whether the given bytes of each rank on this host fit into half of its free
// memory.
func (r *joined) fitsHost(bytes int64) bool {
	return size.Product(bytes, r.ranksHere()) <= host.AvailableMemory()/2
}

// ranksHere returns the number of ranks on this host.
func (r *joined) ranksHere() (n int64) {
	for _, h := range r.world.Hosts() {
		if h == r.world.Hosts()[r.rank] {
			n++
		}
	}
	return n
}

// memoryVerdict is the result of comparing a forecast with the available memory.
type memoryVerdict int

const (
	fits memoryVerdict = iota
	doubts
	refuse
)

// compareMemory compares the peak of a forecast, and its certain part, with a host's memory.
func compareMemory(peak, certain, there int64) memoryVerdict {
	switch {
	case peak <= there:
		return fits
	case certain <= there:
		return doubts // files leave memory when it is needed elsewhere
	}
	return refuse
}

func (r *member) isFirstOnHost() bool {
	hosts := r.world.Hosts()
	return slices.Index(hosts, hosts[r.rank]) == r.rank
}

// partEstimate estimates the memory of rank q, a graph rank with the given partition.
func (r *member) partEstimate(f *forecast.Forecast, q int, p partition.RankReport) forecast.Memory {
	if q >= r.Graph {
		return f.ServerRank(r.clients(q - r.Graph))
	}
	return f.GraphRank(q, p)
}
