package history

import (
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Variates corrects the sums over sampled neighbours with historical embeddings (VR-GCN,
// Chen, Zhu and Song, ICML'18, equation 5):
//
//	Z = Â_s (H - H̃) + Â H̃
//
// H̃ is the history. A row of Â_s has the sampled of n neighbours, weighted by n divided by
// their number. The samples of a vertex are its edges in a step, so that the gather
// computes Â_s H. The remaining terms do not depend on this step's rows, and form one
// additional ghost row per vertex. Afterwards the rows of the step are pushed.
//
// Neighbours on other ranks are never sampled: they only contribute to Â H̃. Any H̃ that does not
// depend on the samples leaves Z unbiased, so H̃ may be predicted from the history (Predict).
type Variates struct {
	// Observe is called with each row of the history that a step uses, before the step's rows are
	// pushed, unless it is nil: of a local vertex, ghosts after own ones, and of an epoch, 0 if there
	// is none. used was predicted from received.
	Observe func(layer, vertex int, used, received []float32, epoch int)

	pulled
	ops    kernels.Ops
	shard  *shard.Shard
	col    []float32 // coefficients of all local vertices
	field  Field
	own    edges     // into the field's vertices, from own ones and itself
	ghosts edges     // from vertices of other ranks
	share  []float32 // 1 / Factor
	epoch  int
	sets   []int // the only set of every rank: all its ghosts
	theirs []float32
	epochs []uint32
	rest   []float32
	layer  *series
	made   []float32 // rows of the step, of the current layer
	take   func(lo, hi int)

	ownRows, ghostRows []float32  // H̃ of the current layer, of own vertices and ghosts
	predicts           *predicted // nil: H̃ is the history
	seen               []bool     // of local vertices, for Observe
}

// edges are those into the first vertices of a field.
type edges struct {
	offsets []int64
	cols    []uint32
	weights []float32 // empty where edges have none
}

// clear removes all edges.
func (e *edges) clear() {
	e.offsets, e.cols, e.weights = append(e.offsets[:0], 0), e.cols[:0], e.weights[:0]
}

// add adds the edges [lo, hi) of a shard to the edges into the next vertex.
func (e *edges) add(s *shard.Shard, lo, hi int64) {
	if e.cols = append(e.cols, s.In.Cols[lo:hi]...); s.Weighted {
		e.weights = append(e.weights, s.Weights[lo:hi]...)
	}
}

// end ends the edges into a vertex.
func (e *edges) end() { e.offsets = append(e.offsets, int64(len(e.cols))) }

// first returns the edges into the first n vertices.
func (e *edges) first(n int) kernels.Edges {
	return kernels.Edges{
		Begin: kernels.HostVector(e.offsets[:n]), End: kernels.HostVector(e.offsets[1 : n+1]),
		Cols: kernels.HostVector(e.cols), Weights: kernels.HostVector(e.weights),
	}
}

var _ halo.Collective = (*Variates)(nil)

// Field is the receptive field of a step. Rows are own vertices, targets of the loss first. A
// gather with k gathers above it computes the first Ends[k] rows from the first Ends[k+1].
// The first Ends[len(Ends)-2] have samples: Samples[Offsets[i]:Offsets[i+1]] are indices in
// Rows, and represent Factor[i] times as many neighbours. Weights are the samples' edge
// weights, 1 for the vertex itself; empty if edges have none.
type Field struct {
	Rows    []uint32
	Ends    []int
	Offsets []int64
	Samples []uint32
	Weights []float32
	Factor  []float32
}

// NewVariates makes the source of steps on a Float32 store, for the vertices of a shard, with
// the coefficients col of edge sources. A field has samples for at most most vertices. It
// computes with ops; memory comes from a. Collective.
func NewVariates(s *Store, of *shard.Shard, col []float32, most int, ops kernels.Ops, a *mapped.Arena) (*Variates, error) {
	p, width := s.o.Plan, 0
	for _, l := range s.o.Shapes {
		width = max(width, l.Width)
	}
	a = a.For(halo.Ghosts)
	v := &Variates{
		pulled: pulled{s}, ops: ops, shard: of, col: col, sets: make([]int, p.Parts),
		theirs: mapped.Make[float32](a, p.Ghosts*width), epochs: mapped.Make[uint32](a, p.Ghosts),
		rest: mapped.Make[float32](a, most*width),
	}
	v.take = v.takeSamples
	return v, s.ExchangeSets([]Set{AllGhosts(p.Ghosts)}, a)
}

// SketchVariates returns a source without a store's rows, to estimate the memory of Predict.
func SketchVariates(shapes []halo.Shape, p *halo.Plan) *Variates {
	return &Variates{pulled: pulled{&Store{o: Options{Shapes: shapes, Plan: p}}}}
}

// Begin sets the field and the epoch of the next step.
func (v *Variates) Begin(epoch int, f Field) {
	v.epoch, v.field, v.share = epoch, f, v.share[:0]
	v.own.clear()
	v.ghosts.clear()
	s := v.shard
	for i, u := range f.Rows[:f.Ends[len(f.Ends)-2]] {
		v.share = append(v.share, 1/f.Factor[i])
		if v.own.cols = append(v.own.cols, u); s.Weighted {
			v.own.weights = append(v.own.weights, 1)
		}
		v.own.add(s, s.In.Offsets[u], s.InOwnEnd[u])
		v.own.end()
		v.ghosts.add(s, s.InOwnEnd[u], s.In.Offsets[u+1])
		v.ghosts.end()
	}
}

// Offer implements halo.Source. The first rows belong to the field, and must stay valid
// until Take.
func (v *Variates) Offer(at halo.Slot, rows kernels.Mat, _, _ int) error {
	v.made = rows.Host()
	return v.store.BeginPull(at.Layer, v.sets)
}

// Take implements halo.Source.
func (v *Variates) Take(at halo.Slot) (lo, hi int, err error) {
	l, p := v.store.layers[at.Layer], v.store.o.Plan
	if err := v.store.EndPull(v.theirs[:p.Ghosts*l.width], v.epochs); err != nil {
		return 0, 0, err
	}
	below := v.gathersAbove(at.Layer)
	v.layer = l
	v.ownRows, v.ghostRows = floats(l.rows), v.theirs[:p.Ghosts*l.width]
	if v.predicts != nil {
		if err := v.predict(at, v.field.Ends[below+1]); err != nil {
			return 0, 0, err
		}
	}
	rows := v.rows(at)
	clear(rows)
	v.sum(v.field.Ends[below])
	if v.Observe != nil {
		v.observe(at.Layer, v.field.Ends[below])
	}
	for i, row := range v.field.Rows[:v.field.Ends[below+1]] {
		v.store.Push(at.Layer, v.epoch, at.Epoch, int(row), v.made[i*l.width:(i+1)*l.width])
	}
	return 0, len(rows) / l.width, nil
}

// gathersAbove returns the number of layers above layer l that gather.
func (v *Variates) gathersAbove(l int) (count int) {
	for _, s := range v.store.o.Shapes {
		if s.Layer > l {
			count++
		}
	}
	return count
}

// rows returns the rows of all ghosts of a layer.
func (v *Variates) rows(at halo.Slot) []float32 {
	e := v.field.Ends
	return v.rest[:e[len(e)-2]*v.store.layers[at.Layer].width]
}

// sum computes the ghost of each of the field's first n vertices: Σ col·H̃ over all neighbours
// and the vertex, divided by its factor, minus the sum over its samples.
func (v *Variates) sum(n int) {
	width, own := v.layer.width, v.store.o.Plan.Own
	dst, share := kernels.HostMat(n, width, v.rest[:n*width]), kernels.HostVector(v.share[:n])
	e := v.own.first(n)
	e.RowScale, e.ColScale = share, kernels.HostVector(v.col)
	v.ops.SpMM(dst, e, kernels.HostMat(own, width, v.ownRows), false)
	if ghosts := v.store.o.Plan.Ghosts; ghosts > 0 {
		e = v.ghosts.first(n)
		e.Base, e.RowScale, e.ColScale = uint32(own), share, kernels.HostVector(v.col)
		v.ops.SpMM(dst, e, kernels.HostMat(ghosts, width, v.ghostRows), true)
	}
	v.store.o.Team.Run(n, rowGrain, v.take)
}

// takeSamples subtracts the history of the samples of vertices lo..hi-1.
func (v *Variates) takeSamples(lo, hi int) {
	f, width, rows := &v.field, v.layer.width, v.ownRows
	for i := lo; i < hi; i++ {
		for at := f.Offsets[i]; at < f.Offsets[i+1]; at++ {
			u, weight := int(f.Rows[f.Samples[at]]), float32(1)
			if v.shard.Weighted {
				weight = f.Weights[at]
			}
			addScaled(v.rest[i*width:(i+1)*width], -v.col[u]*weight, rows[u*width:(u+1)*width])
		}
	}
}

// addScaled adds by·x to dst.
func addScaled(dst []float32, by float32, x []float32) {
	for j := range dst {
		dst[j] += float32(by * x[j])
	}
}

// observe calls Observe for the neighbours of the field's first n vertices, and for these vertices.
func (v *Variates) observe(layer, n int) {
	p, w := v.store.o.Plan, v.layer.width
	if v.seen == nil {
		v.seen = make([]bool, p.Own+p.Ghosts)
	}
	clear(v.seen)
	for k, list := range [][]uint32{v.own.cols[:v.own.offsets[n]], v.ghosts.cols[:v.ghosts.offsets[n]]} {
		for _, u := range list {
			if v.seen[u] {
				continue
			}
			v.seen[u] = true
			if k == 0 {
				i := int(u)
				v.Observe(layer, i, v.ownRows[i*w:(i+1)*w], floats(v.layer.at(i)), int(v.layer.epochs[i]))
				continue
			}
			i := int(u) - p.Own
			v.Observe(layer, int(u), v.ghostRows[i*w:(i+1)*w], v.theirs[i*w:(i+1)*w], int(v.epochs[i]))
		}
	}
}

// View implements halo.Source.
func (v *Variates) View(at halo.Slot) (halo.View, error) {
	rows, width := v.rows(at), v.store.layers[at.Layer].width
	return halo.View{Rows: kernels.HostMat(len(rows)/width, width, rows)}, nil
}
