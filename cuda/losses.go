package cuda

import (
	"siafu/cuda/device"
	"siafu/graph/mapped"
	"siafu/kernels"
)

// lossRows is how many rows a block of crossEntropy and accuracy has.
const lossRows = 256

// SoftmaxCrossEntropy implements kernels.Ops.
func (o *Ops) SoftmaxCrossEntropy(grad, logits kernels.Mat, labels kernels.Vector[int32], split kernels.Vector[uint8], want uint8, scale float32) (loss float64, count int64) {
	rows := logits.Rows
	fit(labels.Len() >= rows && split.Len() >= rows && (grad.IsNil() || alike(grad, logits)))
	n := blocks(rows, lossRows)
	losses := o.room(16 * n)
	defer o.leave()
	counts := losses + device.Ptr(8*n)
	o.launch("crossEntropy", tall(n, 1), o.with().Ptr(at(grad)).Ptr(at(logits)).Ptr(start(labels)).Ptr(start(split)).
		Ptr(losses).Ptr(counts).Int64(int64(rows)).Int32(int32(logits.Cols)).Uint32(uint32(want)).Float32(scale))
	o.losses, o.counts = grown(o.losses, n), grown(o.counts, n)
	o.Download(mapped.Bytes(o.losses), pointer(losses))
	o.Download(mapped.Bytes(o.counts), pointer(counts))
	for b := range n {
		if o.counts[b] < 0 {
			panic("cuda: label beyond classes")
		}
		loss += o.losses[b]
		count += o.counts[b]
	}
	return loss, count
}

// grown is room for n elements, x where that has it.
func grown[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}

// Accuracy implements kernels.Ops.
func (o *Ops) Accuracy(logits kernels.Mat, labels kernels.Vector[int32], split kernels.Vector[uint8]) (correct, total [4]int64) {
	rows := logits.Rows
	fit(labels.Len() >= rows && split.Len() >= rows)
	const numbers = 2*len(correct) + 1 // of a block: right ones, all, and those of no split
	n := blocks(rows, lossRows)
	counts := o.room(8 * n * numbers)
	defer o.leave()
	o.launch("accuracy", tall(n, 1), o.with().Ptr(counts).Ptr(at(logits)).Ptr(start(labels)).Ptr(start(split)).
		Int64(int64(rows)).Int32(int32(logits.Cols)))
	o.counts = grown(o.counts, n*numbers)
	o.Download(mapped.Bytes(o.counts), pointer(counts))
	for b := range n {
		block := o.counts[b*numbers:][:numbers]
		for s := range correct {
			correct[s] += block[s]
			total[s] += block[len(correct)+s]
		}
		if block[numbers-1] > 0 {
			panic("cuda: unknown split value")
		}
	}
	return correct, total
}

// Argmax implements kernels.Ops.
func (o *Ops) Argmax(dst kernels.Vector[int32], x kernels.Mat) {
	fit(dst.Len() >= x.Rows)
	o.launch("argmax", warps(x.Rows), o.with().Ptr(start(dst)).Ptr(at(x)).Int64(int64(x.Rows)).Int32(int32(x.Cols)))
}

// Softmax implements kernels.Ops.
func (o *Ops) Softmax(dst, x kernels.Mat) {
	fit(alike(dst, x))
	if x.Cols > 0 {
		o.launch("softmax", warps(x.Rows), o.with().Ptr(at(dst)).Ptr(at(x)).Int64(int64(x.Rows)).Int32(int32(x.Cols)))
	}
}
