package graphwork

import (
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/kernels"
	"siafu/kernels/model"
)

// Layer is one layer that gathers, as the vertices of a rank see it.
type Layer struct {
	Width     int // of emitted rows
	GradWidth int // of what is gathered, and of its gradient

	Rows     []float32   // emitted by own vertices [own x Width]
	Ghosts   []float32   // emitted by ghosts [ghosts x Width]
	Grads    []float32   // of what own vertices gathered [own x GradWidth]
	Returned [][]float32 // by graph rank: its share of the gradients of the rows sent there

	gathered []float32 // [own x GradWidth]
	backward []float32 // gradients of emitted rows [own x Width]
	edges    *shard.Transposed
	needed   bool // gradients of emitted rows are
	attention

	halves struct{ rows, ghosts, grads []kernels.BF16 } // rounded and scaled
}

// Interval is a range of own vertices, the model's layer on them, and who works
// on it.
type Interval struct {
	Lo, Hi int
	Team   *kernels.Team
	Layer  model.Layer
}

// rows is the interval's part of a matrix of all own vertices.
func (i Interval) rows(x []float32, width int) []float32 { return x[i.Lo*width : i.Hi*width] }

// scale is the interval's part of a scale, nil for nil.
func (i Interval) scale(x []float32) []float32 {
	if x == nil {
		return nil
	}
	return x[i.Lo:i.Hi]
}

func (w *Work) newLayer(layer model.Layer) *Layer {
	l := &Layer{Width: layer.GatherWidth(), needed: layer.GathersBackward(), Returned: make([][]float32, w.Plan.Parts)}
	l.GradWidth = l.Width
	if at, ok := layer.(model.Attended); ok {
		w.attend(l, at)
	}
	own := w.shard.NumOwn()
	l.gathered = mapped.Make[float32](w.arena, own*l.GradWidth)
	if w.half && l.heads == 0 {
		half := func(rows int) []kernels.BF16 {
			return mapped.Make[kernels.BF16](w.arena, rows*l.Width+kernels.HalfSlack)
		}
		l.halves.rows, l.halves.ghosts = half(own), half(w.Plan.Ghosts)
		if l.needed {
			l.halves.grads = half(own)
		}
	}
	return l
}

// Publish prepares an interval's emitted rows [n x Width], which l.Rows holds or
// will hold, for gathering.
func (w *Work) Publish(l *Layer, i Interval, rows []float32) {
	switch {
	case l.heads > 0:
		kernels.PackScores(i.Team, l.whole, l.scores, w.shard.NumOwn(), i.Lo, rows)
	case l.halves.rows != nil:
		narrow(i.Team, l.halves.rows, l.Width, i.Lo, rows, i.scale(w.coef.Col))
	}
}

// Sums sets dst to the sums first..first+len(dst)/Width-1 of own rows, for other
// ranks.
func (w *Work) Sums(t *kernels.Team, l *Layer, first int, dst []float32) {
	sums, end := w.halo.Sums, first+len(dst)/l.Width
	m := kernels.Gather{Begin: sums.Offsets[first:end], End: sums.Offsets[first+1 : end+1], Cols: sums.Cols, ColScale: w.coef.Col}
	spmm(t, dst, l.Width, m, l.Rows, l.halves.rows, false)
}

// TakeGhosts sets l.Ghosts to rows of all ghosts, which may change as soon as
// the layer has been gathered.
func (w *Work) TakeGhosts(t *kernels.Team, l *Layer, rows []float32) {
	switch {
	case l.heads == 0:
		l.Ghosts = rows
	case l.Ghosts == nil:
		l.Ghosts = mapped.Make[float32](w.arena, len(rows))
		fallthrough
	default:
		copy(l.Ghosts, rows) // the way back needs them again
	}
	w.PublishGhosts(t, l, 0, w.Plan.Ghosts)
}

// PublishGhosts prepares the rows in l.Ghosts of count ghosts for gathering.
func (w *Work) PublishGhosts(t *kernels.Team, l *Layer, first, count int) {
	rows := l.Ghosts[first*l.Width : (first+count)*l.Width]
	switch {
	case l.heads > 0:
		kernels.PackScores(t, l.whole, l.ghostScores, w.Plan.Ghosts, first, rows)
	case l.halves.ghosts != nil:
		narrow(t, l.halves.ghosts, l.Width, first, rows, from(w.coef.Col, w.shard.NumOwn()+first))
	}
}

// PublishGrads prepares an interval's gradient of what it gathered [n x
// GradWidth], which l.Grads holds or will hold, for the way back.
func (w *Work) PublishGrads(l *Layer, i Interval, grads []float32, p model.Pass) {
	switch {
	case l.heads > 0:
		w.publishBackward(l, i, grads, p)
	case l.halves.grads != nil:
		narrow(i.Team, l.halves.grads, l.Width, i.Lo, grads, i.scale(w.coef.Row))
	}
}

// narrow rounds rows, times their scale, to rows from first on of dst.
func narrow(t *kernels.Team, dst []kernels.BF16, width, first int, rows, scale []float32) {
	kernels.NarrowRows(t, dst[first*width:], width, len(rows)/width, width, rows, scale)
}

