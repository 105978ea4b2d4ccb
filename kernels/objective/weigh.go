package objective

import (
	"math"

	"siafu/graph"
)

// Count returns the number of a split's rows of each class or label. Ranks add their counts.
func (o *Objective) Count(t Truth, split uint8) []int64 {
	n := make([]int64, o.Outputs)
	for r, label := range t.Labels {
		switch {
		case !t.counts(r, split):
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

// Weigh sets Weights to list. If list is nil, it sets balanced weights, raised to the given power: 1
// for balanced weights, 1/2 for their square roots. counts are the sums of Count over all ranks, and
// rows is the number of training rows on all ranks.
//
// With n rows, C classes and n_c rows of class c, the balanced weight of a class is n/(C·n_c). Class
// weights are then scaled to a mean of 1 over the training rows. PyTorch's losses have the same
// effect, because they divide by the sum of the weights. The balanced weight of a label is
// (n - n_c)/n_c, so that its positive and its negative rows have the same total weight.
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
	sum := o.total(counts)
	for k := range o.Weights {
		if sum > 0 {
			o.Weights[k] *= n / sum
		}
	}
}

// total returns the sum of the weights of rows with the given numbers per class.
func (o *Objective) total(counts []int64) (sum float64) {
	for k, count := range counts {
		sum += float64(o.Weights[k] * float64(count))
	}
	return sum
}

// WeighValidation sets ValWeight after Weigh. counts are the sums of Count over all ranks, for the validation rows.
func (o *Objective) WeighValidation(counts []int64) {
	rows := int64(0)
	for _, n := range counts {
		rows += n
	}
	if sum := o.total(counts); o.Task == graph.MultiClass && sum > 0 {
		o.ValWeight = sum / float64(rows)
	}
}

// Sums returns the number of rows and the sum of each column, for each split [splits x (1+Outputs)].
// Ranks add their sums.
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

// Squares returns Σ(y - mean)² for each split and column [splits x Outputs]. sums must be the sum of
// Sums over all ranks. Ranks add their squares.
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
			squares[split*o.Outputs+c] += float64(d * d)
		}
	}
	return squares
}

// Settle sets Rows and Spread from the results of Sums and Squares, summed over all ranks.
func (o *Objective) Settle(sums, squares []float64) {
	for split := range splits {
		o.Rows[split] = int64(sums[split*(1+o.Outputs)])
		o.Spread[split] = squares[split*o.Outputs : (split+1)*o.Outputs]
	}
}
