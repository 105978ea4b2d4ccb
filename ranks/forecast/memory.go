package forecast

import (
	"siafu/graph/partition"
	"siafu/kernels"
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

// Term is memory that a rank needs for one purpose.
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
		total += (bytes + 63) / 64 * 64
	}
	if total > 0 {
		*m = append(*m, Term{name, kind, total})
	}
}

// Of is the memory of one kind.
func (m Memory) Of(k Kind) (bytes int64) {
	for _, t := range m {
		if t.Kind == k {
			bytes += t.Bytes
		}
	}
	return bytes
}

// Peak is the most that is resident at a time: what is scratch has gone before
// the first epoch touches what only it needs.
func (m Memory) Peak() int64 {
	training := int64(0)
	for _, t := range m {
		switch t.Name {
		case activations, gradients, ghosts, buffers:
			training += t.Bytes
		}
	}
	return m.Of(Mapped) + m.Of(Array) + m.Of(Heap) - training + max(training, m.Of(Scratch))
}

// Certain is what a rank cannot do without: arrays that it fills in every
// epoch, or once and keeps.
func (m Memory) Certain() int64 { return m.Of(Array) }

// Program is the memory of a process beside its data: the program's own pages,
// Go's runtime and small things on its heap, and Open MPI. Runs on small graphs
// showed 32 to 43 MB of it.
const Program int64 = 40 << 20

// Names of terms.
const (
	Kept        = "ÂX, kept"
	activations = "activations"
	gradients   = "gradients"
	ghosts      = "ghost rows"
	buffers     = "exchange buffers"
)

// keptColumns is how many columns of ÂX are made at a time.
const keptColumns = 64

// GraphRank is the memory of a graph rank with the given partition.
func (f *Forecast) GraphRank(p partition.RankReport) Memory {
	m := new(Memory)
	f.shard(m, p)
	f.edges(m, p)
	f.kept(m, p)
	f.layers(m, p)
	f.exchange(m, p)
	f.weights(m, p)
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
		m.add("shard: features", Mapped, 4*n*dim)
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
		others = others || g.Back
	}
	back := f.foot.Gathers[last].Back
	few = back && (2*p.TrainEdges < p.Edges || f.Directed && !others)
	return f.Directed, few, others || back && !few
}

// kept is ÂX, and what is needed once to make it.
func (f *Forecast) kept(m *Memory, p partition.RankReport) {
	if !f.Net.CacheInput {
		return
	}
	n, dim, size := p.Vertices, int64(f.Net.Dims[0]), int64(4)
	if f.HalfKept {
		size = 2
	}
	m.add(Kept, Array, n*dim*size)
	w := min(keptColumns, dim)
	m.add("making ÂX", Scratch, 4*n*w, 4*n*w, count(f.row, 4*n), count(f.col, 4*(n+p.Ghosts)), 4*p.Ghosts*w, 4*p.SendRows*w)
}

// layers are the matrices of the network's layers and of their gathers.
func (f *Forecast) layers(m *Memory, p partition.RankReport) {
	n := p.Vertices
	inputs := int64(0) // gradients of the layers' inputs
	for _, d := range f.Net.Dims[1:f.Net.Layers()] {
		inputs += 4 * int64(d)
	}
	own := []int64{n*(f.foot.PerRow-inputs) + p.FeatureNNZ*f.foot.PerNonZero}
	for _, g := range f.foot.Gathers {
		switch {
		case g.Heads > 0:
			heads := 4 * int64(g.Heads) // a float of each
			own = append(own, 4*n*int64(g.Columns), n*heads, 2*n*heads, n*heads, n*heads, n*heads, 3*n*heads, n*heads, p.Ghosts*heads)
		case g.Width > 0:
			own = append(own, 4*n*int64(g.Width))
		}
	}
	m.add(activations, Array, own...)
	back := append(f.backward(n), n*inputs, 4*n*int64(f.Net.Dims[f.Net.Layers()]))
	m.add(gradients, Array, back...)
	if f.HalfRows {
		m.add("rows in bfloat16", Array, f.halves(p)...)
	}
}

