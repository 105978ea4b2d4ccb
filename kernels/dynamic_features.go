package kernels

// Edge features in dynamic attention (dynamic.go): t includes f·E besides the rows of both
// ends, and E has the gradient Σ fᵀ·dt.
//
// Variant: the rows x[u] + f·E of a few edges are computed into memory that
// stays in the first-level cache, and passed to the routines for edges without features. The
// routines of leakyGradient run once more per feature, with the gradients of scores times that feature.
// So a worker needs edgeRowValues floats for any number of edges.

// edgeRowValues is the number of floats of the current rows, of at least leastEdgeRows edges: scores
// are written in vectors of up to leastEdgeRows.
const (
	edgeRowValues = 1 << 14
	leastEdgeRows = 8
)

// featuresAtOnce is the number of features added to a row at once.
const featuresAtOnce = 16

// placesOf sets places to the feature rows of the edges from from on.
func (k *attentionTask) placesOf(places []int64, from int64) {
	if k.At != nil {
		copy(places, k.At[from:])
		return
	}
	for i := range places {
		places[i] = from + int64(i)
	}
}

// features returns the features of the i-th current edge, nil without edge features.
func (k *attentionTask) features(b *edgeBatch, i int) []float32 {
	if k.edge == nil {
		return nil
	}
	if p := b.featureRows[i]; p >= 0 {
		return k.Features[int(p)*k.dim:][:k.dim]
	}
	return k.Self[int(^b.featureRows[i])*k.dim:][:k.dim]
}

// gatherEdgeRows sets edgeRows [few.n x size·Width] to x[u] + f·E of few, the first edges from at on of
// a segment.
func (b *edgeBatch) gatherEdgeRows(k *attentionTask, s *segment, at int) (few segment) {
	width, first, far := k.size*k.Width, k.group*k.Width, k.addendRows()
	most := min(edgeRowValues/width/leastEdgeRows*leastEdgeRows, blockEdges)
	few = segment{row: s.row, id: s.id + at, value: s.value + at*k.step, n: min(most, s.n-at)}
	clear(b.edgeRows[:few.n*width])
	for e := range few.n {
		row, f := b.edgeRows[e*width:][:width], k.features(b, few.id+e)
		weighRows(k.set, row, nil, far[first:], k.Columns(), b.ids[few.id+e:b.known], b.ones[:], 1, 1, nil) // a copy that prefetches
		for d := 0; d < len(f); d += featuresAtOnce {
			n := min(featuresAtOnce, len(f)-d)
			weighRows(k.set, row, nil, k.edge[d*k.Columns()+first:], k.Columns(), b.counting[:n], f[d:], 1, n, nil)
		}
	}
	return few
}

// scoreEdgeRows sets the scores of a segment.
func (b *edgeBatch) scoreEdgeRows(k *attentionTask, near, vector []float32, s *segment) {
	for at := 0; at < s.n; {
		few := b.gatherEdgeRows(k, s, at)
		leakyDots(k.set, b.scores[few.value:], k.step, k.size, near, vector, b.edgeRows[:], k.size*k.Width,
			b.counting[:few.n], few.n, k.Slope)
		at += few.n
	}
}

// leakyGradientOfEdgeRows runs leakyGradientRows on a block and, with along, adds its edges' gradient of E.
func (b *edgeBatch) leakyGradientOfEdgeRows(k *attentionTask, dst, along []float32, s *segment) {
	width := k.size * k.Width
	for at := 0; at < s.n; {
		few := b.gatherEdgeRows(k, s, at)
		ds := b.dq[at*k.step:]
		b.leakyGradientRows(k, dst, along, ds, b.edgeRows[:], width, b.counting[:few.n], &few)
		for d := 0; d < k.dim && along != nil; d++ {
			b.scale(k, ds, d, &few)
			b.leakyGradientRows(k, k.alongRow(1+d, s.row), nil, b.scaled[:], b.edgeRows[:], width, b.counting[:few.n], &few)
		}
		at += few.n
	}
}

// scale sets scaled to the gradients ds of scores times feature d of their edges.
func (b *edgeBatch) scale(k *attentionTask, ds []float32, d int, s *segment) {
	for e := range s.n {
		f := k.features(b, s.id+e)[d]
		for i := e * k.step; i < (e+1)*k.step; i++ {
			b.scaled[i] = ds[i] * f
		}
	}
}
