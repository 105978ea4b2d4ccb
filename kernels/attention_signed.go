package kernels

import (
	"math"

	"siafu/kernels/internal/avx"
)

// The gradient of r without edges. Since the weights of a target's edges sum up to 1,
//
//	Σ_u p·((g[v]·z[u])·keep - D[v]) = 0
//
// and ds are these terms times 1 or Slope, dr depends only on the signs of scores:
//
//	dr[v] = (1-Slope)/2 · (g[v]·B[v] - D[v]·Q[v])
//	B[v] = Σ_u σ·q[v,u]·z[u]    Q[v] = Σ_u σ·p[v,u]    σ = 1 where s[v,u] > 0, else -1
//
// B and Q are sums of the forward pass, over rows that are in registers anyway; the backward
// pass then needs only edges by source.
//
// Variant: weights carry σ as their sign. B and Q are scaled with the output when the largest
// score grows.

// AttentionGradSigned implements Ops.
func (t *Team) AttentionGradSigned(a Attention, dr, signed, grad, dots Mat) {
	n := dr.Rows
	args := attentionSignedTask{a, floatsOf(dr, n, a.Heads), floatsOf(signed, n, a.Emitted()), floatsOf(grad, n, a.Columns()), floatsOf(dots, n, a.Heads), t.set}
	do(t, &t.slots.attentionSigned, args, n, rowGrain(a.Columns()))
}

type attentionSignedTask struct {
	Attention
	dr, signed, grad, dots []float32
	set                    avx.Set
}

func (k *attentionSignedTask) chunk(lo, hi int) {
	var ids [1]uint32
	half := (1 - k.Slope) / 2
	for r := lo; r < hi; r++ {
		dr, dots, signed := rowOf(k.dr, r, k.Heads), rowOf(k.dots, r, k.Heads), rowOf(k.signed, r, k.Emitted())
		setDots(k.set, k.dr[r*k.Heads:], k.Heads, k.Heads, rowOf(k.grad, r, k.Columns()), signed, k.Emitted(), ids[:], 1)
		for h := range dr {
			dr[h] = half * (dr[h] - dots[h]*signed[k.Columns()+h])
		}
	}
}

// signedRow returns the destination of B and Q of the group's heads in row r, none if not
// requested.
func (k *attentionTask) signedRow(r int) (b, q []float32) {
	if k.signed == nil {
		return nil, nil
	}
	row := rowOf(k.signed, r, k.Emitted())
	return row[k.group*k.Width:][:k.size*k.Width], row[k.Columns()+k.group:][:k.size]
}

// signedWeights computes weights with the score's sign, and both sums.
func (b *edgeBatch) signedWeights(k *attentionTask, s *segment) {
	n, keep, scores := s.n*k.step, b.keepFactors(k, s), b.scores[s.value:]
	if k.set != avx.None {
		k.set.SignedWeights(scores, n, keep, &b.top, &b.sum, &b.signed)
		return
	}
	for i, v := range scores[:n] {
		lane := i % avx.Heads
		e := float32(math.Exp(float64(v - b.top[lane])))
		b.sum[lane] += e
		if !(v > 0) {
			e = -e
		}
		b.signed[lane] += e
		scores[i] = e * keep.At(i)
	}
}

// weighSigned adds the rows of far vertices to dst, times the absolute weights, and to signed,
// times the weights.
func (b *edgeBatch) weighSigned(k *attentionTask, dst, signed []float32, s *segment) {
	if s.n == 0 {
		return
	}
	ids, weights, x := b.ids[s.id:b.known], b.scores[s.value:], k.far[k.group*k.Width:]
	switch {
	case k.set == avx.None:
		weighSignedGo(k, dst, signed, x, ids[:s.n], weights)
	case k.mixesHeads():
		k.set.WeighSigned(dst, signed, x, k.farWidth, ids, weights, k.step, s.n, k.heads[:])
	default:
		for h := range k.size {
			k.set.WeighSigned(rowOf(dst, h, k.Width), rowOf(signed, h, k.Width), x[h*k.Width:], k.farWidth, ids, weights[h:], k.step, s.n, nil)
		}
	}
}

func weighSignedGo(k *attentionTask, dst, signed, x []float32, ids []uint32, weights []float32) {
	for e, id := range ids {
		for h := range k.size {
			row, w := x[int(id)*k.farWidth+h*k.Width:], weights[e*k.step+h]
			axpy1(rowOf(dst, h, k.Width), row, float32(math.Abs(float64(w))))
			axpy1(rowOf(signed, h, k.Width), row, w)
		}
	}
}
