package graphwork

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// Layer has a rank's rows of a layer that gathers.
type Layer struct {
	Width     int // of emitted rows
	GradWidth int // of gathered rows, and of their gradients

	Rows       kernels.Mat // emitted by own vertices [own x Width]
	Recomputed kernels.Mat // Rows on the backward pass, if the layer computes them again
	Ghosts     kernels.Mat // emitted by ghosts [ghosts x Width]
	ghostsBack kernels.Mat // Ghosts on the backward pass, if GatherFrom set them
	Grads      kernels.Mat // gradients of gathered rows [own x GradWidth]

	gathered kernels.Mat // [own x GradWidth]
	backward kernels.Mat // gradients of emitted rows [own x Width]
	mesh     *mesh
	edges    *transposed
	needed   bool // whether gradients of emitted rows are computed
	targets       // empty except in the last layer
	attention
	maxima maxima

	lists lists

	halves struct{ rows, ghosts, grads kernels.Mat } // rounded and scaled copies
	packed struct{ rows, grads packing }             // copies without zeros
	mapped mappedGhosts
	slices []int         // bounds of the slices in which columns are gathered; nil: all at once
	sums   []kernels.Mat // slicedRows.sums
}

// Interval is a range of own vertices, with its rows of the values of a layer, and the Ops
// that works on it.
type Interval struct {
	Lo, Hi int
	Ops    kernels.Ops
	Layer  int
	Frame  *model.Frame
	Mask   *kernels.Dropout // overwritten with the dropout of attention
	// Sources means that the vertices are only sources: they have gathered nothing, and only
	// GatherBackward may be called.
	Sources bool
}

// Returns reports whether the backward pass can use the layer's edges.
func (l *Layer) Returns() bool { return l.edges != nil }

// rows returns the interval's part of a matrix of all own vertices.
func (i Interval) rows(x kernels.Mat) kernels.Mat { return x.Part(i.Lo, i.Hi) }

// gatheredRows and backwardRows return the interval's rows of the results of GatherOwn and
// GatherBackward. Only a frame with a slot has them if they are stored by worker.
func (l *Layer) gatheredRows(i Interval) kernels.Mat {
	if l.gathered.IsNil() {
		return i.forward(model.Gathered)
	}
	return i.rows(l.gathered)
}

func (l *Layer) backwardRows(i Interval) kernels.Mat {
	if l.backward.IsNil() {
		return i.backward(model.EmittedGrad)
	}
	return i.rows(l.backward)
}

// scale returns the interval's part of a scale, empty if the scale is.
func (i Interval) scale(x kernels.Vector[float32]) kernels.Vector[float32] { return x.Part(i.Lo, i.Hi) }

func (w *Work) newZeros(purpose string, rows, cols int) kernels.Mat {
	return kernels.NewMat(w.ops, w.arena.For(purpose), rows, cols)
}

func (w *Work) newLayer(at int, o Options) *Layer {
	g := w.store.Network.Gathering(at)
	l := &Layer{Width: g.Width, GradWidth: g.Gathered(), needed: g.Backward, mesh: w.layerMesh(at, o)}
	if layer, ok := w.store.Network.Layers[at].(model.Attended); ok {
		w.allocAttention(l, at, layer, o)
	}
	if g.Maximum {
		w.allocMaxima(l, o)
	}
	own, sums := w.shard.NumOwn(), l.heads == 0 && !g.Maximum
	l.gathered, l.backward = w.store.Forward(at, model.Gathered), w.store.Backward(at, model.EmittedGrad)
	l.Grads, l.Recomputed = w.store.Backward(at, model.GatheredGrad), w.store.Backward(at, model.Emitted)
	if sums {
		l.slices = w.store.Slices(at)
	}
	if l.slices != nil {
		w.allocSlices()
		l.sums = w.sliced.sums
	} else if sums && at == 0 && w.store.Network.Lists() {
		l.lists = lists{on: true, own: w.store.Lists(w.arena.For(Lists))}
	} else if sums {
		w.allocPacking(&l.packed.rows, at, model.Emit, o)
		w.allocPacking(&l.packed.grads, at, model.ApplyBackward, o)
	}
	if w.half && sums && l.slices == nil {
		forward, backward := w.gatherNumbers(at)
		l.halves.rows = w.sharedHalf(own, l.Width, forward)
		if !o.Linked {
			l.halves.ghosts = w.newHalf(w.Plan.Ghosts, l.Width)
		}
		if l.needed {
			l.halves.grads = w.sharedHalf(own, l.Width, backward)
		}
	}
	return l
}

