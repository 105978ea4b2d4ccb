package engine

import (
	"math/rand/v2"
	"slices"

	"siafu/graph"
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/halo/history"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
)

// variates draws the steps of an epoch with sampled neighbours and control variates
// (VR-GCN, ICML'18). A step is made from some of the own training vertices, and from
// those that they, and what they have sampled, sample among the rank's vertices: a
// shard of its own, whose edges are the samples, made anew in every step. What the
// history adds to a vertex's sum is the row of one ghost (history.Variates).
type variates struct {
	e       *Engine
	source  *history.Variates
	samples int // of a vertex
	layers  int // that gather
	targets []uint32
	like    *lockstep // whose intervals and values steps use in turn
	network *model.Network
	scratch *mapped.Arena // of the step

	cached, packed kernels.Mat // ÂX of own vertices, and of those of the step
	ids            []uint32    // of the step, as what follows
	labels         []int32
	split          []uint8
	places         []int32 // of own vertices in the field, -1: none
	field          history.Field
	pool           []uint32
}

// newVariates makes room for the steps of a trainer. Collective over the graph ranks.
func (e *Engine) newVariates(t *trainer, b *batches, update func(layer int) error) error {
	v := &variates{e: e, samples: e.Config.Samples(), network: e.network(), scratch: mapped.NewArena(), cached: t.store.Forward(0, model.Gathered)}
	v.layers = len(v.network.Layers) - 1
	for i, split := range e.Shard.Split {
		if split == graph.SplitTrain {
			v.targets = append(v.targets, uint32(i))
		}
	}
	rows, inner := e.mostInField(len(v.targets))
	a, n := e.Arena.For(Activations), e.Shard.NumOwn()
	v.packed = kernels.NewMat(e.workers.teams[0], a, rows, v.cached.Cols)
	v.ids, v.labels, v.split = mapped.Make[uint32](a, rows), mapped.Make[int32](a, rows), mapped.Make[uint8](a, rows)
	v.places = slices.Repeat([]int32{-1}, n)
	store := model.NewStore(v.network, v.vertices(rows), kept(e.Config), e.workers.teams[0], a)
	e.values = Values{Bytes: store.Bytes(), KeptBytes: store.Bytes()}
	v.like = e.lockstep(store, nil)
	v.like.endsInLoss, v.like.steps, v.like.update, v.like.delay = true, b.count, update, t.delay
	for k := range e.workers.intervals(&e.Config, e.Network, rows) {
		i := &interval{index: k, ops: e.workers.team()}
		i.frame = store.Batch(v.vertices(rows), 0, 0, 0, v.packed, i.ops, t.shared, nil)
		v.like.intervals = append(v.like.intervals, i)
	}
	col := e.Network.Coefficients(e.Shard.InDegree, e.Shard.OutDegree, n, e.Arena.For(graphwork.Coefficients)).Col
	var err error
	v.source, err = history.NewVariates(b.store, e.Shard, col, inner, e.packers, e.Arena)
	b.source, b.variates, b.under = v.source, v, v.like
	return err
}

// mostInField is how many vertices a step may go through, with so many training
// vertices on the rank, and how many of them have samples.
func (e *Engine) mostInField(training int) (rows, inner int) {
	rows = (training + e.Config.Batches() - 1) / e.Config.Batches()
	for range e.Network.Layers() - 1 {
		inner, rows = rows, min(e.Shard.NumOwn(), rows*(1+e.Config.Samples()))
	}
	return rows, inner
}

// vertices are the first of the step.
func (v *variates) vertices(rows int) model.Vertices {
	return model.Vertices{
		Features: model.Features{Rows: rows, Dim: v.cached.Cols},
		IDs:      kernels.HostVector(v.ids[:rows]), LocalIDs: kernels.HostVector(v.ids[:rows]),
	}
}

// step makes the k-th step of an epoch: what its lockstep is then.
func (v *variates) step(epoch, k int) *lockstep {
	e := v.e
	rng := rand.New(rand.NewPCG(e.Config.Seed, uint64(epoch)<<32|uint64(e.Peers.Rank())))
	order, count := rng.Perm(len(v.targets)), e.Config.Batches()
	draws := rand.New(rand.NewPCG(e.Config.Seed+1, uint64(epoch*count+k)<<24|uint64(e.Peers.Rank())))
	v.sample(order[k*len(order)/count:(k+1)*len(order)/count], draws)
	v.gather()
	v.scratch.Free()
	s, rows := *v.like, len(v.field.Rows)
	way := &route{ghosts: v.source, keeps: true}
	o := graphwork.Options{Half: e.Config.Gather == "bf16", OneWay: true, Factor: v.field.Factor}
	way.graph = graphwork.New(s.store, v.cut(), o, s.adder, v.scratch)
	s.route, s.training, s.exact = way, way, way
	for j, i := range s.intervals {
		i.lo, i.hi = j*rows/len(s.intervals), (j+1)*rows/len(s.intervals)
		i.frame = s.store.Batch(v.vertices(rows), i.lo, i.hi-i.lo, i.lo, v.packed, i.ops, i.frame.Weights, i.frame)
		i.loss.Labels, i.loss.Split = kernels.HostVector(v.labels[i.lo:i.hi]), kernels.HostVector(v.split[i.lo:i.hi])
	}
	s.build(way, e.Config.Mode == "nopipe")
	v.source.Begin(epoch, v.field)
	return &s
}

