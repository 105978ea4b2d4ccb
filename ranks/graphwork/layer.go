package graphwork

import (
	"siafu/halo"
	"siafu/kernels"
	"siafu/kernels/model"
)

// Layer has a rank's rows of a layer that gathers, and its Gather.
type Layer struct {
	Gather

	Width     int // of emitted rows
	GradWidth int // of gathered rows, and of their gradients

	Rows       kernels.Mat // emitted by own vertices [own x Width]
	Recomputed kernels.Mat // Rows on the backward pass, if the layer computes them again
	Ghosts     kernels.Mat // emitted by ghosts [ghosts x Width]
	Grads      kernels.Mat // gradients of gathered rows [own x GradWidth]

	shape        halo.Shape
	gathered     kernels.Mat // [own x GradWidth]
	backward     kernels.Mat // gradients of emitted rows [own x Width]
	mesh         *mesh
	edges        *transposed
	copiesGhosts bool // the backward pass needs Ghosts again
	relational   bool // the gather has its own edges
	targets           // empty except in the last layer
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
func (l *Layer) Returns() bool { return l.edges != nil || l.relational }

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
	g, layer := w.store.Network.Gathering(at), w.store.Network.Layers[at]
	l := &Layer{
		Width: g.Width, GradWidth: g.Gathered(),
		shape: halo.Shape{Layer: at, Width: g.Width, Backward: g.Backward}, mesh: w.layerMesh(at, o),
		gathered: w.store.Forward(at, model.Gathered), backward: w.store.Backward(at, model.EmittedGrad),
		relational: g.Relational && !o.Forward, Grads: w.store.Backward(at, model.GatheredGrad),
		Recomputed: w.store.Backward(at, model.Emitted),
	}
	switch {
	case g.Heads > 0 && g.Relational:
		l.Gather = w.newAttentionOfRelations(l, layer, o)
	case g.Heads > 0:
		l.Gather = w.newAttention(l, layer.(model.Attended), o)
	case g.Relational:
		l.Gather = w.newRelational(l, layer.(model.Relational), o)
	case g.Maximum:
		l.Gather = w.newMaxima(l, o)
	default:
		l.Gather = w.newSums(l, o)
	}
	return l
}

// TakeGhosts sets l.Ghosts to rows of all ghosts. The caller may change them after the gather.
func (l *Layer) TakeGhosts(o kernels.Ops, rows kernels.Mat) {
	if l.copiesGhosts {
		o.Copy(l.Ghosts, rows)
	} else {
		l.Ghosts = rows
	}
	l.PublishGhosts(o, 0, l.mesh.Plan.Ghosts)
}

// AddGhostGrads adds the gradients that GhostGrads sets. Calls on different ghosts are
// independent. Options.Linked must be set.
func (w *Work) AddGhostGrads(o kernels.Ops, l *Layer, first int, dst kernels.Mat) {
	if s, ok := l.Gather.(*sums); ok {
		s.ghostGrads(o, first, dst, true)
		return
	}
	grads := w.added.Reshape(w.added.Rows, l.Width).Part(first, first+dst.Rows)
	l.GhostGrads(o, first, grads)
	o.Add(dst, grads)
}

// KeepsGhosts reports whether Ghosts has its own memory, because the backward pass reads it again.
func (l *Layer) KeepsGhosts() bool { return l.copiesGhosts }

// Backward returns the result of GatherBackward for all intervals [own x Width].
func (l *Layer) Backward() kernels.Mat { return l.backward }

func (l *Layer) ownEdges(i Interval) kernels.Edges { return i.edges(l.mesh.own) }

func (l *Layer) ghostEdges(i Interval) kernels.Edges { return i.edges(l.mesh.ghost) }

// edges returns the interval's part of edges into own vertices.
func (i Interval) edges(e kernels.Edges) kernels.Edges {
	e.Begin, e.End, e.First, e.CodedFirst = e.Begin.Part(i.Lo, i.Hi), e.End.Part(i.Lo, i.Hi), uint32(i.Lo), i.Lo
	return e
}
