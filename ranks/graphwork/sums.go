package graphwork

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// sums gathers sums of rows, weighted by the coefficients of edges. Each matrix that it gathers has
// a form.
type sums struct {
	l                  *Layer
	own, ghosts, grads form
}

// form is how gathers read a matrix: the rows of own vertices or of ghosts, or the gradients of
// gathered rows. Its implementations are plain, half, lists, packed, sliced and mappedGhosts.
type form interface {
	// begin begins a pass.
	begin(p model.Pass)
	// publish prepares an interval's rows of the matrix.
	publish(i Interval, rows kernels.Mat)
	// gatherOwn sets an interval's rows dst to the sums of x, the matrix of own vertices, along edges
	// between own vertices.
	gatherOwn(i Interval, dst kernels.Mat, m kernels.Edges, x kernels.Mat)
	// gather sets dst to the sums of x along any edges, or adds these sums.
	gather(i Interval, dst kernels.Mat, m kernels.Edges, x kernels.Mat, add bool)
}

// newSums returns the sums of a layer, whose matrices have the forms of the options and the store.
func (w *Work) newSums(l *Layer, o Options) *sums {
	s, at := &sums{l, plain{}, plain{}, plain{}}, l.shape.Layer
	switch bounds := w.store.Slices(at); {
	case bounds != nil:
		memory := w.sliceMemory()
		s.own, s.grads = &sliced{memory: memory, bounds: bounds, scale: l.mesh.col},
			&sliced{memory: memory, bounds: bounds, scale: l.mesh.row}
	case at == 0 && w.store.Network.Lists():
		s.own, s.ghosts = &publishedLists{lists: lists{rows: w.store.Lists(w.arena.For(Lists))}}, lists{}
	case w.half:
		w.useHalves(s, o)
	default:
		s.own, s.grads = w.newPacked(at, model.Emit, o), w.newPacked(at, model.ApplyBackward, o)
	}
	return s
}

func (s *sums) Begin(p model.Pass, _ kernels.Mat) {
	s.own.begin(p)
	s.ghosts.begin(p)
	s.grads.begin(p)
}

func (s *sums) Publish(i Interval, rows kernels.Mat) { s.own.publish(i, rows) }

func (s *sums) PublishGhosts(o kernels.Ops, first, count int) {
	s.ghosts.publish(Interval{Lo: first, Hi: first + count, Ops: o}, s.l.Ghosts.Part(first, first+count))
}

func (s *sums) PublishGrads(i Interval, grads kernels.Mat) { s.grads.publish(i, grads) }

func (s *sums) GatherOwn(i Interval, p model.Pass) {
	s.own.gatherOwn(i, s.l.gatheredRows(i), s.ownEdges(i, p, false), s.l.Rows)
}

func (s *sums) GatherGhosts(i Interval, p model.Pass) {
	if s.l.mesh.Plan.Ghosts > 0 {
		s.ghosts.gather(i, s.l.gatheredRows(i), s.l.maskTargets(p, s.ghostEdges(i)), s.l.Ghosts, true)
	}
}

func (s *sums) GhostGrads(o kernels.Ops, first int, dst kernels.Mat) {
	s.ghostGrads(o, first, dst, false)
}

// ghostGrads implements GhostGrads, and Work.AddGhostGrads.
func (s *sums) ghostGrads(o kernels.Ops, first int, dst kernels.Mat, add bool) {
	mesh, m := s.l.mesh, s.l.maskSources(s.l.edges.ghost.edges(first, first+dst.Rows))
	m.RowScale, m.ColScale = mesh.col.From(mesh.shard.NumOwn()+first), mesh.row
	s.grads.gather(Interval{Ops: o}, dst, m, s.l.Grads, add)
}

func (s *sums) GatherBackward(i Interval, p model.Pass) {
	s.grads.gatherOwn(i, s.l.backwardRows(i), s.ownEdges(i, p, true), s.l.Grads)
}

// ownEdges returns the edges of GatherOwn, or with back of GatherBackward, with their scales.
func (s *sums) ownEdges(i Interval, p model.Pass, back bool) (m kernels.Edges) {
	mesh := s.l.mesh
	if back {
		m = s.l.maskSources(i.edges(s.l.edges.own))
		m.RowScale, m.ColScale, m.SelfLoops = i.scale(mesh.col), mesh.row, mesh.coef.SelfLoops && !i.Sources
		return m
	}
	m = s.l.maskTargets(p, s.l.ownEdges(i))
	m.RowScale, m.ColScale, m.SelfLoops = i.scale(mesh.row), mesh.col, mesh.coef.SelfLoops
	return m
}

// ghostEdges returns the edges of GatherGhosts, with their scales and without a mask.
func (s *sums) ghostEdges(i Interval) kernels.Edges {
	m := s.l.ghostEdges(i)
	m.RowScale, m.ColScale = i.scale(s.l.mesh.row), s.l.mesh.col
	return m
}

// Sums sets dst [n x Width] to the sums of own rows from first on, for other ranks. The layer must
// gather sums.
func (l *Layer) Sums(o kernels.Ops, first int, dst kernels.Mat) {
	m := l.mesh.sums.edges(first, first+dst.Rows)
	m.ColScale = l.mesh.col
	l.Gather.(*sums).own.gather(Interval{Ops: o}, dst, m, l.Rows, false)
}

// AddSums adds the gradients of all sums [sums x Width] to the interval's rows of Backward.
func (l *Layer) AddSums(i Interval, sums kernels.Mat) {
	m := l.mesh.sumsOf.edges(i.Lo, i.Hi)
	m.RowScale = i.scale(l.mesh.col)
	i.Ops.SpMM(l.backwardRows(i), m, sums, true)
}