// sample draws the field of the targets with these numbers.
func (v *variates) sample(targets []int, rng *rand.Rand) {
	f := &v.field
	for _, u := range f.Rows {
		v.places[u] = -1
	}
	*f = history.Field{Rows: f.Rows[:0], Ends: f.Ends[:0], Offsets: append(f.Offsets[:0], 0), Samples: f.Samples[:0], Factor: f.Factor[:0]}
	for _, t := range targets {
		v.place(v.targets[t])
	}
	f.Ends = append(f.Ends, len(f.Rows))
	for range v.layers {
		for len(f.Offsets) <= f.Ends[len(f.Ends)-1] {
			v.draw(f.Rows[len(f.Offsets)-1], rng)
		}
		f.Ends = append(f.Ends, len(f.Rows))
	}
	for len(f.Offsets) <= len(f.Rows) { // the outermost gather nothing
		f.Offsets, f.Factor = append(f.Offsets, int64(len(f.Samples))), append(f.Factor, 1)
	}
}

// place is the place of an own vertex in the field, to which it is added.
func (v *variates) place(u uint32) uint32 {
	if v.places[u] < 0 {
		v.places[u] = int32(len(v.field.Rows))
		v.field.Rows = append(v.field.Rows, u)
	}
	return uint32(v.places[u])
}

// draw samples among the neighbours of an own vertex on this rank and itself, as
// Kipf's Â has a self loop, without replacement.
func (v *variates) draw(u uint32, rng *rand.Rand) {
	s, f := v.e.Shard, &v.field
	v.pool = append(append(v.pool[:0], s.In.Cols[s.In.Offsets[u]:s.InOwnEnd[u]]...), u)
	n := min(v.samples, len(v.pool))
	for i := range n {
		if n < len(v.pool) {
			k := i + rng.IntN(len(v.pool)-i)
			v.pool[i], v.pool[k] = v.pool[k], v.pool[i]
		}
		f.Samples = append(f.Samples, v.place(v.pool[i]))
	}
	slices.Sort(f.Samples[f.Offsets[len(f.Offsets)-1]:])
	f.Offsets, f.Factor = append(f.Offsets, int64(len(f.Samples))), append(f.Factor, float32(len(v.pool))/float32(n))
}

// cut is the shard of the field: its edges are the samples and, for each vertex that
// has some, one from a ghost of its own, whose coefficient is 1.
func (v *variates) cut() *shard.Shard {
	s, f := v.e.Shard, &v.field
	n, inner := len(f.Rows), f.Ends[len(f.Ends)-2]
	part := &shard.Shard{
		Parts: 1, Directed: true, Classes: s.Classes, FeatureDim: s.FeatureDim, Own: make([]uint32, n),
		Ghosts: make([]uint32, inner), GhostStart: []int64{0, int64(inner)}, SendStart: []int64{0, 0},
		In:       graph.CSR{Offsets: make([]int64, n+1), Cols: make([]uint32, 0, len(f.Samples)+inner)},
		InOwnEnd: make([]int64, n), Split: v.split[:n], Labels: v.labels[:n],
		InDegree: make([]uint32, n+inner), OutDegree: make([]uint32, n+inner),
	}
	for i, u := range f.Rows {
		part.Own[i], part.InDegree[i], part.OutDegree[i] = s.Own[u], s.InDegree[u], s.OutDegree[u]
		part.In.Cols = append(part.In.Cols, f.Samples[f.Offsets[i]:f.Offsets[i+1]]...)
		part.InOwnEnd[i] = int64(len(part.In.Cols))
		if i < inner {
			part.In.Cols = append(part.In.Cols, uint32(n+i))
		}
		part.In.Offsets[i+1] = int64(len(part.In.Cols))
	}
	return part
}

// gather brings what the step reads of its vertices to where it does. The loss is of
// the targets alone.
func (v *variates) gather() {
	s, rows := v.e.Shard, v.field.Rows
	for i, u := range rows {
		v.ids[i], v.labels[i], v.split[i] = s.Own[u], s.Labels[u], graph.SplitNone
		if i < v.field.Ends[0] {
			v.split[i] = graph.SplitTrain
		}
	}
	v.e.workers.teams[0].PackRows(v.packed.Part(0, len(rows)), kernels.HostVector(rows), v.cached, kernels.Mat{})
}
