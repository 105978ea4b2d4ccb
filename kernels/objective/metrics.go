package objective

import (
	"cmp"
	"slices"

	"siafu/graph"
)

// Tally contains the counts and sums for the metrics of a split. Ranks add their tallies element by
// element. With Regression, Counts has only the number of rows.
type Tally struct {
	// Counts are the number of rows, the three counts of each output (see outcome), and the
	// confusion matrix [Outputs x Outputs] if hasConfusion.
	Counts []int64
	Sums   []float64 // only with Regression: Σ(z-y)² and Σ|z-y| of each column
}

// NewTally returns an empty tally.
func (o *Objective) NewTally() Tally {
	if o.Task == graph.Regression {
		return Tally{make([]int64, 1), make([]float64, 2*o.Outputs)}
	}
	counts := 1 + 3*o.Outputs
	if o.hasConfusion() {
		counts += o.Outputs * o.Outputs
	}
	return Tally{make([]int64, counts), nil}
}

// Add adds the rows of a split to a tally. logits are [rows x Outputs].
func (o *Objective) Add(tally Tally, logits []float32, t Truth, split uint8) {
	c := o.Outputs
	for r, label := range t.Labels {
		if !t.counts(r, split) {
			continue
		}
		tally.Counts[0]++
		z := logits[r*c : (r+1)*c]
		if o.Task == graph.MultiClass {
			o.countRow(tally, int(Likeliest(z)), int(label))
			continue
		}
		for j, y := range t.Values[r*c : (r+1)*c] {
			if o.Task == graph.Regression {
				d := float64(z[j]) - float64(y)
				tally.Sums[2*j] += float64(d * d)
				tally.Sums[2*j+1] += max(d, -d)
				continue
			}
			of := tally.Counts[1+3*j:]
			predicted, actual := number(Says(z[j])), number(y > 0)
			of[0] += predicted * actual
			of[1] += predicted
			of[2] += actual
		}
	}
}

// countRow adds a row with the given predicted and actual class to a tally.
func (o *Objective) countRow(t Tally, predicted, actual int) {
	if predicted == actual {
		t.Counts[1+3*actual]++
	}
	t.Counts[1+3*predicted+1]++
	t.Counts[1+3*actual+2]++
	if m := o.confusion(t); len(m) > 0 {
		m[actual*o.Outputs+predicted]++
	}
}

// Metrics contains the metrics of the vertices of a split. Metrics that the task does not have are
// nil. All are defined as in scikit-learn: accuracy_score, balanced_accuracy_score, f1_score (micro,
// macro and weighted), roc_auc_score, mean_squared_error, mean_absolute_error and r2_score. The F1 of
// a class without rows and predictions is 0. The last three metrics are means over columns.
type Metrics struct {
	Vertices int64    `json:"vertices,omitempty"`
	Links    int64    `json:"links,omitempty"` // predicted edges
	Accuracy *float64 `json:"accuracy,omitempty"`
	// BalancedAccuracy is the mean recall of the classes that have rows.
	BalancedAccuracy *float64 `json:"balanced_accuracy,omitempty"`

	MicroF1    *float64 `json:"micro_f1,omitempty"`
	MacroF1    *float64 `json:"macro_f1,omitempty"`
	WeightedF1 *float64 `json:"weighted_f1,omitempty"`
	// ROCAUC is the mean over the labels that have positive and negative rows, as in OGB's evaluator
	// of ogbn-proteins. With two classes, it is the value of the second class. It is nil if it is
	// undefined.
	ROCAUC *float64 `json:"roc_auc,omitempty"`
	MSE    *float64 `json:"mse,omitempty"`
	MAE    *float64 `json:"mae,omitempty"`
	R2     *float64 `json:"r2,omitempty"`
	// Metrics of the task Links; see the function Links. MRR is the mean of Reciprocal over edges. Of a relational
	// graph, MRR and Hits@K are those of Ranks.
	AP      *float64 `json:"average_precision,omitempty"`
	Hits1   *float64 `json:"hits@1,omitempty"`
	Hits3   *float64 `json:"hits@3,omitempty"`
	Hits10  *float64 `json:"hits@10,omitempty"`
	Hits20  *float64 `json:"hits@20,omitempty"`
	Hits50  *float64 `json:"hits@50,omitempty"`
	Hits100 *float64 `json:"hits@100,omitempty"`
	MRR     *float64 `json:"mrr,omitempty"`

	PerClass *PerClass `json:"per_class,omitempty"` // only with MultiClass and MultiLabel
}

