package kernels

import "math"

// Predictions, and the number of correct ones.
//
//	argmax(r) = the lowest c with the largest z[r][c]; a NaN is never largest
//
// Variant: one pass, counts kept by chunk and summed.

// splits is the number of split values (graph.SplitNone to graph.SplitTest).
const splits = 4

// Accuracy implements Ops: it counts, for each split value, the rows with a label
// ≥ 0 (total) and those among them whose largest logit is the label's (correct).
// Split values must be below 4.
func (t *Team) Accuracy(logits Mat, labels Vector[int32], split Vector[uint8]) (correct, total [splits]int64) {
	rows, classes := logits.Rows, logits.Cols
	mustFit(labels.Len() >= rows && split.Len() >= rows)
	grain := rowGrain(classes)
	chunks := (rows + grain - 1) / grain
	counts := scratch(&t.counts, chunks*2*splits)
	do(t, accuracyTask{logits.Host(), labels.Host(), split.Host(), counts, classes, grain}, rows, grain)
	for i, n := range counts {
		if s := i % (2 * splits); s < splits {
			correct[s] += n
		} else {
			total[s-splits] += n
		}
	}
	return correct, total
}

type accuracyTask struct {
	logits         []float32
	labels         []int32
	split          []uint8
	counts         []int64 // a chunk: correct by split, then total by split
	classes, grain int
}

func (k *accuracyTask) chunk(lo, hi int) {
	var n [2 * splits]int64
	for r := lo; r < hi; r++ {
		label, s := k.labels[r], int(k.split[r])
		if label < 0 {
			continue
		}
		if s >= splits {
			panic("kernels: unknown split value")
		}
		n[splits+s]++
		if argmax(rowOf(k.logits, r, k.classes)) == label {
			n[s]++
		}
	}
	copy(k.counts[lo/k.grain*2*splits:], n[:])
}

// Argmax implements Ops: of the largest elements of a row the first counts, and
// column 0 where nothing is above -Inf.
func (t *Team) Argmax(dst Vector[int32], x Mat) {
	mustFit(dst.Len() >= x.Rows)
	do(t, argmaxTask{dst.Host(), x.Host(), x.Cols}, x.Rows, rowGrain(x.Cols))
}

type argmaxTask struct {
	dst  []int32
	x    []float32
	cols int
}

func (k *argmaxTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		k.dst[r] = argmax(rowOf(k.x, r, k.cols))
	}
}

func argmax(x []float32) int32 {
	top, at := float32(math.Inf(-1)), 0
	for j, v := range x {
		if v > top {
			top, at = v, j
		}
	}
	return int32(at)
}
