package forecast

import (
	"slices"

	"siafu/graph/partition"
	"siafu/graph/size"
	"siafu/kernels"
	"siafu/ranks/config"
)

// Kind says where the memory of a term lies.
type Kind string

// The kinds of memory.
const (
	Mapped  Kind = "mapped"  // pages of a file, which the system can take back
	Array   Kind = "array"   // arrays outside the heap
	Scratch Kind = "scratch" // arrays that are given back before the first epoch
	Heap    Kind = "heap"    // Go's, an estimate
)

// Term is memory that a rank needs for one purpose; size.Most is more than can
// be counted.
type Term struct {
	Name  string `json:"name"`
	Kind  Kind   `json:"kind"`
	Bytes int64  `json:"bytes"`
}

// Memory is what a rank needs.
type Memory []Term

// add appends arrays, each rounded up as they are in memory.
func (m *Memory) add(name string, kind Kind, arrays ...int64) {
	total := int64(0)
	for _, bytes := range arrays {
		total = size.Sum(total, size.RoundUp(bytes, 64))
	}
	if total > 0 {
		*m = append(*m, Term{name, kind, total})
	}
}

// floats is the bytes of a matrix of so many rows, columns and more.
func floats(extent ...int64) int64 { return size.Product(4, size.Product(extent...)) }

// Of is the memory of one kind.
func (m Memory) Of(k Kind) (bytes int64) {
	for _, t := range m {
		if t.Kind == k {
			bytes = size.Sum(bytes, t.Bytes)
		}
	}
	return bytes
}

// And is the memory of two parts that one rank carries.
func (m Memory) And(other Memory) Memory {
	sum := slices.Clone(m)
	for _, t := range other {
		i := slices.IndexFunc(sum, func(have Term) bool { return have.Name == t.Name && have.Kind == t.Kind })
		if i < 0 {
			sum = append(sum, t)
			continue
		}
		sum[i].Bytes = size.Sum(sum[i].Bytes, t.Bytes)
	}
	return sum
}

// Peak is the most that is resident at a time: what is scratch has gone before
// the first epoch touches what only it needs.
func (m Memory) Peak() int64 {
	always, training := size.Sum(m.Of(Mapped), m.Of(Heap)), int64(0)
	for _, t := range m {
		switch {
		case t.Kind != Array:
		case t.Name == activations, t.Name == ghosts, t.Name == buffers:
			training = size.Sum(training, t.Bytes)
		default:
			always = size.Sum(always, t.Bytes)
		}
	}
	return size.Sum(always, max(training, m.Of(Scratch)))
}

// Certain is what a rank cannot do without: arrays that it fills in every
// epoch, or once and keeps, and what its intervals consist of.
func (m Memory) Certain() int64 {
	bytes := m.Of(Array)
	for _, t := range m {
		if t.Name == intervals {
			bytes = size.Sum(bytes, t.Bytes)
		}
	}
	return bytes
}

// Program is the memory of a process beside its data: the program's own pages,
// Go's runtime and small things on its heap, and Open MPI. Runs on small graphs
// showed 32 to 43 MB of it.
const Program int64 = 40 << 20

// Names of terms.
const (
	Kept        = "ÂX, kept"
	activations = "activations"
	ghosts      = "ghost rows"
	buffers     = "exchange buffers"
	intervals   = "tasks of intervals"
)

// An interval takes about so much of the heap for itself and for each of its
// layers: a run of 3000 intervals, of 2 layers and of 20, took 14 and 55 KB for
// each.
const (
	intervalBytes      = 10 << 10
	intervalLayerBytes = 2 << 10
)

// keptColumns is how many columns of ÂX are made at a time.
const keptColumns = 64

// GraphRank is the memory of a graph rank with the given partition. In bounded
// asynchrony without servers rank 0 hosts one.
func (f *Forecast) GraphRank(rank int, p partition.RankReport) Memory {
	m := new(Memory)
	f.shard(m, p)
	f.edges(m, p)
	f.kept(m, p)
	f.layers(m, p)
	f.exchange(m, p)
	f.weights(m, p)
	if f.Async && f.Servers == 0 && rank == 0 {
		f.serve(m, f.Graph)
	}
	return *m
}

// shard is the file that a rank maps, all of which is read when it is opened.
func (f *Forecast) shard(m *Memory, p partition.RankReport) {
	n, g, dim := p.Vertices, p.Ghosts, int64(f.Net.Dims[0])
	m.add("shard: edges", Mapped, 8*n, 8*n, 4*p.Edges)
	m.add("shard: vertices and ghosts", Mapped, 4*n, 4*g, 4*p.SendRows, 8*(n+g), 5*n)
	if f.Sparse {
		m.add("shard: features", Mapped, 8*n, 8*p.FeatureNNZ)
	} else {
		m.add("shard: features", Mapped, floats(n, dim))
	}
}

// edges are the coefficients and reverse edges that are made of the shard, and
// the ids of all vertices.
func (f *Forecast) edges(m *Memory, p partition.RankReport) {
	n, g := p.Vertices, p.Ghosts
	if !f.Net.Propagates() {
		m.add("vertex ids and coefficients", Array, 4*(n+g))
		return
	}
	m.add("vertex ids and coefficients", Array, 4*(n+g), count(f.row, 4*n), count(f.col, 4*(n+g)))
	own, few, all := f.reverse(p)
	if few {
		m.add("reverse edges of training vertices", Array, 8*(n+1), 8*(g+1), 4*p.TrainEdges)
	}
	if all {
		m.add("reverse edges", Array, count(own, 8*(n+1)), count(own, 4*(p.Edges-p.Cut)), 8*(g+1), 4*p.Cut)
	}
}