// Publish prepares an interval's emitted rows [n x Width] for gathering. l.Rows contains them
// now or later, unless the layer is Listed.
func (w *Work) Publish(l *Layer, i Interval, rows kernels.Mat) {
	switch {
	case l.lists.on:
		l.lists.publish(i)
	case l.shape.Dynamic: // gathers compute the scores
	case l.heads > 0:
		i.Ops.PackScores(l.shape, l.scores, i.Lo, rows)
	case !l.halves.rows.IsNil():
		i.Ops.Narrow(i.rows(l.halves.rows), rows, i.scale(l.mesh.col))
	default:
		l.packed.rows.publish(i, rows)
	}
}

// Sums sets dst [n x Width] to the sums of own rows from first on, for other ranks.
func (w *Work) Sums(o kernels.Ops, l *Layer, first int, dst kernels.Mat) {
	m := l.mesh.sums.edges(first, first+dst.Rows)
	m.ColScale = l.mesh.col
	spmm(o, dst, m, l.Rows, l.halves.rows, false)
}

// TakeGhosts sets l.Ghosts to rows of all ghosts. The caller may change them after the gather.
func (w *Work) TakeGhosts(o kernels.Ops, l *Layer, rows kernels.Mat) {
	if l.heads == 0 {
		l.Ghosts = rows
	} else {
		o.Copy(l.Ghosts, rows) // the backward pass needs them again
	}
	w.PublishGhosts(o, l, 0, l.mesh.Plan.Ghosts)
}

// GatherFrom makes the rows that another Work gathers between its own vertices the ghosts of l, as
// that Work publishes them. Options.Linked must be set.
func (w *Work) GatherFrom(l, other *Layer) {
	l.Ghosts, l.halves.ghosts, l.ghostScores = other.Rows, other.halves.rows, other.scores
	l.ghostsBack = other.Recomputed
}

// backwardGhosts returns the rows of ghosts on the backward pass.
func (l *Layer) backwardGhosts() kernels.Mat {
	if l.ghostsBack.IsNil() {
		return l.Ghosts
	}
	return l.ghostsBack
}

// PublishGhosts prepares the rows in l.Ghosts of count ghosts for gathering.
func (w *Work) PublishGhosts(o kernels.Ops, l *Layer, first, count int) {
	rows := l.Ghosts.Part(first, first+count)
	switch {
	case l.shape.Dynamic:
	case l.heads > 0:
		o.PackScores(l.shape, l.ghostScores, first, rows)
	case !l.halves.ghosts.IsNil():
		o.Narrow(l.halves.ghosts.Part(first, first+count), rows, l.mesh.col.From(l.mesh.shard.NumOwn()+first))
	}
}

// PublishGrads prepares the gradients of an interval's gathered rows [n x GradWidth] for the
// backward pass. l.Grads contains them now or later.
func (w *Work) PublishGrads(l *Layer, i Interval, grads kernels.Mat) {
	switch {
	case l.heads > 0:
		w.publishBackward(l, i, grads)
	case l.maxima.on:
		if l.maxima.back != l.maxima.arg {
			i.Ops.Copy(i.rows(l.maxima.back), i.rows(l.maxima.arg))
		}
	case !l.halves.grads.IsNil():
		i.Ops.Narrow(i.rows(l.halves.grads), grads, i.scale(l.mesh.row))
	default:
		l.packed.grads.publish(i, grads)
	}
}

// GatherOwn computes the interval's rows of Â times l.Rows and l.Ghosts, first along the edges
// from own vertices and self loops.
func (w *Work) GatherOwn(l *Layer, i Interval, p model.Pass) {
	if l.heads > 0 {
		w.attendOwn(l, i, p)
		return
	}
	if l.maxima.on {
		w.gatherMaxima(l, i, l.ownEdges(i), l.Rows, false)
		return
	}
	m := l.forwardEdges(i, p)
	if l.slices != nil {
		w.gatherLastSlice(l, i, m, l.gatheredRows(i))
		return
	}
	if l.lists.on {
		l.lists.gather(i.Ops, l.gatheredRows(i), m, l.lists.own, false)
		return
	}
	l.packed.rows.gatherOwn(i.Ops, l.gatheredRows(i), m, l.Rows, l.halves.rows)
}

// forwardEdges returns the edges of GatherOwn, with their scales.
func (l *Layer) forwardEdges(i Interval, p model.Pass) kernels.Edges {
	m := l.maskTargets(p, l.ownEdges(i))
	m.RowScale, m.ColScale, m.SelfLoops = i.scale(l.mesh.row), l.mesh.col, l.mesh.coef.SelfLoops
	return m
}

// backwardEdges returns the edges of GatherBackward, with their scales.
func (l *Layer) backwardEdges(i Interval) kernels.Edges {
	m := l.maskSources(i.edges(l.edges.own))
	m.RowScale, m.ColScale, m.SelfLoops = i.scale(l.mesh.col), l.mesh.row, l.mesh.coef.SelfLoops && !i.Sources
	return m
}

