package stopping

import (
	"fmt"
	"math"

	"siafu/graph/fault"
	"siafu/kernels/model"
	"siafu/ranks/runfolder"
)

// Divergence is the end of a run whose weights give no numbers any more.
type Divergence struct {
	Epoch int    // that starts from the weights
	found string // what is no number, and where
}

// number tells whether x is one: neither NaN nor infinite.
func number(x float64) bool { return x-x == 0 }

// numbers tells whether all of x are.
func numbers(x []float32) bool {
	var a, b, c, d float32 // 0 times what is no number is none either; four sums, so that none waits for another
	for ; len(x) >= 4; x = x[4:] {
		a += x[0] * 0
		b += x[1] * 0
		c += x[2] * 0
		d += x[3] * 0
	}
	for _, v := range x {
		a += v * 0
	}
	return a+b+c+d == 0
}

// absurd is the loss of a line that is no number, or empty.
func absurd(line *runfolder.Epoch) string {
	switch {
	case !number(line.Loss):
		return fmt.Sprintf("the loss is %v", line.Loss)
	case line.ValLoss != nil && !number(*line.ValLoss):
		return fmt.Sprintf("the validation loss is %v", *line.ValLoss)
	}
	return ""
}

// suspect names the weights that are to blame: the first that is no number, else
// the largest.
func suspect(params []model.Param, weights []float32) string {
	largest, where := 0.0, model.Param{}
	for _, p := range params {
		for _, v := range p.Of(weights) {
			if !number(float64(v)) {
				return fmt.Sprintf("%s holds %v", p.Name, v)
			}
			if a := math.Abs(float64(v)); a > largest {
				largest, where = a, p
			}
		}
	}
	return fmt.Sprintf("the largest weight is %.3g, in %s", largest, where.Name)
}

// Fault is the error that a run with this folder and learning rate ends with.
// best is the epoch of the weights that are kept, 0 where there are none.
func (d *Divergence) Fault(dir string, rate float64, best int) error {
	kept := "there is no model, since nothing was evaluated before"
	if best > 0 {
		kept = fmt.Sprintf("the model has the weights that epoch %d began with", best)
	}
	if d.Epoch == 1 { // nothing has been trained
		return fault.New(fault.Diverged, "train", dir, "with the first weights %s; %s", d.found, kept).
			Then("look for huge numbers in the features, and in the file of --init")
	}
	return fault.New(fault.Diverged, "train", dir, "diverged in epoch %d: after it %s; %s", d.Epoch-1, d.found, kept).
		Then("lower --lr, which is %g", rate)
}
