package kernels

import (
	"math"

	"siafu/kernels/internal/avx"
)

// Gathers in plain Go, with the operations of package avx.

// sumColumns is the number of columns whose sums are on the stack.
const sumColumns = 256

// plainRows computes rows [lo, hi) of float32 or bfloat16 rows.
func (k *spmmTask) plainRows(lo, hi int) {
	if len(k.x) == 0 && len(k.half) == 0 { // then no row has a column
		clearUnless(k.add, k.dst[lo*k.width:hi*k.width])
		return
	}
	var sums [sumColumns]float32
	for r := lo; r < hi; r++ {
		for j := 0; j < k.width; j += sumColumns {
			sum := sums[:min(sumColumns, k.width-j)]
			clear(sum)
			k.addSources(sum, r, j)
			k.put(rowOf(k.dst, r, k.width)[j:], sum, r)
		}
	}
}

// put sets a part of row r to its scaled sums, or adds them.
func (k *spmmTask) put(dst, sum []float32, r int) {
	scale, dst := k.rowScale(r), dst[:len(sum)]
	for j, v := range sum {
		v = float32(v * scale)
		if k.add {
			v += dst[j]
		}
		dst[j] = v
	}
}

// addSources adds the sources of row r, columns from j on.
func (k *spmmTask) addSources(sum []float32, r, j int) {
	scaled := k.ColScale != nil
	if k.SelfLoops {
		c := k.First + uint32(r)
		k.addSource(sum, c, j, k.edge(c, 1), scaled)
	}
	for e := k.Begin[r]; e < k.End[r]; e++ {
		c, weight := k.Cols[e], float32(1)
		if k.Weights != nil {
			weight = k.Weights[e]
		}
		k.addSource(sum, c, j, k.edge(c, weight), scaled || k.Weights != nil)
	}
}

// addSource adds columns of the row of c, times scale if scaled is set.
func (k *spmmTask) addSource(sum []float32, c uint32, j int, scale float32, scaled bool) {
	switch {
	case k.x == nil:
		k.addHalf(sum, k.half[int(c-k.Base)*k.width+j:][:len(sum)], scale)
	case scaled:
		avx.AddScaled(sum, k.source(c)[j:][:len(sum)], scale)
	default:
		addRow(avx.None, sum, k.source(c)[j:][:len(sum)])
	}
}

// addHalf adds scale times x, which is bfloat16. A scale of 1 changes no bits.
func (k *spmmTask) addHalf(sum []float32, x []uint16, scale float32) {
	var wide [sumColumns]float32
	widenRow(avx.None, wide[:len(sum)], x, false)
	avx.AddScaled(sum, wide[:len(sum)], scale)
}

// plainLists computes rows [lo, hi) of lists, with a buffer for the sums of a row.
func (k *spmmTask) plainLists(sum []float32, lo, hi int) {
	for r := lo; r < hi; r++ {
		clear(sum)
		if k.SelfLoops {
			k.addList(sum, k.First+uint32(r))
		}
		for _, c := range k.Cols[k.Begin[r]:k.End[r]] {
			k.addList(sum, c)
		}
		k.put(rowOf(k.dst, r, k.width), sum, r)
	}
}

// addList adds the list of column c.
func (k *spmmTask) addList(sum []float32, c uint32) {
	scale := k.edge(c, 1)
	k.eachListed(c, func(col int, v float32) { sum[col] = avx.FMA(v, scale, sum[col]) })
}

// eachListed calls do for each value of the list of column c, and its column.
func (k *spmmTask) eachListed(c uint32, do func(col int, v float32)) {
	at := uint64(c - k.Base)
	for first := true; first || at != 0; first = false {
		record := k.lists[recordWords*at:][:recordWords]
		for i := range recordValues {
			v := math.Float32frombits(uint32(record[i/2] >> (32 * (i % 2))))
			do(int(record[2]>>(16*i)&0xffff), v)
		}
		at = record[3]
	}
}
