package kernels

import (
	"math"

	"siafu/internal/mapped"
	"siafu/kernels/internal/avx"
)

// Maxima over the in-neighbours of a vertex, column by column, and their gradient.
//
//	dst[r][j] = max over e of x[c-Base][j],  c = Cols[e]; 0 for a row without edges
//	arg[r][j] = the c of the maximum; of equal maxima, the c with the lowest id
//
//	grad[r][j] = Σ over e of g[v][j] where arg[v][j] = first+r,  v = Cols[e]
//
// Variant: pull, row by row; one worker computes a row. Package avx keeps maxima, their
// sources and the sources' ids in registers during the edges of a row. Plain Go gives the same
// bits. The maximum does not depend on the order of edges. Ties are resolved by dataset ids.
// Therefore any partition of the edges gives the same maxima, and each gradient the same
// source. NaN is no maximum.

// MaxGather implements Ops.
func (t *Team) MaxGather(dst, arg Mat, e Edges, x Mat, ids Vector[uint32], merge bool) {
	rows := e.Rows()
	mustFit(dst.Rows == rows && dst.Cols == x.Cols && e.End.Len() >= rows && (arg.IsNil() || isSameShape(dst, arg)))
	if rows == 0 || dst.Cols == 0 {
		return
	}
	k := maxTask{Gather: e.gather(), dst: dst.Host(), x: x.Host(), ids: ids.Host(), width: dst.Cols, merge: merge, set: t.set}
	if !arg.IsNil() {
		k.arg = asUint32(arg)
	}
	doWeighted(t, k, k.Begin, k.End[rows-1])
}

// MaxGatherGrad implements Ops.
func (t *Team) MaxGatherGrad(dst Mat, e Edges, arg, g Mat, first int) {
	rows := e.Rows()
	mustFit(dst.Rows == rows && dst.Cols == g.Cols && e.End.Len() >= rows && isSameShape(arg, g))
	if rows == 0 || dst.Cols == 0 {
		return
	}
	k := maxGradTask{Gather: e.gather(), dst: dst.Host(), arg: asUint32(arg), g: g.Host(), width: dst.Cols, first: first, set: t.set}
	doWeighted(t, k, k.Begin, k.End[rows-1])
}

// asUint32 returns the elements of m as uint32.
func asUint32(m Mat) []uint32 { return mapped.Cast[uint32](mapped.Bytes(m.Host())) }

type maxTask struct {
	Gather
	dst, x []float32
	arg    []uint32 // nil: not requested
	ids    []uint32
	width  int
	merge  bool
	set    avx.Set
}

// minusInf is the initial value of dst.
var minusInf = float32(math.Inf(-1))

func (k *maxTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		dst := rowOf(k.dst, r, k.width)
		if !k.merge {
			for j := range dst {
				dst[j] = minusInf
			}
		}
		k.edges(dst, r)
		if k.merge {
			zeroIfNone(dst)
		}
	}
}

// edges updates row r with all its sources.
func (k *maxTask) edges(dst []float32, r int) {
	cols, n := k.Cols[k.Begin[r]:], int(k.End[r]-k.Begin[r])
	var arg []uint32
	if k.arg != nil {
		arg = k.arg[r*k.width:][:k.width]
	}
	switch {
	case n == 0:
	case k.set != avx.None:
		k.set.Maxima(dst, arg, k.x, cols, k.ids, k.Base, n)
	default:
		for _, c := range cols[:n] {
			x := rowOf(k.x, int(c-k.Base), k.width)
			if arg == nil {
				greater(dst, x)
			} else {
				k.greatest(dst, arg, x, c)
			}
		}
	}
}

// zeroIfNone replaces -Inf in a row without edges by 0.
func zeroIfNone(dst []float32) {
	for j, v := range dst {
		if v == minusInf {
			dst[j] = 0
		}
	}
}

func greater(dst, x []float32) {
	dst = dst[:len(x)]
	for j, v := range x {
		if v > dst[j] {
			dst[j] = v
		}
	}
}

// greatest updates dst with x, and records the column id c.
func (k *maxTask) greatest(dst []float32, arg []uint32, x []float32, c uint32) {
	dst, arg = dst[:len(x)], arg[:len(x)]
	for j, v := range x {
		if v > dst[j] || v == dst[j] && v > minusInf && k.ids[c] < k.ids[arg[j]] {
			dst[j], arg[j] = v, c
		}
	}
}

type maxGradTask struct {
	Gather
	dst, g []float32
	arg    []uint32
	width  int
	first  int
	set    avx.Set
}

func (k *maxGradTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		dst, source := rowOf(k.dst, r, k.width), uint32(k.first+r)
		clear(dst)
		cols, n := k.Cols[k.Begin[r]:], int(k.End[r]-k.Begin[r])
		if n > 0 && k.set != avx.None {
			k.set.MaximaGrad(dst, k.arg, k.g, cols, source, n)
			continue
		}
		for _, v := range cols[:n] {
			g, arg := rowOf(k.g, int(v), k.width), k.arg[int(v)*k.width:][:k.width]
			for j, c := range arg {
				if c == source {
					dst[j] += g[j]
				}
			}
		}
	}
}
