package dorylus

import (
	"fmt"
	"math"

	"siafu/graph/partition"
	"siafu/ranks/forecast"
)

// gpu is a model of GPU with its published figures: bytes a second of its memory, float32
// operations a second, and bytes of its memory.
type gpu struct {
	name                    string
	bandwidth, flops, bytes float64
}

// gpus has the GPU of each instance. A p2.xlarge has one of the two processors of a K80 (NVIDIA
// Tesla K80 data sheet, halved), a p3.2xlarge a V100 (NVIDIA Tesla V100 data sheet, PCIe).
var gpus = map[string]gpu{
	"p2.xlarge":  {"K80", 240e9, 4.37e12, 12e9},
	"p3.2xlarge": {"V100", 900e9, 14e12, 16e9},
}

// bus is the rate of PCIe 3.0 with 16 lanes in bytes per second.
const bus = 15.75e9

// launch is the work of a kernel in an epoch: bytes of GPU memory and operations, as in the table
// of docs/gpu.md.
type launch struct {
	task         string
	bytes, flops float64
}

// device is the work of an epoch on GPUs, on a graph of the paper's size.
type device struct {
	launches []launch
	memory   func(servers int) float64 // bytes on the GPU of one of a number of servers
}

// seconds returns the time of a task on each of a number of GPUs, of all tasks for "". A kernel
// takes as long as the slower of its memory accesses and its operations (roofline).
func (d *device) seconds(task string, on gpu, count int) (sum float64) {
	for _, k := range d.launches {
		if task == "" || k.task == task {
			sum += max(k.bytes/on.bandwidth, k.flops/on.flops) / float64(count)
		}
	}
	return sum
}

// shortage returns why a graph does not fit on the GPUs of a cluster, "" if it fits.
func (d *device) shortage(c cluster) string {
	on := gpus[c.instance]
	if need := d.memory(c.count); need > on.bytes {
		return fmt.Sprintf("a %s of %s has %.0f GB, and an epoch needs %.1f GB", on.name, c, on.bytes/1e9, need/1e9)
	}
	return ""
}

// deviceOf returns the work on GPUs of a network on a graph of the paper's size. ghosts is the
// number of ghosts of each of b.Ranks ranks at that size.
func (b *bench) deviceOf(g *graphOf, network string, ghosts float64) (*device, error) {
	config, err := parsed(b.flags(network, gpuOnly.flags...))
	if err != nil {
		return nil, err
	}
	if err := config.Validate(); err != nil {
		return nil, err
	}
	meta := *g.meta
	meta.Vertices, meta.Edges = int64(g.vertices), int64(g.edges)
	_, ratio := g.ratios()
	for _, n := range []*int64{&meta.Train, &meta.Val, &meta.Test, &meta.FeatureNNZ} {
		*n = int64(ratio * float64(*n))
	}
	// Every server's counts are the means.
	counts := func(servers int) partition.RankReport {
		n := float64(servers)
		own, edges := g.vertices/n, g.edges/n
		others := min(shrunk(ghosts, b.Ranks, servers, b.GhostPower), g.vertices-own)
		cut := edges * others / (own + others)
		return partition.RankReport{Vertices: int64(own), Edges: int64(edges), Cut: int64(cut),
			Ghosts: int64(others), SendRows: int64(others),
			Train: meta.Train / int64(servers), TrainEdges: int64(edges), TrainCut: int64(cut),
			FeatureNNZ: meta.FeatureNNZ / int64(servers)}
	}
	of := func(servers int) (*forecast.Forecast, partition.RankReport, error) {
		f, _, err := forecast.Of(config, &meta, servers, 1, true) // ÂX is cached as in the trainings here
		return f, counts(servers), err
	}
	f, _, err := of(b.Ranks)
	if err != nil {
		return nil, err
	}
	return &device{launches: launchesOf(f, g.vertices, g.edges), memory: func(servers int) float64 {
		f, own, err := of(servers)
		if err != nil {
			return math.Inf(1)
		}
		return float64(f.GraphRank(0, own).Of(forecast.Device))
	}}, nil
}

// launchesOf returns the kernels of an epoch of GCN or GAT on n vertices with e edges and their
// self loops.
func launchesOf(f *forecast.Forecast, n, e float64) (list []launch) {
	add := func(task string, bytes, flops float64) { list = append(list, launch{task, bytes, flops}) }
	e += n
	dims := f.Net.Dims
	for l, g := range f.Gathers() {
		in, out := float64(dims[l]), float64(dims[l+1])
		if g.Heads > 0 {
			out = float64(g.Columns)
		}
		product := func(task string) { add(task, 4*(n*in+in*out+n*out), 2*n*in*out) }
		product("AV")
		product("∇AV") // of weights
		if l > 0 {
			product("∇AV") // of inputs
		}
		if c := float64(dims[l+1]); l+2 < len(dims) {
			add("AV", 8*n*c, 3*n*c)
			add("∇AV", 12*n*c, 2*n*c)
		}
		w, h := float64(g.Gathered()), float64(g.Heads)
		switch {
		case w > 0 && h > 0:
			add("GA", e*(4+4*(w+h))+8*n*w, 2*e*w+25*e*h)
			add("∇GA", e*(4+4*(w+h))+4*n*w, 2*e*w+25*e*h)
			add("∇GA", e*(4+4*(w+3*h))+8*n*w, 4*e*w+25*e*h)
		case w > 0:
			add("GA", e*(8+4*w)+n*(24+4*w), 2*e*w)
			if g.Backward {
				add("∇GA", e*(8+4*w)+n*(24+4*w), 2*e*w)
			}
		}
	}
	classes := float64(dims[len(dims)-1])
	add("loss", 8*n*classes, 0)
	return list
}
