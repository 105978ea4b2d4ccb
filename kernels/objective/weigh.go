package objective

import (
	"math"

	"siafu/graph"
)

// Count returns the number of training rows with each class or label. Ranks add their counts.
func (o *Objective) Count(t Truth) []int64 {
	n := make([]int64, o.Outputs)
	for r, label := range t.Labels {
		switch {
		case !t.counts(r, graph.SplitTrain):
		case o.Task == graph.MultiClass:
			n[label]++
		default:
			for c, y := range t.Values[r*o.Outputs : (r+1)*o.Outputs] {
				n[c] += number(y > 0)
			}
		}
	}
	return n
}

// Weigh sets Weights from a list. If list is nil, it sets balanced weights to a power: 1 for
// balanced, 1/2 for their roots. counts and N training rows are over all ranks.
//
// Class weights are scaled to a mean of 1 over the training rows, like PyTorch's losses that
// divide by the sum of weights; balanced ones are n/(C·n_c) before. Balanced label weights are
// (n - n_c)/n_c, so that positive labels weigh as much as negative ones.
func (o *Objective) Weigh(list []float64, power float64, counts []int64, rows int64) {
	n, c := float64(rows), float64(o.Outputs)
	o.Weights = make([]float64, o.Outputs)
	for k, count := range counts {
		switch {
		case list != nil:
			o.Weights[k] = list[k]
		case o.Task == graph.MultiLabel:
			o.Weights[k] = math.Pow(max(n-float64(count), 1)/max(float64(count), 1), power)
		default:
			o.Weights[k] = math.Pow(n/(c*max(float64(count), 1)), power)
		}
	}
	if o.Task == graph.MultiLabel {
		return
	}
	sum := 0.0
	for k, count := range counts {
		sum += o.Weights[k] * float64(count)
	}
	for k := range o.Weights {
		if sum > 0 {
			o.Weights[k] *= n / sum
		}
	}
}

// Sums returns, by split, the number of rows and the sum of each column. Ranks add their sums.
func (o *Objective) Sums(t Truth) []float64 {
	sums := make([]float64, splits*(1+o.Outputs))
	for r, label := range t.Labels {
		if label < 0 {
			continue
		}
		of := sums[int(t.Split[r])*(1+o.Outputs):]
		of[0]++
		for c, y := range t.Values[r*o.Outputs : (r+1)*o.Outputs] {
			of[1+c] += float64(y)
		}
	}
	return sums
}

// Squares returns, by split and column, Σ(y - mean)², with means from the Sums of all ranks.
// Ranks add their squares.
func (o *Objective) Squares(t Truth, sums []float64) []float64 {
	squares := make([]float64, splits*o.Outputs)
	for r, label := range t.Labels {
		if label < 0 {
			continue
		}
		split := int(t.Split[r])
		of := sums[split*(1+o.Outputs):]
		for c, y := range t.Values[r*o.Outputs : (r+1)*o.Outputs] {
			d := float64(y) - of[1+c]/of[0]
			squares[split*o.Outputs+c] += d * d
		}
	}
	return squares
}

// Settle sets Rows and Spread from the sums and squares of all ranks.
func (o *Objective) Settle(sums, squares []float64) {
	for split := range splits {
		o.Rows[split] = int64(sums[split*(1+o.Outputs)])
		o.Spread[split] = squares[split*o.Outputs : (split+1)*o.Outputs]
	}
}
