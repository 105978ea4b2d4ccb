package stopping

import (
	"fmt"
	"math"

	"siafu/internal/fault"
	"siafu/kernels/model"
	"siafu/ranks/runfolder"
)

// Divergence is the end of a run whose weights give no numbers any more.
type Divergence struct {
	Epoch int    // that starts from the weights
	found string // what is not a number, and where
}

// number reports whether x is one: neither NaN nor infinite.
func number(x float64) bool { return x-x == 0 }

// numbers reports whether all of x are.
func numbers(x []float32) bool {
	var a, b, c, d float32 // 0 times NaN or an infinity is NaN; four sums, so that none waits for another
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

// absurd returns the loss of a line that is not a number, or empty.
func absurd(line *runfolder.Epoch) string {
	switch {
	case !number(line.Loss):
		return fmt.Sprintf("the loss is %v", line.Loss)
	case line.ValLoss != nil && !number(*line.ValLoss):
		return fmt.Sprintf("the validation loss is %v", *line.ValLoss)
	}
	return ""
}

// suspect names the weights that are to blame: the first that is not a number, else
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

// Fault returns the error that a run with this folder and learning rate ends with.
// best is the epoch of the weights that are kept, 0 where there are none.
func (d *Divergence) Fault(dir string, rate float64, best int) error {
	kept := "no model was saved, because no epoch had been evaluated"
	if best > 0 {
		kept = fmt.Sprintf("the model has the weights from the start of epoch %d", best)
	}
	if d.Epoch == 1 { // nothing has been trained
		return fault.New(fault.Diverged, "train", dir, "with the initial weights %s; %s", d.found, kept).
			Then("check the features and the file of --init for huge values")
	}
	return fault.New(fault.Diverged, "train", dir, "diverged in epoch %d: afterwards %s; %s", d.Epoch-1, d.found, kept).
		Then("lower --lr (now %g)", rate)
}