// Named is a metric and its name in summary.json.
type Named struct {
	Name  string
	Value *float64 // nil if the task has no such metric, or if it is undefined for the rows
}

// All returns the metrics that are single numbers.
func (m *Metrics) All() []Named {
	return []Named{
		{"accuracy", m.Accuracy}, {"balanced_accuracy", m.BalancedAccuracy},
		{"micro_f1", m.MicroF1}, {"macro_f1", m.MacroF1}, {"weighted_f1", m.WeightedF1}, {"roc_auc", m.ROCAUC},
		{"mse", m.MSE}, {"mae", m.MAE}, {"r2", m.R2},
		{"average_precision", m.AP}, {"mrr", m.MRR}, {"hits@1", m.Hits1}, {"hits@3", m.Hits3}, {"hits@10", m.Hits10}, {"hits@20", m.Hits20},
		{"hits@50", m.Hits50}, {"hits@100", m.Hits100},
	}
}

// Value returns the metric with a name, or nil if it does not exist.
func (m *Metrics) Value(name string) *float64 {
	for _, x := range m.All() {
		if x.Name == name {
			return x.Value
		}
	}
	return nil
}

// MetricsOf returns the names of the metrics of a task with the given number of outputs.
func MetricsOf(task string, outputs int) []string {
	switch {
	case task == graph.Regression:
		return []string{"mse", "mae", "r2"}
	case task == graph.Links:
		return []string{"roc_auc", "average_precision", "mrr", "hits@1", "hits@3", "hits@10", "hits@20", "hits@50", "hits@100"}
	case task == graph.MultiLabel:
		return []string{"micro_f1", "macro_f1", "weighted_f1", "roc_auc"}
	case outputs == 2:
		return []string{"accuracy", "balanced_accuracy", "micro_f1", "macro_f1", "weighted_f1", "roc_auc"}
	}
	return []string{"accuracy", "balanced_accuracy", "micro_f1", "macro_f1", "weighted_f1"}
}

// Metrics returns all metrics of a split except ROCAUC. t must be the sum of the tallies of all
// ranks.
func (o *Objective) Metrics(t Tally, split int) Metrics {
	m := Metrics{Vertices: t.Counts[0]}
	if m.Vertices == 0 {
		return m
	}
	if o.Task == graph.Regression {
		o.setErrors(&m, t, split)
		return m
	}
	p, balanced := o.perClass(t)
	m.PerClass, m.MicroF1, m.MacroF1, m.WeightedF1 = p, &p.MicroAvg.F1, &p.MacroAvg.F1, &p.WeightedAvg.F1
	if o.Task == graph.MultiClass {
		m.Accuracy, m.BalancedAccuracy = &p.MicroAvg.Recall, &balanced
	}
	return m
}

// setErrors sets the metrics of Regression.
func (o *Objective) setErrors(m *Metrics, t Tally, split int) {
	n, columns := float64(m.Vertices), float64(o.Outputs)
	var mse, mae, r2 float64
	for c := range o.Outputs {
		squared, unit := t.Sums[2*c], 1.0
		if o.Units != nil {
			unit = o.Units[c]
		}
		mse += squared * unit * unit / n / columns
		mae += t.Sums[2*c+1] * unit / n / columns
		switch spread := o.Spread[split][c]; {
		case spread > 0:
			r2 += (1 - squared/spread) / columns
		case squared == 0:
			r2 += 1 / columns
		}
	}
	m.MSE, m.MAE, m.R2 = &mse, &mae, &r2
}

// Scored is the score of a row, and whether the row is positive.
type Scored struct {
	Score float32
	Is    bool
}

// ROCAUC returns the probability that a random positive row has a higher score than a random negative
// row. Equal scores count half (Hanley & McNeil 1982). ok is false if there are no positive rows, or
// no negative rows. ROCAUC sorts the rows.
func ROCAUC(rows []Scored) (auc float64, ok bool) {
	slices.SortFunc(rows, func(a, b Scored) int { return cmp.Compare(a.Score, b.Score) })
	var are, others int64
	wins := 0.0
	for lo, hi := 0, 0; lo < len(rows); lo = hi {
		var is, not int64
		for ; hi < len(rows) && rows[hi].Score == rows[lo].Score; hi++ {
			is += number(rows[hi].Is)
		}
		if hi == lo { // a NaN score
			hi++
			is = number(rows[lo].Is)
		}
		not = int64(hi-lo) - is
		wins += float64(float64(is) * (float64(others) + float64(not)/2))
		are, others = are+is, others+not
	}
	if are == 0 || others == 0 {
		return 0, false
	}
	return wins / float64(are) / float64(others), true
}
