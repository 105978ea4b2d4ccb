package objective

import (
	"math"

	"siafu/graph"
	"siafu/internal/elementary"
)

// splits is the number of split values.
const splits = graph.SplitTest + 1

// Objective is a task with the parameters of its loss. It must not be changed while losses are
// computed.
type Objective struct {
	Task      string // graph.MultiClass, …
	Outputs   int    // of the network: classes, labels or columns
	Smoothing float64
	// Weights [Outputs] are the weights of the classes or, with MultiLabel, of the positive labels.
	// nil means that all weights are 1.
	Weights []float64
	// ValWeight is the mean weight of the validation rows' classes, by which PyTorch's losses divide; 0: they are not
	// divided.
	ValWeight float64

	// Rows and Spread are only used with Regression. For each split, they contain the number of rows
	// on all ranks, and Σ(y - mean)² of each column.
	Rows   [splits]int64
	Spread [splits][]float64
	// Units [Outputs] are the sizes of the targets' units in Regression's MSE and MAE; nil: 1.
	Units []float64
}

// Truth contains the target values of rows.
type Truth struct {
	Labels []int32   // [rows]; a row with a label below 0 is ignored
	Values []float32 // [rows x Outputs]; each is 0 or 1 with MultiLabel; nil with MultiClass
	Split  []uint8   // [rows]
	// RowWeights [rows] are the weights of the rows' losses; nil means that all weights are 1.
	RowWeights []float32
}

// Part returns the rows [lo, hi).
func (t Truth) Part(lo, hi int) Truth {
	p := Truth{Labels: t.Labels[lo:hi], Split: t.Split[lo:hi]}
	if n := len(t.Labels); t.Values != nil && n > 0 {
		width := len(t.Values) / n
		p.Values = t.Values[lo*width : hi*width]
	}
	if t.RowWeights != nil {
		p.RowWeights = t.RowWeights[lo:hi]
	}
	return p
}

// counts reports whether row r is in a split and has a label.
func (t *Truth) counts(r int, split uint8) bool { return t.Split[r] == split && t.Labels[r] >= 0 }

// Loss returns the weighted sum of the losses of the rows in a split. Unless grad is nil, it sets these
// rows of grad to scale times the gradient, and all other rows to 0. grad and logits are [rows x Outputs],
// and may be the same slice.
//
//	MultiClass  -Σ_c q_c log softmax(z)_c,  q_c = (1-Smoothing)·w_c·[c = label] + Smoothing/C·w_c
//	MultiLabel  mean over c of  -w_c·q_c log σ(z_c) - (1-q_c) log(1-σ(z_c)),  q_c = (1-Smoothing)·y_c + Smoothing/2
//	Regression  mean over c of  (z_c - y_c)²
//
// Label smoothing follows Szegedy et al. 2016, §7.
func (o *Objective) Loss(grad, logits []float32, t Truth, split uint8, scale float64) (loss float64) {
	row := o.multiClass
	switch o.Task {
	case graph.MultiLabel:
		row = o.multiLabel
	case graph.Regression:
		row = o.regression
	}
	c := o.Outputs
	for r := range t.Labels {
		var g []float32
		if grad != nil {
			g = grad[r*c : (r+1)*c]
		}
		if !t.counts(r, split) {
			clear(g)
			continue
		}
		weight := 1.0
		if t.RowWeights != nil {
			weight = float64(t.RowWeights[r])
		}
		loss += float64(weight * row(g, logits[r*c:(r+1)*c], &t, r, weight*scale))
	}
	return loss
}

// weight returns the weight of output c.
func (o *Objective) weight(c int) float64 {
	if o.Weights == nil {
		return 1
	}
	return o.Weights[c]
}

// multiClass, multiLabel and regression return the loss of row r with the logits z. They set grad
// unless it is nil.
func (o *Objective) multiClass(grad, z []float32, t *Truth, r int, scale float64) (loss float64) {
	label := int(t.Labels[r])
	top := math.Inf(-1)
	for _, x := range z {
		top = max(top, float64(x))
	}
	sum := 0.0
	for _, x := range z {
		sum += elementary.Exp(float64(x) - top)
	}
	norm, share := top+elementary.Log(sum), o.Smoothing/float64(len(z))
	all := 0.0 // Σ q
	of := func(c int) float64 {
		q := share
		if c == label {
			q += 1 - o.Smoothing
		}
		return float64(q * o.weight(c)) // rounded where it is added
	}
	for c, x := range z {
		if q := of(c); q > 0 { // without the check, a logit of -Inf would give 0 · Inf
			loss += float64(q * (norm - float64(x)))
			all += q
		}
	}
	for c := range grad { // grad and z may be the same: each element is read before it is written
		grad[c] = float32(scale * (float64(all*elementary.Exp(float64(z[c])-norm)) - of(c)))
	}
	return loss
}

