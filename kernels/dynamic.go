package kernels

import (
	"siafu/kernels/internal/avx"
)

// Dynamic attention (Brody, Alon & Yahav, "How attentive are graph attention networks?", ICLR
// 2022, equation 7): attention whose scores are not sums of one term per end. With a the
// Vector, E the Edge and f[v,u] the features of an edge, where edges have some,
//
//	t[v,u] = x[u] + r[v] + f[v,u]·E
//	s[v,u] = Σ_j a_j·leaky(t_j)          over the columns of a head
//
// Everything else is as in attention.go. In the backward pass
//
//	ds[v,u] = p·((g[v]·x[u])·keep - D[v])      dt_j = ds·a_j·(t_j > 0 ? 1 : Slope)
//	dr[v] = Σ_u dt    dx[u] = Σ_v (q·g[v] + dt)
//	da = Σ_v along[v],  along[v] = Σ_u ds·leaky(t)
//	dE = Σ_v along'[v], along'[v] = Σ_u fᵀ·dt
//
// Variant: as in attention.go. The edge gradients of a and E are summed per attending vertex,
// as along and along'; ColumnSums then sums over vertices, in an order that depends only on
// shapes.

// dynamicBytes is the size of the rows that a batch of edges reads. Scores, then weighted
// sums, read them from the caches.
const dynamicBytes = 1 << 16

// prepareDynamic finds the weights along edges.
func (k *attentionTask) prepareDynamic() {
	k.vector = floatsOf(k.Vector, 1, k.Columns())
	if !k.Edge.IsNil() {
		k.dim = k.Edge.Rows
		k.edge = floatsOf(k.Edge, k.dim, k.Columns())
		mustFit(k.At == nil && len(k.Features) >= len(k.Cols)*k.dim || k.At != nil && len(k.At) >= len(k.Cols))
		mustFit(!k.SelfLoops || len(k.Self) >= k.Rows()*k.dim)
	}
}

// mostDynamic returns the maximum values of a batch.
func (k *attentionTask) mostDynamic() int {
	edges := max(dynamicBytes/(4*k.size*k.Width), blockEdges) / blockEdges * blockEdges
	return min(edges*k.step, batchValues)
}

// addendRows returns the rows that scores add to near vertices' rows.
func (k *attentionTask) addendRows() []float32 {
	if k.op == backToSources {
		return k.R
	}
	return k.far
}

// alongRow returns one part of row r's sums for the weights along its edges.
func (k *attentionTask) alongRow(part, r int) []float32 {
	return k.along[r*k.AlongWidth()+part*k.Columns()+k.group*k.Width:][:k.size*k.Width]
}

func (k *attentionTask) clearAlong(r int) {
	for part := range k.AlongWidth() / k.Columns() {
		clear(k.alongRow(part, r))
	}
}

// dynamicScore has the terms of a head's scores that depend on a near vertex.
type dynamicScore struct {
	near, vector, edge []float32 // edge: rows of features, each stride from the one before
	stride             int
	slope              float32
}

// dynamicScore returns the terms for head h of a group in row r; edge is nil without edge
// features.
func (k *attentionTask) dynamicScore(r, h int) dynamicScore {
	at := (k.group + h) * k.Width
	b := dynamicScore{near: k.near[r*k.Columns()+at:][:k.Width], vector: k.vector[at:][:k.Width], stride: k.Columns(), slope: k.Slope}
	if k.edge != nil {
		b.edge = k.edge[at:]
	}
	return b
}

// sum returns t_j for the far row x and the features f.
func (b *dynamicScore) sum(j int, x, f []float32) float32 {
	t := b.near[j] + x[j]
	for d, w := range f {
		t += float32(w * b.edge[d*b.stride+j])
	}
	return t
}

// score returns Σ_j a_j·leaky(t_j).
func (b *dynamicScore) score(x, f []float32) (s float32) {
	for j, a := range b.vector {
		t := b.sum(j, x, f)
		s += float32(a * leaky(t, b.slope))
	}
	return s
}

// scoreRows computes dynamic scores.
func (b *edgeBatch) scoreRows(k *attentionTask, s *segment) {
	ids, scores, rows := b.ids[s.id:][:s.n], b.scores[s.value:], k.addendRows()
	if k.vectors() && s.n > 0 {
		at := k.group * k.Width
		near, vector := k.columns(k.near, k.Columns(), s.row), k.vector[at:][:k.size*k.Width]
		if k.edge != nil {
			b.scoreEdgeRows(k, near, vector, s)
		} else {
			leakyDots(k.set, scores, k.step, k.size, near, vector, rows[at:], k.Columns(), b.ids[s.id:b.known], s.n, k.Slope)
		}
		raiseTops(k.set, scores, s.n*k.step, &b.top)
		b.largest(k.step)
		return
	}
	for h := range k.size {
		of := k.dynamicScore(s.row, h)
		for e, id := range ids {
			v := of.score(rows[int(id)*k.Columns()+(k.group+h)*k.Width:], k.features(b, s.id+e))
			scores[e*k.step+h] = v
			if v > b.top[h] {
				b.top[h] = v
			}
		}
	}
}

