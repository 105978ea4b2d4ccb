package kernels

import "siafu/kernels/internal/avx"

// Sums of matrices and of single rows, and products of rows and a number.
//
//	dst[i] += x[i]
//	dst[i] = x0[i] + x1[i] + x2[i] …
//	dst[i] = keep·dst[i] + share·x[i]
//	x[i] *= factor

// Add implements Ops.
func (t *Team) Add(dst, x Mat) {
	mustFit(isSameShape(dst, x))
	do(t, addTask{dst.Host(), x.Host(), t.set}, dst.Rows*dst.Cols, chunkElements)
}

type addTask struct {
	dst, x []float32
	set    avx.Set
}

func (k *addTask) chunk(lo, hi int) {
	addRow(k.set, k.dst[lo:hi], k.x[lo:hi])
}

// Sum sets dst to the sum of parts of its shape, added in order.
func Sum(o Ops, dst Mat, parts []Mat) {
	if t, ok := o.(*Team); ok {
		do(t, sumTask{dst.Host(), parts, t.set}, dst.Rows*dst.Cols, sumGrain)
		return
	}
	o.Copy(dst, parts[0])
	for _, p := range parts[1:] {
		o.Add(dst, p)
	}
}

// sumGrain is the number of elements of a chunk of many parts.
const sumGrain = 1 << 11

type sumTask struct {
	dst   []float32
	parts []Mat
	set   avx.Set
}

func (k *sumTask) chunk(lo, hi int) {
	dst := k.dst[lo:hi]
	copy(dst, k.parts[0].Host()[lo:hi])
	for _, p := range k.parts[1:] {
		addRow(k.set, dst, p.Host()[lo:hi])
	}
}

// Blend implements Ops.
func (t *Team) Blend(dst Mat, keep float32, x Mat, share float32) {
	mustFit(isSameShape(dst, x))
	do(t, blendTask{dst.Host(), x.Host(), keep, share}, dst.Rows*dst.Cols, chunkElements)
}

type blendTask struct {
	dst, x      []float32
	keep, share float32
}

func (k *blendTask) chunk(lo, hi int) {
	dst, x := k.dst[lo:hi], k.x[lo:hi]
	if k.keep == 0 {
		for i, v := range x {
			dst[i] = k.share * v
		}
		return
	}
	for i, v := range x {
		dst[i] = float32(k.keep*dst[i]) + float32(k.share*v)
	}
}

// AddRow adds x to dst, of the same length.
func AddRow(dst, x []float32) {
	if len(x) != len(dst) {
		panic(shortInput)
	}
	addRow(avx.Best(), dst, x)
}

func addRow(set avx.Set, dst, x []float32) {
	if set != avx.None {
		set.AddRow(dst, x)
		return
	}
	x = x[:len(dst)]
	for j := range dst {
		dst[j] += x[j]
	}
}

// ScaleRow multiplies x by factor.
func ScaleRow(x []float32, factor float32) {
	scale(avx.Best(), x, factor)
}

// scale multiplies x by s.
func scale(set avx.Set, x []float32, s float32) {
	if set != avx.None {
		set.Scale(x, s)
		return
	}
	for j := range x {
		x[j] *= s
	}
}