func (o *Objective) multiLabel(grad, z []float32, t *Truth, r int, scale float64) (loss float64) {
	y, share := t.Values[r*len(z):(r+1)*len(z)], 1/float64(len(z))
	for c, v := range z {
		x, w := float64(v), o.weight(c)
		q := float64((1-o.Smoothing)*float64(y[c])) + o.Smoothing/2
		e := elementary.Exp(-math.Abs(x))
		// -log σ(x) = max(-x, 0) + rest and -log(1-σ(x)) = max(x, 0) + rest and σ(x) = p do not
		// overflow in this form.
		rest, p := elementary.Log1p(e), 1/(1+e)
		if x < 0 {
			p = e / (1 + e)
		}
		loss += float64(share * (float64(w*q*(max(-x, 0)+rest)) + float64((1-q)*(max(x, 0)+rest))))
		if grad != nil {
			grad[c] = float32(scale * share * (float64((1-q)*p) - float64(w*q*(1-p))))
		}
	}
	return loss
}

func (o *Objective) regression(grad, z []float32, t *Truth, r int, scale float64) (loss float64) {
	y, share := t.Values[r*len(z):(r+1)*len(z)], 1/float64(len(z))
	for c, v := range z {
		d := float64(v) - float64(y[c])
		loss += float64(share * d * d)
		if grad != nil {
			grad[c] = float32(scale * share * 2 * d)
		}
	}
	return loss
}

// Score contains the sums for the metric of an epoch. The metric of a split is (Correct + Part) /
// Total. It is the accuracy for MultiClass, and the micro-averaged F1 for MultiLabel. For Regression
// it is R², the mean over columns, which requires Rows and Spread of the Objective.
type Score struct {
	Correct, Total [splits]int64
	Part           [splits]float64
	Rows           [splits]int64 // number of rows with a label
}

// Score returns the sums for the metric of the given rows.
func (o *Objective) Score(logits []float32, t Truth) (s Score) {
	c := o.Outputs
	for r, label := range t.Labels {
		if label < 0 {
			continue
		}
		k, z := t.Split[r], logits[r*c:(r+1)*c]
		s.Rows[k]++
		switch o.Task {
		case graph.MultiClass:
			s.Total[k]++
			if Likeliest(z) == label {
				s.Correct[k]++
			}
		case graph.MultiLabel:
			for j, y := range t.Values[r*c : (r+1)*c] { // F1 = 2tp / (2tp + fp + fn)
				predicted, actual := Says(z[j]), y > 0
				if predicted && actual {
					s.Correct[k] += 2
				}
				s.Total[k] += number(predicted) + number(actual)
			}
		case graph.Regression:
			s.Total[k]++
			s.Part[k] += 1 - o.unexplained(z, t.Values[r*c:(r+1)*c], k)
		}
	}
	return s
}

// unexplained returns the contribution of a row to 1 - R², times the number of rows of its split.
func (o *Objective) unexplained(z, y []float32, split uint8) (sum float64) {
	for c, v := range z {
		d := float64(v) - float64(y[c])
		if s := o.Spread[split][c]; s > 0 {
			sum += d * d / s
		} else if d != 0 { // R² of a constant column with errors is 0, as in scikit-learn's r2_score
			sum += 1 / float64(max(o.Rows[split], 1))
		}
	}
	return sum * float64(o.Rows[split]) / float64(len(z))
}

// Says reports whether logit z predicts the label, which means a probability above 1/2.
func Says(z float32) bool { return z > 0 }

// number returns 1 for true and 0 for false.
func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Likeliest returns the index of the largest logit, and the first among equals, like
// kernels.Ops.Argmax.
func Likeliest(z []float32) int32 {
	top, at := float32(math.Inf(-1)), 0
	for c, x := range z {
		if x > top {
			top, at = x, c
		}
	}
	return int32(at)
}
