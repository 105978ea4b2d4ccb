package kernels

import (
	"math"

	"siafu/kernels/internal/avx"
)

// Predictions, and the number of correct ones.
//
//	argmax(r) = the lowest c with the largest z[r][c]; a NaN is never largest
//
// Variant: the largest element of several rows at once (softmax.go), then its column; counts by chunk, summed.

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
	do(t, accuracyTask{logits.Host(), labels.Host(), split.Host(), counts, classes, grain, t.set}, rows, grain)
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
	set            avx.Set
}

func (k *accuracyTask) chunk(lo, hi int) {
	var n [2 * splits]int64
	var s avx.Softmax
	for r := lo; r < hi; r++ {
		if k.labels[r] >= 0 {
			s.Rows[s.Count] = uint32(r)
			s.Count++
		}
		if s.Count == len(s.Rows) || r == hi-1 {
			k.count(&n, &s)
			s.Count = 0
		}
	}
	copy(k.counts[lo/k.grain*2*splits:], n[:])
}

// count adds rows with labels to n.
func (k *accuracyTask) count(n *[2 * splits]int64, s *avx.Softmax) {
	rowMaxima(k.set, s, k.logits, k.classes)
	for i, r := range s.Rows[:s.Count] {
		split := int(k.split[r])
		if split >= splits {
			panic("kernels: unknown split value")
		}
		n[splits+split]++
		if argmax(rowOf(k.logits, int(r), k.classes), float32(s.Tops[i])) == k.labels[r] {
			n[split]++
		}
	}
}

// Argmax implements Ops: of the largest elements of a row the first counts, and
// column 0 where nothing is above -Inf.
func (t *Team) Argmax(dst Vector[int32], x Mat) {
	mustFit(dst.Len() >= x.Rows)
	do(t, argmaxTask{dst.Host(), x.Host(), x.Cols, t.set}, x.Rows, avx.SoftmaxRows)
}

type argmaxTask struct {
	dst  []int32
	x    []float32
	cols int
	set  avx.Set
}

func (k *argmaxTask) chunk(lo, hi int) {
	s := softmaxOfRange(lo, hi)
	rowMaxima(k.set, &s, k.x, k.cols)
	for i := range s.Count {
		k.dst[lo+i] = argmax(rowOf(k.x, lo+i, k.cols), float32(s.Tops[i]))
	}
}

// argmax returns the first column with the largest element, top, and 0 if that is -Inf.
func argmax(x []float32, top float32) int32 {
	if top > float32(math.Inf(-1)) {
		for j, v := range x {
			if v == top {
				return int32(j)
			}
		}
	}
	return 0
}
