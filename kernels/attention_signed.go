package kernels

import "siafu/kernels/internal/avx"

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
	args := attentionSignedTask{a, floatsOf(dr, n, a.Heads), floatsOf(signed, n, a.Emitted()), floatsOf(grad, n, a.Columns()),
		floatsOf(dots, n, a.Heads), t.set}
	do(t, args, n, rowGrain(a.Columns()))
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
			dr[h] = half * (dr[h] - float32(dots[h]*signed[k.Columns()+h]))
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