// GatherOwn begins the interval's rows of Â times l.Rows and l.Ghosts: along
// edges from own vertices and self loops.
func (w *Work) GatherOwn(l *Layer, i Interval, p model.Pass) {
	if l.heads > 0 {
		w.attendOwn(l, i, p)
		return
	}
	m := w.ownEdges(i)
	m.RowScale, m.ColScale, m.SelfLoops = i.scale(w.coef.Row), w.coef.Col, w.coef.SelfLoops
	spmm(i.Team, i.rows(l.gathered, l.Width), l.Width, m, l.Rows, l.halves.rows, false)
}

// GatherGhosts ends it, along edges from ghosts, and returns the rows, which
// stand until the layer's next gather.
func (w *Work) GatherGhosts(l *Layer, i Interval, p model.Pass) []float32 {
	if l.heads > 0 {
		return w.attendGhosts(l, i, p)
	}
	dst := i.rows(l.gathered, l.Width)
	if w.Plan.Ghosts > 0 {
		m := w.ghostEdges(i)
		m.RowScale, m.ColScale = i.scale(w.coef.Row), w.coef.Col
		spmm(i.Team, dst, l.Width, m, l.Ghosts, l.halves.ghosts, true)
	}
	return dst
}

// GhostGrads sets dst to the gradients that own destinations give the ghosts
// first..first+len(dst)/Width-1.
func (w *Work) GhostGrads(t *kernels.Team, l *Layer, first int, dst []float32) {
	edges, end := l.edges.Ghost, first+len(dst)/l.Width
	m := kernels.Gather{Begin: edges.Offsets[first:end], End: edges.Offsets[first+1 : end+1], Cols: edges.Cols}
	if l.heads > 0 {
		w.attendGhostGrads(t, l, first, dst, m)
		return
	}
	m.RowScale, m.ColScale = from(w.coef.Col, w.shard.NumOwn()+first), w.coef.Row
	spmm(t, dst, l.Width, m, l.Grads, l.halves.grads, false)
}

// GatherBackward is the interval's rows of Âᵀ times l.Grads along own edges and self
// loops. They stand until the layer's, or where layers share memory the next but
// one layer's, next GatherBackward; what other ranks know is to be added to them.
func (w *Work) GatherBackward(l *Layer, i Interval, p model.Pass) []float32 {
	dst := i.rows(l.backward, l.Width)
	m := kernels.Gather{Begin: l.edges.OwnBegin[i.Lo:i.Hi], End: l.edges.OwnEnd[i.Lo:i.Hi], Cols: l.edges.OwnCols, First: uint32(i.Lo)}
	if l.heads > 0 {
		w.attendBackward(l, i, p, dst, m)
		return dst
	}
	m.RowScale, m.ColScale, m.SelfLoops = i.scale(w.coef.Col), w.coef.Row, w.coef.SelfLoops
	spmm(i.Team, dst, l.Width, m, l.Grads, l.halves.grads, false)
	return dst
}

// Backward is what GatherBackward has made of all intervals [own x Width].
func (w *Work) Backward(l *Layer) []float32 { return l.backward }

// AddSums adds to the interval's rows of Backward what the gradients of all sums
// [sums x Width] give the rows that they are made of.
func (w *Work) AddSums(l *Layer, i Interval, sums []float32) {
	of := w.halo.SumsOf
	m := kernels.Gather{Begin: of.Offsets[i.Lo:i.Hi], End: of.Offsets[i.Lo+1 : i.Hi+1], Cols: of.Cols, RowScale: i.scale(w.coef.Col)}
	kernels.SpMM(i.Team, i.rows(l.backward, l.Width), l.Width, m, sums, true)
}

// AddBackward adds to the interval's rows what other ranks have Returned, in
// ascending order of ranks.
func (w *Work) AddBackward(l *Layer, i Interval) {
	for q, theirs := range l.Returned {
		if theirs == nil {
			continue
		}
		list := w.Plan.SendRows[w.Plan.SendStart[q]:w.Plan.SendStart[q+1]]
		first, end := Boundary(list, i.Lo, i.Hi)
		for k := first; k < end; k++ {
			kernels.AddRow(l.backward[int(list[k])*l.Width:][:l.Width], theirs[k*l.Width:(k+1)*l.Width])
		}
	}
}

// spmm gathers rows, or their rounded copies where there are any, in which the
// scale of columns is already.
func spmm(t *kernels.Team, dst []float32, width int, m kernels.Gather, rows []float32, half []kernels.BF16, add bool) {
	if half == nil {
		kernels.SpMM(t, dst, width, m, rows, add)
		return
	}
	m.ColScale = nil
	kernels.SpMMHalf(t, dst, width, m, half, add)
}

// ownEdges are the interval's in-edges from own vertices.
func (w *Work) ownEdges(i Interval) kernels.Gather { return i.edges(w.shard.OwnEdges()) }

// ghostEdges are those from ghosts.
func (w *Work) ghostEdges(i Interval) kernels.Gather { return i.edges(w.halo.In) }

// edges are those into the interval's vertices.
func (i Interval) edges(e shard.Edges) kernels.Gather {
	return kernels.Gather{Begin: e.Begin[i.Lo:i.Hi], End: e.End[i.Lo:i.Hi], Cols: e.Cols, Base: uint32(e.Base), First: uint32(i.Lo)}
}

// from is scale from an element on, nil for nil.
func from(scale []float32, i int) []float32 {
	if scale == nil {
		return nil
	}
	return scale[i:]
}