// GatherGhosts completes the rows of GatherOwn along the edges from ghosts.
func (w *Work) GatherGhosts(l *Layer, i Interval, p model.Pass) {
	switch {
	case l.heads > 0:
		w.attendGhosts(l, i, p)
	case l.maxima.on:
		rows := l.Ghosts
		if l.mesh.Plan.Ghosts == 0 { // no edges either, but the kernel needs a matrix
			rows = l.Rows
		}
		w.gatherMaxima(l, i, l.ghostEdges(i), rows, true)
	case !l.mapped.matrix.IsNil():
		l.mapped.gather(l, i, p)
	case l.mesh.Plan.Ghosts > 0:
		m := l.maskTargets(p, l.ghostEdges(i))
		m.RowScale, m.ColScale = i.scale(l.mesh.row), l.mesh.col
		if l.lists.on {
			l.lists.gather(i.Ops, l.gatheredRows(i), m, l.lists.ghosts, true)
			return
		}
		spmm(i.Ops, l.gatheredRows(i), m, l.Ghosts, l.halves.ghosts, true)
	}
}

// GhostGrads sets dst [n x Width] to the gradients of ghosts, from first on, along edges into own
// vertices.
func (w *Work) GhostGrads(o kernels.Ops, l *Layer, first int, dst kernels.Mat) {
	w.ghostGrads(o, l, first, dst, false)
}

// AddGhostGrads adds the gradients that GhostGrads sets. Calls on different ghosts are
// independent. Options.Linked must be set.
func (w *Work) AddGhostGrads(o kernels.Ops, l *Layer, first int, dst kernels.Mat) {
	if w.added.IsNil() {
		w.ghostGrads(o, l, first, dst, true)
		return
	}
	grads := w.added.Reshape(w.added.Rows, l.Width).Part(first, first+dst.Rows)
	w.ghostGrads(o, l, first, grads, false)
	o.Add(dst, grads)
}

// ghostGrads implements GhostGrads and, for a layer that gathers sums, AddGhostGrads.
func (w *Work) ghostGrads(o kernels.Ops, l *Layer, first int, dst kernels.Mat, add bool) {
	n, m := l.mesh.shard.NumOwn(), l.edges.ghost.edges(first, first+dst.Rows)
	if l.maxima.on {
		o.MaxGatherGrad(dst, m, l.maxima.back, l.Grads, n+first)
		return
	}
	m = l.maskSources(m)
	if l.heads > 0 {
		o.AttentionGradSrc(l.whole, dst, m, n+first, n, l.backwardGhosts().Part(first, first+dst.Rows), l.attended())
		return
	}
	m.RowScale, m.ColScale = l.mesh.col.From(n+first), l.mesh.row
	spmm(o, dst, m, l.Grads, l.halves.grads, add)
}

// GatherBackward computes the interval's rows of Âᵀ times l.Grads along own edges and self
// loops. AddSums adds the contributions of other ranks.
func (w *Work) GatherBackward(l *Layer, i Interval, p model.Pass) {
	dst := l.backwardRows(i)
	switch {
	case l.heads > 0:
		w.attendBackward(l, i, p, dst, i.edges(l.edges.own))
	case l.maxima.on:
		i.Ops.MaxGatherGrad(dst, i.edges(l.edges.own), l.maxima.back, l.Grads, i.Lo)
	case l.slices != nil:
		w.gatherLastSlice(l, i, l.backwardEdges(i), dst)
	default:
		l.packed.grads.gatherOwn(i.Ops, dst, l.backwardEdges(i), l.Grads, l.halves.grads)
	}
}

// Backward returns the result of GatherBackward for all intervals [own x Width].
func (w *Work) Backward(l *Layer) kernels.Mat { return l.backward }

// AddSums adds the gradients of all sums [sums x Width] to the interval's rows of Backward.
func (w *Work) AddSums(l *Layer, i Interval, sums kernels.Mat) {
	m := l.mesh.sumsOf.edges(i.Lo, i.Hi)
	m.RowScale = i.scale(l.mesh.col)
	i.Ops.SpMM(l.backwardRows(i), m, sums, true)
}

// spmm gathers rows, or their rounded copies, if any, which include the scale of columns.
func spmm(o kernels.Ops, dst kernels.Mat, m kernels.Edges, rows, half kernels.Mat, add bool) {
	if !half.IsNil() {
		rows, m.ColScale = half, kernels.Vector[float32]{}
	}
	o.SpMM(dst, m, rows, add)
}

func (l *Layer) ownEdges(i Interval) kernels.Edges { return i.edges(l.mesh.own) }

func (l *Layer) ghostEdges(i Interval) kernels.Edges { return i.edges(l.mesh.ghost) }

// edges returns the interval's part of edges into own vertices.
func (i Interval) edges(e kernels.Edges) kernels.Edges {
	e.Begin, e.End, e.First, e.CodedFirst = e.Begin.Part(i.Lo, i.Hi), e.End.Part(i.Lo, i.Hi), uint32(i.Lo), i.Lo
	return e
}
