package objective

import (
	"cmp"
	"slices"

	"siafu/graph"
)

// Tally is what metrics of the rows of a split are made of. Ranks add up theirs, element
// by element.
type Tally struct {
	Counts []int64   // rows; of each output: right ones, those that were said, those that are
	Sums   []float64 // of each column of Regression: Σ(z-y)², Σ|z-y|
}

// NewTally is one of nothing.
func (o *Objective) NewTally() Tally {
	if o.Task == graph.Regression {
		return Tally{make([]int64, 1), make([]float64, 2*o.Outputs)}
	}
	return Tally{make([]int64, 1+3*o.Outputs), nil}
}

// Add adds the rows of a split. [rows x Outputs] are logits.
func (o *Objective) Add(tally Tally, logits []float32, t Truth, split uint8) {
	c := o.Outputs
	for r, label := range t.Labels {
		if !t.counts(r, split) {
			continue
		}
		tally.Counts[0]++
		z := logits[r*c : (r+1)*c]
		if o.Task == graph.MultiClass {
			tally.note(int(Likeliest(z)), int(label))
			continue
		}
		for j, y := range t.Values[r*c : (r+1)*c] {
			if o.Task == graph.Regression {
				d := float64(z[j]) - float64(y)
				tally.Sums[2*j] += d * d
				tally.Sums[2*j+1] += max(d, -d)
				continue
			}
			of := tally.Counts[1+3*j:]
			said, is := number(Says(z[j])), number(y > 0)
			of[0] += said * is
			of[1] += said
			of[2] += is
		}
	}
}

// note counts a class that was said where another one, or the same, is.
func (t Tally) note(said, is int) {
	if said == is {
		t.Counts[1+3*is]++
	}
	t.Counts[1+3*said+1]++
	t.Counts[1+3*is+2]++
}

// Metrics are those of the vertices of a split, as scikit-learn's metrics define them:
// accuracy, f1_score (micro and macro, 0 where nothing was said and nothing is),
// roc_auc_score, mean_squared_error, mean_absolute_error and r2_score, the latter three as
// means over the columns. Those of other tasks are absent.
type Metrics struct {
	Vertices int64    `json:"vertices,omitempty"`
	Links    int64    `json:"links,omitempty"` // edges that are foretold
	Accuracy *float64 `json:"accuracy,omitempty"`
	MicroF1  *float64 `json:"micro_f1,omitempty"`
	MacroF1  *float64 `json:"macro_f1,omitempty"`
	// ROCAUC is the mean over the labels that some vertices bear and some do not, as OGB's
	// evaluator of ogbn-proteins has it, and of two classes that of the second; absent
	// where there is none.
	ROCAUC *float64 `json:"roc_auc,omitempty"`
	MSE    *float64 `json:"mse,omitempty"`
	MAE    *float64 `json:"mae,omitempty"`
	R2     *float64 `json:"r2,omitempty"`
	// Of links (Links). MRR is the mean of Reciprocal over the edges.
	AP      *float64 `json:"average_precision,omitempty"`
	Hits10  *float64 `json:"hits@10,omitempty"`
	Hits20  *float64 `json:"hits@20,omitempty"`
	Hits50  *float64 `json:"hits@50,omitempty"`
	Hits100 *float64 `json:"hits@100,omitempty"`
	MRR     *float64 `json:"mrr,omitempty"`
}

// Metrics are those of the sum of all ranks' tallies of a split. ROCAUC is missing.
func (o *Objective) Metrics(t Tally, split int) Metrics {
	m := Metrics{Vertices: t.Counts[0]}
	if m.Vertices == 0 {
		return m
	}
	if o.Task == graph.Regression {
		o.errors(&m, t, split)
		return m
	}
	var right, all int64
	macro, classes := 0.0, 0
	for c := range o.Outputs {
		of := t.Counts[1+3*c:]
		right, all = right+of[0], all+of[1]+of[2]
		// of classes those count that are anywhere, and of labels all
		if of[1]+of[2] > 0 || o.Task == graph.MultiLabel {
			macro, classes = macro+f1(of[0], of[1]+of[2]), classes+1
		}
	}
	micro := f1(right, all)
	macro /= float64(max(classes, 1))
	m.MicroF1, m.MacroF1 = &micro, &macro
	if o.Task == graph.MultiClass {
		accuracy := float64(right) / float64(m.Vertices)
		m.Accuracy = &accuracy
	}
	return m
}

// f1 is 2tp / (2tp + fp + fn).
func f1(right, all int64) float64 { return 2 * float64(right) / float64(max(all, 1)) }

func (o *Objective) errors(m *Metrics, t Tally, split int) {
	n, columns := float64(m.Vertices), float64(o.Outputs)
	var mse, mae, r2 float64
	for c := range o.Outputs {
		squared := t.Sums[2*c]
		mse += squared / n / columns
		mae += t.Sums[2*c+1] / n / columns
		switch spread := o.Spread[split][c]; {
		case spread > 0:
			r2 += (1 - squared/spread) / columns
		case squared == 0:
			r2 += 1 / columns
		}
	}
	m.MSE, m.MAE, m.R2 = &mse, &mae, &r2
}

// Scored is a row as the area under a curve has it.
type Scored struct {
	Score float32
	Is    bool
}

// ROCAUC is the probability that a row that is has a higher score than one that is not,
// where equal scores count half (Hanley & McNeil 1982). ok is false where all are or none
// is. It sorts the rows.
func ROCAUC(rows []Scored) (auc float64, ok bool) {
	slices.SortFunc(rows, func(a, b Scored) int { return cmp.Compare(a.Score, b.Score) })
	var are, others int64
	wins := 0.0
	for lo, hi := 0, 0; lo < len(rows); lo = hi {
		var is, not int64
		for ; hi < len(rows) && rows[hi].Score == rows[lo].Score; hi++ {
			is += number(rows[hi].Is)
		}
		if hi == lo { // a score that is no number
			hi++
			is = number(rows[lo].Is)
		}
		not = int64(hi-lo) - is
		wins += float64(is) * (float64(others) + float64(not)/2)
		are, others = are+is, others+not
	}
	if are == 0 || others == 0 {
		return 0, false
	}
	return wins / float64(are) / float64(others), true
}
