package kernels

import (
	"math"

	"siafu/kernels/internal/avx"
)

// The loops of attention in plain Go, with the operations of package avx: sums over columns have
// sixteen lanes, sums over edges start with zero in each block.

// leaky returns t, or slope·t if that is larger.
func leaky(t, slope float32) float32 { return max(t, t*slope) }

// plainDots sets heads elements of dst, at every step, to the products of row with the rows of x that ids select.
func plainDots(dst []float32, step, heads int, row, x []float32, stride int, ids []uint32) {
	width := len(row) / heads
	for e, id := range ids {
		for h := range heads {
			dst[e*step+h] = laneDot(rowOf(row, h, width), x[int(id)*stride+h*width:])
		}
	}
}

// dotLanes is the number of sums of a product of rows.
const dotLanes = 16

// laneDot returns the product of x and y.
func laneDot(x, y []float32) float32 {
	var sums [dotLanes]float32
	for j := 0; j < len(x); j += dotLanes {
		n := min(dotLanes, len(x)-j)
		avx.AddProducts(sums[:n], x[j:j+n], y[j:j+n])
	}
	return sumLanes(&sums)
}

// sumLanes adds lanes of groups of four, and then the groups.
func sumLanes(s *[dotLanes]float32) float32 {
	var groups [4]float32
	for i := range groups {
		group := s[4*i:]
		groups[i] = (group[0] + group[2]) + (group[1] + group[3])
	}
	return (groups[0] + groups[2]) + (groups[1] + groups[3])
}

// weighRows computes avx.Set.Weigh.
func weighRows(set avx.Set, dst, signed, x []float32, stride int, ids []uint32, weights []float32, step, n int, heads []uint32) {
	if set != avx.None {
		set.Weigh(dst, signed, x, stride, ids, weights, step, n, heads)
		return
	}
	for e, id := range ids[:n] {
		row := x[int(id)*stride:][:len(dst)]
		eachHead(heads, len(dst), func(h uint32, from, to int) {
			w := weights[e*step+int(h)]
			if signed != nil {
				avx.AddScaled(signed[from:to], row[from:to], w)
				w = float32(math.Abs(float64(w)))
			}
			avx.AddScaled(dst[from:to], row[from:to], w)
		})
	}
}

// eachHead calls do for the columns [from, to) of each head of a row of the given width. heads has the
// head of each column; without heads there is one.
func eachHead(heads []uint32, width int, do func(h uint32, from, to int)) {
	if heads == nil {
		do(0, 0, width)
		return
	}
	for from, to := 0, 0; from < width; from = to {
		for to = from; to < width && heads[to] == heads[from]; to++ {
		}
		do(heads[from], from, to)
	}
}

// leakyDots computes avx.Set.LeakyDots.
func leakyDots(set avx.Set, dst []float32, step, heads int, row, vector, x []float32, stride int, ids []uint32, n int, slope float32) {
	if set != avx.None {
		set.LeakyDots(dst, step, heads, row, vector, x, stride, ids, n, slope)
		return
	}
	width := len(row) / heads
	for e, id := range ids[:n] {
		for h := range heads {
			from := h * width
			dst[e*step+h] = leakyDot(row[from:from+width], vector[from:], x[int(id)*stride+from:], slope)
		}
	}
}

// leakyDot returns the product of vector and the leaky sum of row and x.
func leakyDot(row, vector, x []float32, slope float32) float32 {
	var sums, bent [dotLanes]float32
	for j := 0; j < len(row); j += dotLanes {
		n := min(dotLanes, len(row)-j)
		for i, v := range row[j : j+n] {
			bent[i] = leaky(x[j+i]+v, slope)
		}
		avx.AddProducts(sums[:n], bent[:n], vector[j:j+n])
	}
	return sumLanes(&sums)
}

// raiseTops computes avx.Set.Tops.
func raiseTops(set avx.Set, scores []float32, n int, top *avx.Near) {
	if set != avx.None {
		set.Tops(scores, n, top)
		return
	}
	for i, v := range scores[:n] {
		if to := &top[i%len(top)]; v > *to {
			*to = v
		}
	}
}

// leakyGradient computes avx.Set.LeakyGradient.
func leakyGradient(set avx.Set, dst, along, near, vector, x []float32, stride int, ids []uint32, ds []float32, step, n int,
	slope float32, heads []uint32) {
	if set != avx.None {
		set.LeakyGradient(dst, along, near, vector, x, stride, ids, ds, step, n, slope, heads)
		return
	}
	var sums, bent [dotLanes]float32
	for from := 0; from < len(dst); from += len(sums) {
		to := min(from+len(sums), len(dst))
		clear(sums[:])
		clear(bent[:])
		for e, id := range ids[:n] {
			row := x[int(id)*stride:]
			for j := from; j < to; j++ {
				d, t := ds[e*step], row[j]+near[j]
				if heads != nil {
					d = ds[e*step+int(heads[j])]
				}
				if !(t > 0) {
					d = float32(d * slope)
				}
				sums[j-from] += d
				if along != nil {
					bent[j-from] = avx.FMA(d, t, bent[j-from])
				}
			}
		}
		avx.AddProducts(dst[from:to], vector[from:to], sums[:])
		if along != nil {
			addRow(set, along[from:to], bent[:to-from])
		}
	}
}
