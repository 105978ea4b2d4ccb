package cuda

import (
	"siafu/cuda/device"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// lossRows is the number of rows per block of crossEntropy and accuracy.
const lossRows = 256

// SoftmaxCrossEntropy implements kernels.Ops.
func (o *Ops) SoftmaxCrossEntropy(grad, logits kernels.Mat, labels kernels.Vector[int32], split kernels.Vector[uint8], want uint8,
	scale float32) (loss float64, count int64) {
	rows := logits.Rows
	mustFit(labels.Len() >= rows && split.Len() >= rows && (grad.IsNil() || isSameShape(grad, logits)))
	n := blocks(rows, lossRows)
	losses := o.scratch(16 * n)
	defer o.releaseScratch()
	counts := losses + device.Ptr(8*n)
	o.launch("crossEntropy", launch2D(n, 1), o.newArgs().Ptr(matPtr(grad)).Ptr(matPtr(logits)).Ptr(vectorPtr(labels)).Ptr(vectorPtr(split)).
		Ptr(losses).Ptr(counts).Int64(int64(rows)).Int32(int32(logits.Cols)).Uint32(uint32(want)).Float32(scale))
	o.losses, o.counts = resized(o.losses, n), resized(o.counts, n)
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

// resized returns a slice of n elements, x if large enough.
func resized[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}

// Accuracy implements kernels.Ops.
func (o *Ops) Accuracy(logits kernels.Mat, labels kernels.Vector[int32], split kernels.Vector[uint8]) (correct, total [4]int64) {
	rows := logits.Rows
	mustFit(labels.Len() >= rows && split.Len() >= rows)
	const numbers = 2*len(correct) + 1 // of a block: correct ones, all, and those without split
	n := blocks(rows, lossRows)
	counts := o.scratch(8 * n * numbers)
	defer o.releaseScratch()
	o.launch("accuracy", launch2D(n, 1), o.newArgs().Ptr(counts).Ptr(matPtr(logits)).Ptr(vectorPtr(labels)).Ptr(vectorPtr(split)).
		Int64(int64(rows)).Int32(int32(logits.Cols)))
	o.counts = resized(o.counts, n*numbers)
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
	mustFit(dst.Len() >= x.Rows)
	o.launch("argmax", launchWarps(x.Rows), o.newArgs().Ptr(vectorPtr(dst)).Ptr(matPtr(x)).Int64(int64(x.Rows)).Int32(int32(x.Cols)))
}

// Softmax implements kernels.Ops.
func (o *Ops) Softmax(dst, x kernels.Mat) {
	mustFit(isSameShape(dst, x))
	if x.Cols > 0 {
		o.launch("softmax", launchWarps(x.Rows), o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(x)).Int64(int64(x.Rows)).Int32(int32(x.Cols)))
	}
}