// largest reduces the lanes of each head to their maximum, in its first lane.
func (b *edgeBatch) largest(step int) {
	for i := step; i < len(b.top); i++ {
		if to := &b.top[i%step]; b.top[i] > *to {
			*to = b.top[i]
		}
	}
}

// slopesOfEdges computes slopes, and stores the gradient of each edge's score in dq.
func (b *edgeBatch) slopesOfEdges(k *attentionTask, s *segment) {
	n, keep, scores := s.n*k.step, b.keepFactors(k, s), b.scores[s.value:]
	lse, dots := b.ends(k, s)
	if k.set != avx.None {
		k.set.SlopesOfEdges(scores, b.dq[:], n, keep, lse, dots, 1)
		return
	}
	slopesGo(scores, b.dq[:n], keep, lse, dots, 1)
}

// ends returns lse and dots of the attending vertex of each edge of a block.
func (b *edgeBatch) ends(k *attentionTask, s *segment) (lse, dots avx.PerEdge) {
	if k.op == backToSources {
		return avx.PerEdge{Vals: b.lse[s.value:], Step: avx.Heads}, avx.PerEdge{Vals: b.dots[s.value:], Step: avx.Heads}
	}
	return avx.PerEdge{Vals: b.nearLSE[:]}, avx.PerEdge{Vals: b.nearDots[:]}
}

// leakyGradient adds the gradients of t of a block to dst, the gradient of the near vertex. In the
// backward pass to targets it also adds to the sums for the weights along edges.
func (b *edgeBatch) leakyGradient(k *attentionTask, dst []float32, s *segment) {
	if k.vectors() {
		b.leakyGradientVectors(k, dst, s)
		return
	}
	for h := range k.size {
		k.leakyGradientHead(b, rowOf(dst, h, k.Width), h, s)
	}
}

// vectors reports whether scores are computed from whole rows, with package avx or in its order. Rows
// of many columns with edge features are too long.
func (k *attentionTask) vectors() bool {
	return k.edge == nil || k.size*k.Width <= edgeRowValues/leastEdgeRows
}

// leakyGradientVectors implements leakyGradient for whole rows.
func (b *edgeBatch) leakyGradientVectors(k *attentionTask, dst []float32, s *segment) {
	if s.n == 0 {
		return
	}
	var along []float32
	if k.op == backToTargets {
		along = k.alongRow(0, s.row)
	}
	if k.edge != nil {
		b.leakyGradientOfEdgeRows(k, dst, along, s)
		return
	}
	b.leakyGradientRows(k, dst, along, b.dq[:], k.addendRows()[k.group*k.Width:], k.Columns(), b.ids[s.id:][:s.n], s)
}

// leakyGradientRows runs leakyGradient for rows of x and the gradients ds of their edges' scores, for heads that
// share vectors together.
func (b *edgeBatch) leakyGradientRows(k *attentionTask, dst, along, ds, x []float32, stride int, ids []uint32, s *segment) {
	near, vector := k.columns(k.near, k.Columns(), s.row), k.vector[k.group*k.Width:]
	if k.mixesHeads() {
		leakyGradient(k.set, dst, along, near, vector, x, stride, ids, ds, k.step, s.n, k.Slope, k.heads[:])
		return
	}
	for h := range k.size {
		from, of := h*k.Width, along
		if along != nil {
			of = along[from:]
		}
		leakyGradient(k.set, rowOf(dst, h, k.Width), of, near[from:], vector[from:], x[from:], stride, ids,
			ds[h:], k.step, s.n, k.Slope, nil)
	}
}

func (k *attentionTask) leakyGradientHead(b *edgeBatch, dst []float32, h int, s *segment) {
	of, rows := k.dynamicScore(s.row, h), k.addendRows()
	var vector, features []float32 // the sums for Vector and for the rows of Edge, Columns() apart
	dim := 0                       // of the features whose weights get gradients
	if k.op == backToTargets {
		vector, dim = rowOf(k.alongRow(0, s.row), h, k.Width), k.dim
		if dim > 0 {
			features = k.along[s.row*k.AlongWidth()+k.Columns()+(k.group+h)*k.Width:]
		}
	}
	for e, id := range b.ids[s.id:][:s.n] {
		x, f, ds := rows[int(id)*k.Columns()+(k.group+h)*k.Width:], k.features(b, s.id+e), b.dq[e*k.step+h]
		for j, a := range of.vector {
			t, d := of.sum(j, x, f), ds
			if !(t > 0) {
				d *= of.slope
			}
			ad := float32(a * d)
			dst[j] += ad
			if vector != nil {
				vector[j] += float32(d * t)
			}
			for i := range dim {
				features[i*k.Columns()+j] += float32(ad * f[i])
			}
		}
	}
}