// backward are the buffers that gradients of gathered rows go to: one a layer in
// bounded asynchrony, else two in turn, which grow when wider rows come.
func (f *Forecast) backward(n int64) (made []int64) {
	var room [2]int64
	for l, g := range f.foot.Gathers {
		need := count(g.Back, 4*n*int64(g.Width))
		if f.Async || need > room[l%2] {
			room[l%2] = need
			made = append(made, need)
		}
	}
	return made
}

// halves are the rounded copies of rows and of gradients.
func (f *Forecast) halves(p partition.RankReport) (made []int64) {
	half := func(rows int64, width int) { made = append(made, 2*(rows*int64(width)+kernels.HalfSlack)) }
	for _, g := range f.foot.Gathers {
		if g.Width > 0 && g.Heads == 0 {
			half(p.Vertices, g.Width)
			half(p.Ghosts, g.Width)
			if g.Back {
				half(p.Vertices, g.Width)
			}
		}
	}
	return made
}

// exchange is the memory of rows that come from other ranks and go to them.
func (f *Forecast) exchange(m *Memory, p partition.RankReport) {
	if f.Async {
		f.published(m, p)
		return
	}
	rows := []int64{4 * p.Ghosts * f.maxWidth()}
	for _, g := range f.foot.Gathers {
		if g.Heads > 0 {
			rows = append(rows, 4*p.Ghosts*int64(g.Width))
		}
	}
	if f.Graph < 2 {
		return
	}
	m.add(ghosts, Array, rows...)
	var plain, ids, encoded int64
	for _, c := range append(f.Others, f.Codec) {
		if !framed(c) {
			plain = 4 * p.SendRows * f.maxWidth()
			continue
		}
		// What leaves, and what has arrived and is not decoded.
		out, _, _ := payload(c, max(p.SendRows, p.Ghosts), f.maxWidth())
		encoded, ids = max(encoded, 2*out), max(ids, count(!c.Lossless(), 4*p.SendRows))
	}
	m.add(buffers, Array, plain, ids)
	m.add("encoded rows", Heap, encoded)
}

// published is what a rank keeps in bounded asynchrony: the newest rows and
// gradients of every layer, its own and those of others.
func (f *Forecast) published(m *Memory, p partition.RankReport) {
	var own, far, back []int64
	messages := int64(0)
	for _, g := range f.foot.Gathers {
		if g.Width == 0 {
			continue
		}
		width, gathered := int64(g.Width), int64(max(g.Width, g.Columns))
		own = append(own, 4*p.Vertices*width, 4*p.Vertices*gathered)
		far = append(far, 4*p.Ghosts*width)
		back = append(back, 4*p.SendRows*width)
		messages += 4 * (p.Ghosts + p.SendRows) * width
	}
	m.add("published rows", Array, own...)
	m.add(ghosts, Array, far...)
	m.add(buffers, Array, back...)
	// On their way and arrived, twice over: the collector lets the heap double.
	m.add("rows in messages", Heap, 4*messages)
}

// weights are what belongs to the network as a whole.
func (f *Forecast) weights(m *Memory, p partition.RankReport) {
	n := int64(f.Net.NumWeights())
	own := f.foot.Fixed // of an interval, gradients for one
	if !f.Async {
		own -= (4*n + 63) / 64 * 64 // they share the weights
	}
	arrays := append(repeat(f.Intervals(int(p.Vertices)), own), 4*n)
	if !f.Async {
		arrays = append(arrays, 4*n, 4*n)
	}
	m.add("weights and their gradients", Array, arrays...)
	m.add("best weights", Heap, 4*n)
	if f.Servers > 0 {
		m.add("weights in messages", Heap, 4*4*n)
		return
	}
	m.add("optimiser state", Array, repeat(f.Slots, 4*n)...)
}

// ServerRank is the memory of a parameter server that the given number of graph
// ranks talk to.
func (f *Forecast) ServerRank(ranks int) Memory {
	m, n := new(Memory), int64(f.Net.NumWeights())
	m.add("weights", Array, 4*n)
	m.add("optimiser state", Array, repeat(f.Slots, 4*n)...)
	copies := int64(2 * (ranks + f.Servers)) // gradients until their sum, and what is sent
	if f.Async {
		copies += int64(f.Staleness) + 2
	}
	m.add("gradients and messages", Heap, copies*4*n)
	return *m
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
