package kernels

import "siafu/kernels/internal/avx"

// Softmax cross entropy and its gradient.
//
//	loss    = Σ_r  log Σ_c exp(z[r][c]) - z[r][label[r]]      over r with split = want, label ≥ 0
//	grad[r] = scale·(softmax(z[r]) - onehot(label[r])),  0 for all other rows
//
// Variant: fused, on the softmax of rows (softmax.go). Losses are summed in blocks of rows of a fixed size,
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
	var s avx.Softmax
	for r := lo; r < hi; r++ {
		if k.split[r] == k.want && k.labels[r] >= 0 {
			s.Rows[s.Count] = uint32(r)
			s.Count++
		} else if k.grad != nil {
			clear(rowOf(k.grad, r, k.classes))
		}
		if s.Count == len(s.Rows) || r == hi-1 {
			loss = k.addLosses(loss, &s)
			count += int64(s.Count)
			s.Count = 0
		}
	}
	k.losses[lo/lossRows], k.counts[lo/lossRows] = loss, count
}

// addLosses adds the losses of rows to loss, and fills their grad unless that is nil.
func (k *lossTask) addLosses(loss float64, s *avx.Softmax) float64 {
	var at [avx.SoftmaxRows]int
	var logits [avx.SoftmaxRows]float32
	for i, r := range s.Rows[:s.Count] {
		label := int(k.labels[r])
		if label >= k.classes {
			panic("kernels: label out of range")
		}
		at[i] = int(r)*k.classes + label
		logits[i] = k.logits[at[i]]
	}
	softmaxRows(k.set, s, k.grad, k.logits, k.classes, float64(k.scale))
	for i, at := range at[:s.Count] {
		loss += s.Logs[i] + s.Tops[i] - float64(logits[i])
		if k.grad != nil {
			k.grad[at] -= k.scale
		}
	}
	return loss
}
