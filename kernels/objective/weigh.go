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

// Weigh sets Weights, of counts over all ranks and N training rows: those of a
// list, or where that is nil balanced ones to a power: 1 for balanced ones, 1/2 for their
// roots. Of classes they are scaled so that their mean over the training rows is 1, as a
// loss of PyTorch's that is divided by the sum of weights; balanced ones are n/(C·n_c)
// before that. Of labels, balanced ones are those that let ones weigh as much as zeros,
// (n - n_c)/n_c.
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

// Sums are, by split, the number of rows and the sum of each column. Ranks add up theirs.
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

// Squares are, by split and column, Σ(y - mean)², of the Sums of all ranks. Ranks add up
// theirs.
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

// Settle sets Rows and Spread to those of all ranks.
func (o *Objective) Settle(sums, squares []float64) {
	for split := range splits {
		o.Rows[split] = int64(sums[split*(1+o.Outputs)])
		o.Spread[split] = squares[split*o.Outputs : (split+1)*o.Outputs]
	}
}
