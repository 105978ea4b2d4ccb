package kernels

import (
	"siafu/internal/elementary"
	"siafu/kernels/internal/avx"
)

// Softmax cross entropy and its gradient.
//
//	loss    = Σ_r  log Σ_c exp(z[r][c]) - z[r][label[r]]      over r with split = want, label ≥ 0
//	grad[r] = scale·(softmax(z[r]) - onehot(label[r])),  0 for all other rows
//
// Variant: fused, on the softmax of a row (softmax.go). Losses are summed in blocks of rows of a fixed size,
// the blocks in order.

// lossRows is the number of rows whose losses are summed together.
const lossRows = 256

// SoftmaxCrossEntropy implements Ops: it returns the summed loss and the number of rows that
// counted, those with split[r] == want and labels[r] ≥ 0. grad may be logits, or none for the
// loss alone. For the mean over count rows, scale is 1/count. Labels must be below the number
// of classes. A NaN or +Inf among a row's logits makes the loss NaN.
func (t *Team) SoftmaxCrossEntropy(grad, logits Mat, labels Vector[int32], split Vector[uint8], want uint8,
	scale float32) (loss float64, count int64) {
	rows := logits.Rows
	mustFit(labels.Len() >= rows && split.Len() >= rows && (grad.IsNil() || isSameShape(grad, logits)))
	blocks := (rows + lossRows - 1) / lossRows
	losses, counts := scratch(&t.sums, blocks), scratch(&t.counts, blocks)
	args := lossTask{grad.Host(), logits.Host(), labels.Host(), split.Host(), losses, counts, logits.Cols, want, scale, t.set}
	do(t, args, rows, lossRows)
	for b := range blocks {
		loss += losses[b]
		count += counts[b]
	}
	return loss, count
}

type lossTask struct {
	grad, logits []float32
	labels       []int32
	split        []uint8
	losses       []float64
	counts       []int64
	classes      int
	want         uint8
	scale        float32
	set          avx.Set
}

func (k *lossTask) chunk(lo, hi int) {
	var loss float64
	var count int64
	for r := lo; r < hi; r++ {
		var grad []float32
		if k.grad != nil {
			grad = rowOf(k.grad, r, k.classes)
		}
		if k.split[r] != k.want || k.labels[r] < 0 {
			clear(grad)
			continue
		}
		loss += k.crossEntropy(grad, rowOf(k.logits, r, k.classes), int(k.labels[r]))
		count++
	}
	k.losses[lo/lossRows], k.counts[lo/lossRows] = loss, count
}

// crossEntropy returns the loss of one row, and fills grad unless that is nil.
func (k *lossTask) crossEntropy(grad, z []float32, label int) float64 {
	if label >= len(z) {
		panic("kernels: label out of range")
	}
	at := float64(z[label])
	top, sum := softmaxRow(k.set, grad, z, float64(k.scale))
	if grad != nil {
		grad[label] -= k.scale
	}
	return elementary.Log(sum) + float64(top) - at
}