// reverse tells which reverse edges a rank makes: those of training vertices
// alone for the last layer, those of all vertices, and of these own ones too.
func (f *Forecast) reverse(p partition.RankReport) (own, few, all bool) {
	last := len(f.foot.Gathers) - 1
	others := false
	for _, g := range f.foot.Gathers[:last] {
		others = others || g.Backward
	}
	back := f.foot.Gathers[last].Backward
	few = back && (2*p.TrainEdges < p.Edges || f.Directed && !others)
	return f.Directed, few, others || back && !few
}

// kept is ÂX, and what is needed once to make it.
func (f *Forecast) kept(m *Memory, p partition.RankReport) {
	if !f.Net.CacheInput {
		return
	}
	n, dim, each := p.Vertices, int64(f.Net.Dims[0]), int64(4)
	if f.HalfKept {
		each = 2
	}
	m.add(Kept, Array, size.Product(n, dim, each))
	w := min(keptColumns, dim)
	m.add("making ÂX", Scratch, 4*n*w, 4*n*w, count(f.row, 4*n), count(f.col, 4*(n+p.Ghosts)), 4*p.Ghosts*w, 4*p.SendRows*w)
}

// layers are the matrices of the network's layers and of their gathers.
func (f *Forecast) layers(m *Memory, p partition.RankReport) {
	n := p.Vertices
	own := []int64{size.Sum(size.Product(n, f.foot.PerRow), size.Product(p.FeatureNNZ, f.foot.PerNonZero))}
	for _, g := range f.foot.Gathers {
		if g.Heads > 0 {
			heads := floats(n, int64(g.Heads)) // a float of each
			own = append(own, heads, size.Product(2, heads), heads, heads, heads,
				size.Product(3, heads), heads, floats(p.Ghosts, int64(g.Heads)))
		}
	}
	if f.Refresh == config.Never { // evaluations gather along more edges, with coefficients of their own
		own = append(own, own[1:]...)
		own = append(own, count(f.row, 4*n), count(f.col, 4*n))
	}
	m.add(activations, Array, own...)
	if f.HalfRows {
		m.add("rows in bfloat16", Array, f.halves(p)...)
		if f.Refresh == config.Never {
			m.add("rows in bfloat16 of evaluations", Array, f.halves(p)...)
		}
	}
}

// halves are the rounded copies of rows and of gradients.
func (f *Forecast) halves(p partition.RankReport) (made []int64) {
	half := func(rows int64, width int) {
		made = append(made, size.Product(2, size.Sum(size.Product(rows, int64(width)), kernels.HalfSlack)))
	}
	for _, g := range f.foot.Gathers {
		if g.Width > 0 && g.Heads == 0 {
			half(p.Vertices, g.Width)
			half(p.Ghosts, g.Width)
			if g.Backward {
				half(p.Vertices, g.Width)
			}
		}
	}
	return made
}

// weights are what belongs to the network as a whole.
func (f *Forecast) weights(m *Memory, p partition.RankReport) {
	n := floats(int64(f.Net.NumWeights()))
	own := f.foot.Fixed // of an interval, gradients for one
	if !f.Async {
		own -= size.RoundUp(n, 64) // they share the weights
	}
	arrays := append(repeat(f.Intervals(int(p.Vertices)), max(own, 0)), n)
	if !f.Async {
		arrays = append(arrays, n, n)
	}
	m.add("weights and their gradients", Array, arrays...)
	m.add(intervals, Heap, size.Product(int64(f.Intervals(int(p.Vertices))), intervalBytes+intervalLayerBytes*int64(f.Net.Layers())))
	m.add("best weights", Heap, n)
	f.start(m, n)
	switch {
	case f.Servers > 0 || f.Async:
		m.add("weights in messages", Heap, size.Product(4, n))
	default:
		m.add("optimiser state", Array, repeat(f.Slots, n)...)
	}
}

// start is what a run is given to begin with, for weights of n bytes.
func (f *Forecast) start(m *Memory, n int64) {
	if f.Resumed {
		m.add("weights and state to go on from", Heap, repeat(2+f.Slots, n)...)
	}
	if f.Initial {
		m.add("weights to start from", Heap, n)
	}
}

// ServerRank is the memory of a parameter server that the given number of graph
// ranks talk to.
func (f *Forecast) ServerRank(ranks int) Memory {
	m, n := new(Memory), floats(int64(f.Net.NumWeights()))
	m.add("weights", Array, n)
	f.start(m, n)
	f.serve(m, ranks)
	return *m
}

// serve is what a server of so many graph ranks has beside the weights.
func (f *Forecast) serve(m *Memory, ranks int) {
	n := floats(int64(f.Net.NumWeights()))
	m.add("optimiser state", Array, repeat(f.Slots, n)...)
	// Gradients until their sum, what is sent, and versions.
	copies := size.Sum(int64(2*(ranks+f.Servers)), int64(f.Staleness), 2)
	m.add("gradients and messages", Heap, size.Product(copies, n))
}

func repeat(times int, bytes int64) []int64 {
	list := make([]int64, times)
	for i := range list {
		list[i] = bytes
	}
	return list
}

func count(there bool, bytes int64) int64 {
	if there {
		return bytes
	}
	return 0
}
