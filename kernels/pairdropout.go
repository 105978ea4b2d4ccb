package kernels

import "siafu/kernels/internal/avx"

// Dropout of rows that belong to pairs of vertices.
//
//	dst[i][c] = keep(i, c) ? dst[i][c]/(1-P) : 0
//
// Variant: as for rows of vertices, with both ends of a pair in the counter. The routine for
// four heads of attention edges draws four columns of several pairs at once.

// PairDropout is a Dropout of rows of pairs, by the dataset ids of their ends. Element
// (pair, col) is kept when word col mod 4 of
//
//	Philox({Lesser, Greater, Epoch, pairs' scores | Layer<<16 | col/4}, Seed)
//
// is at most Mask.Last of a Dropout of this P. With P = 0 nothing is dropped.
type PairDropout struct {
	Seed            uint64
	Epoch, Layer    int
	P               float64  // in [0, 1)
	Lesser, Greater []uint32 // ends of each pair, ordered so that both directions give the same words
}

// pairsAtOnce is the number of pairs per draw. It must not be avx.Heads, which would mean one
// id.
const pairsAtOnce = 64

// DropPairs drops elements of dst, one row per pair. It uses one worker: a body of Run may
// call it.
func (t *Team) DropPairs(dst Mat, drop PairDropout) {
	if drop.P == 0 || dst.Rows == 0 {
		return
	}
	mustFit(dst.Rows <= len(drop.Lesser) && dst.Rows <= len(drop.Greater))
	if uint(drop.Layer) >= 1<<8 || dst.Cols > philoxWords<<16 {
		panic("kernels: more layers or columns than counters")
	}
	d := Dropout{Seed: drop.Seed, Epoch: drop.Epoch, P: drop.P, Layer: streamScores | drop.Layer<<16}
	m, values := d.Mask(0), dst.Host()
	var lesser, greater [pairsAtOnce]uint32
	var keep [pairsAtOnce * philoxWords]float32
	for lo := 0; lo < dst.Rows; lo += pairsAtOnce {
		n := min(dst.Rows-lo, pairsAtOnce)
		copy(lesser[:], drop.Lesser[lo:lo+n])
		copy(greater[:], drop.Greater[lo:lo+n])
		for c := 0; c < dst.Cols; c += philoxWords {
			words := m
			words.Layer += uint32(c / philoxWords)
			draw := newMask(words)
			if t.set != avx.None {
				t.set.EdgeMask(&draw.draw, keep[:], philoxWords, lesser[:], greater[:], n)
			} else {
				draw.edges(keep[:], philoxWords, philoxWords, lesser[:], greater[:], n)
			}
			for i := range n {
				row := rowOf(values, lo+i, dst.Cols)[c:min(c+philoxWords, dst.Cols)]
				for j, k := range keep[i*philoxWords:][:len(row)] {
					row[j] = keepOrZero(row[j]*k, k > 0)
				}
			}
		}
	}
}
