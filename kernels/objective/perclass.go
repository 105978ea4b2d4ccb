package objective

import "siafu/graph"

// MostConfusion is the maximum number of classes for which a Tally has a confusion matrix.
const MostConfusion = 50

// PerClass contains the metrics of each class or label. They are defined as in scikit-learn's
// classification_report with zero_division=0, which means that 0/0 is 0.
type PerClass struct {
	Precision []float64 `json:"precision"`
	Recall    []float64 `json:"recall"`
	F1        []float64 `json:"f1"`
	Support   []int64   `json:"support"`   // rows of the class
	Predicted []int64   `json:"predicted"` // rows predicted to be of the class
	// Confusion[a][p] is the number of rows of class a that are predicted to be of class p. It is nil
	// with MultiLabel, and with more than MostConfusion classes.
	Confusion   [][]int64 `json:"confusion,omitempty"`
	MicroAvg    Average   `json:"micro_avg"`    // computed from the sums of counts over all classes
	MacroAvg    Average   `json:"macro_avg"`    // mean over classes
	WeightedAvg Average   `json:"weighted_avg"` // mean over classes, weighted by Support
}

// Average contains averages over classes.
type Average struct {
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// outcome returns the counts of a class: the correctly predicted rows of the class, the rows
// predicted to be of the class, and the rows of the class.
func (t Tally) outcome(class int) (correct, predicted, actual int64) {
	of := t.Counts[1+3*class:]
	return of[0], of[1], of[2]
}

// hasConfusion reports whether tallies contain a confusion matrix after the outcomes.
func (o *Objective) hasConfusion() bool {
	return o.Task == graph.MultiClass && o.Outputs <= MostConfusion
}

// confusion returns the confusion matrix of a tally [Outputs x Outputs], or an empty slice.
func (o *Objective) confusion(t Tally) []int64 { return t.Counts[1+3*o.Outputs:] }

// perClass returns the metrics of each class. balanced is the mean recall of the classes that have
// rows. With MultiClass, MacroAvg is the mean over the classes that have rows or predictions. With
// MultiLabel, it is the mean over all labels.
func (o *Objective) perClass(t Tally) (p *PerClass, balanced float64) {
	n := o.Outputs
	p = &PerClass{
		Precision: make([]float64, n), Recall: make([]float64, n), F1: make([]float64, n),
		Support: make([]int64, n), Predicted: make([]int64, n),
	}
	var correct, predictions, rows int64
	occurring, supported := 0, 0
	for c := range n {
		tp, predicted, actual := t.outcome(c)
		p.Support[c], p.Predicted[c] = actual, predicted
		p.Precision[c], p.Recall[c], p.F1[c] = ratio(tp, predicted), ratio(tp, actual), ratio(2*tp, predicted+actual)
		correct, predictions, rows = correct+tp, predictions+predicted, rows+actual
		p.MacroAvg.add(p, c, 1)
		p.WeightedAvg.add(p, c, float64(actual))
		if predicted+actual > 0 || o.Task == graph.MultiLabel {
			occurring++
		}
		if actual > 0 {
			supported++
			balanced += p.Recall[c]
		}
	}
	p.MicroAvg = Average{ratio(correct, predictions), ratio(correct, rows), ratio(2*correct, predictions+rows)}
	p.MacroAvg.divide(float64(occurring))
	p.WeightedAvg.divide(float64(rows))
	if m := o.confusion(t); len(m) > 0 {
		for c := range n {
			p.Confusion = append(p.Confusion, m[c*n:(c+1)*n])
		}
	}
	return p, balanced / float64(max(supported, 1))
}

func (a *Average) add(p *PerClass, class int, weight float64) {
	a.Precision += float64(weight * p.Precision[class])
	a.Recall += float64(weight * p.Recall[class])
	a.F1 += float64(weight * p.F1[class])
}

func (a *Average) divide(by float64) {
	by = max(by, 1)
	a.Precision, a.Recall, a.F1 = a.Precision/by, a.Recall/by, a.F1/by
}

// ratio returns part / whole, or 0 if both are 0.
func ratio(part, whole int64) float64 { return float64(part) / float64(max(whole, 1)) }

// Of returns the metrics of the given classes. The averages are still over all classes. There is no
// confusion matrix.
func (p *PerClass) Of(classes []int) *PerClass {
	some := &PerClass{MicroAvg: p.MicroAvg, MacroAvg: p.MacroAvg, WeightedAvg: p.WeightedAvg}
	for _, c := range classes {
		some.Precision = append(some.Precision, p.Precision[c])
		some.Recall = append(some.Recall, p.Recall[c])
		some.F1 = append(some.F1, p.F1[c])
		some.Support = append(some.Support, p.Support[c])
		some.Predicted = append(some.Predicted, p.Predicted[c])
	}
	return some
}
