package sample

import (
	"math/rand/v2"
	"slices"

	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// WalkOptions are the settings of Walks.
type WalkOptions struct {
	Shard *shard.Shard
	Rank  int // number of this rank
	Seed  uint64
	// Roots is the number of walks of a sample, and Length the number of steps of a walk.
	Roots, Length int
	// Layers is the number of layers that gather.
	Layers int
	EdgeData
	// Normalise divides edges by their probability given their target. Weighted must then be set, also
	// for shards without weights, whose edges have weight 1.
	Normalise bool
	Team      *kernels.Team
}

// Walks makes fields of the subgraphs that random walks induce among a rank's own vertices
// (GraphSAINT, Zeng et al., ICLR'20, algorithm 2).
//
// A walk begins at a random own vertex, and each of its steps leads to a random vertex from which the
// current one gathers. With as many roots as own vertices, each of these is a root, so that a sample has all.
//
// Estimates over samples are unbiased (section 3.2): the loss of vertex v has weight 1/p(v), and an
// edge u to v has weight p(v)/p(u,v). p is the probability that a sample contains the vertex, or both
// ends of the edge. The first samples estimate p. They have Coverage vertices for each own one. The
// current sample counts too, so that no probability is 0.
type Walks struct {
	induced
	o        WalkOptions
	samples  int      // that were counted
	vertices []uint32 // [own] samples with the vertex
	edges    []uint32 // [edges of the shard] samples with both ends
	// Sums of the weights of all edges between own vertices.
	inStrength, outStrength []float32
}

// Coverage is the mean number of the samples that estimate probabilities and contain a vertex: 50
// as in the authors' program.
const Coverage = 50

// NewWalks samples subgraphs to estimate probabilities. Memory comes from a.
func NewWalks(o WalkOptions, a *mapped.Arena) *Walks {
	w := newWalks(o, a)
	w.clearPlaces()
	if o.Normalise {
		w.sumStrengths()
	}
	for visited := 0; visited < Coverage*o.Shard.NumOwn(); w.samples++ {
		w.walk(-1 - w.samples)
		w.count()
		visited += len(w.field.Rows)
	}
	return w
}

func newWalks(o WalkOptions, a *mapped.Arena) *Walks {
	w := &Walks{induced: newInduced(o.Shard, o.Rank, o.Layers, o.Team, a), o: o}
	w.along = o.EdgeData
	a = a.For(Lists)
	n := o.Shard.NumOwn()
	w.vertices = mapped.Make[uint32](a, n)
	if o.Normalise {
		w.edges = mapped.Make[uint32](a, len(o.Shard.In.Cols))
		w.inStrength, w.outStrength = mapped.Make[float32](a, n), mapped.Make[float32](a, n)
	}
	return w
}

// SketchWalks makes the arrays of NewWalks in a, which is a sketch.
func SketchWalks(o WalkOptions, a *mapped.Arena) { newWalks(o, a) }

// weight returns the weight of an edge of the shard.
func (w *Walks) weight(k int64) float32 {
	if !w.shard.Weighted {
		return 1
	}
	return w.shard.Weights[k]
}

func (w *Walks) sumStrengths() {
	s := w.shard
	for v := range w.inStrength {
		for k := s.In.Offsets[v]; k < s.InOwnEnd[v]; k++ {
			w.inStrength[v] += w.weight(k)
			w.outStrength[s.In.Cols[k]] += w.weight(k)
		}
	}
}

// walk samples the rows of the field, ascending. Samples of training have numbers from 1 on.
func (w *Walks) walk(number int) {
	f, s, n := &w.field, w.shard, w.shard.NumOwn()
	f.Rows = f.Rows[:0]
	visit := func(v uint32) {
		if w.places[v] < 0 {
			w.places[v] = 0
			f.Rows = append(f.Rows, Vertex{uint32(w.rank), v})
		}
	}
	rng := rand.New(rand.NewPCG(w.o.Seed, uint64(number)<<32|uint64(w.rank)))
	for root := range min(w.o.Roots, n) {
		v := uint32(root)
		if w.o.Roots < n {
			v = rng.Uint32N(uint32(n))
		}
		visit(v)
		for range w.o.Length {
			if first, end := s.In.Offsets[v], s.InOwnEnd[v]; end > first {
				v = s.In.Cols[first+rng.Int64N(end-first)]
			}
			visit(v)
		}
	}
	slices.SortFunc(f.Rows, func(u, v Vertex) int { return int(u.Row) - int(v.Row) })
	for i, v := range f.Rows {
		w.places[v.Row] = int32(i)
	}
}

// count adds the field's rows, and the edges between them, to the counts.
func (w *Walks) count() {
	f, s := &w.field, w.shard
	w.team.Run(len(f.Rows), rowGrain, func(lo, hi int) {
		for _, v := range f.Rows[lo:hi] {
			w.vertices[v.Row]++
			if !w.o.Normalise {
				continue
			}
			for k := s.In.Offsets[v.Row]; k < s.InOwnEnd[v.Row]; k++ {
				if w.places[s.In.Cols[k]] >= 0 {
					w.edges[k]++
				}
			}
		}
	})
	for _, v := range f.Rows {
		w.places[v.Row] = -1
	}
}

// Draw samples the field of a training step, counted from 1. Features go to x [at least rows x features].
// The field is valid until the next call.
func (w *Walks) Draw(step int, x kernels.Mat) *Field {
	f := &w.field
	w.walk(step)
	if !w.o.Normalise {
		w.connect(nil)
	} else {
		w.connect(func(v uint32, k int64) float32 {
			return w.weight(k) * float32(w.vertices[v]+1) / float32(w.edges[k]+1)
		})
		for i, v := range f.Rows {
			f.InStrength[i], f.OutStrength[i] = w.inStrength[v.Row], w.outStrength[v.Row]
		}
	}
	f.LossWeights = f.LossWeights[:0]
	for _, v := range f.Rows {
		f.LossWeights = append(f.LossWeights, float32(w.samples+1)/float32(w.vertices[v.Row]+1))
	}
	w.load(x)
	return f
}
