package stopping

import (
	"fmt"
	"math"

	"siafu/internal/fault"
	"siafu/kernels/model"
	"siafu/ranks/runfolder"
)

// Divergence describes why a run has diverged.
type Divergence struct {
	Epoch int    // the epoch that starts from the diverged weights
	found string // the value that is not finite, and its place
}

// isFinite reports whether x is neither NaN nor infinite.
func isFinite(x float64) bool { return x-x == 0 }

func areFinite(x []float32) bool {
	var a, b, c, d float32 // 0·NaN and 0·∞ are NaN; four independent sums can overlap
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

// describeLoss describes a loss of a line that is not finite. It returns "" if there is none.
func describeLoss(line *runfolder.Epoch) string {
	switch {
	case !isFinite(line.Loss):
		return fmt.Sprintf("the loss is %v", line.Loss)
	case line.ValLoss != nil && !isFinite(*line.ValLoss):
		return fmt.Sprintf("the validation loss is %v", *line.ValLoss)
	}
	return ""
}

// describeWeights describes the first weight that is not finite, or the largest weight.
func describeWeights(params []model.Param, weights []float32) string {
	largest, where := 0.0, model.Param{}
	for _, p := range params {
		for _, v := range p.Of(weights) {
			if !isFinite(float64(v)) {
				return fmt.Sprintf("%s holds %v", p.Name, v)
			}
			if a := math.Abs(float64(v)); a > largest {
				largest, where = a, p
			}
		}
	}
	return fmt.Sprintf("the largest weight is %.3g, in %s", largest, where.Name)
}

// Fault returns the error of a diverged run with this folder and learning rate. best is the epoch
// of the saved weights, or 0 if no weights were saved.
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
