package kerneltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/kernels"
)

// SoftmaxCrossEntropy runs an implementation of flat.SoftmaxCrossEntropy.
func SoftmaxCrossEntropy(t *testing.T, entropy func(team *kernels.Team, grad []float32, rows, classes int, logits []float32,
	labels []int32, split []uint8, want uint8, scale float32) (float64, int64)) {
	for _, rows := range []int{0, 1, 256, size(1301, 301)} {
		for _, classes := range []int{1, 2, 7, 41} {
			t.Run(fmt.Sprintf("rows=%d/classes=%d", rows, classes), func(t *testing.T) {
				c := newClassified(rows, classes)
				loss, count, grad := c.verify(1, 0.25)
				for range 2 {
					got := outcome(t, poison(rows*classes), func(team *kernels.Team, dst []float32) {
						c.checkLoss(t, loss, count, func(labels []int32) (float64, int64) {
							return entropy(team, dst, rows, classes, c.logits, labels, c.split, 1, 0.25)
						})
					})
					for i := range got {
						compare(t, i, float64(got[i]), grad[i], unit)
					}
					// In place, and without a gradient.
					same(t, outcome(t, c.logits, func(team *kernels.Team, dst []float32) {
						c.checkLoss(t, loss, count, func(labels []int32) (float64, int64) {
							entropy(team, nil, rows, classes, dst, labels, c.split, 1, 0.25)
							return entropy(team, dst, rows, classes, dst, labels, c.split, 1, 0.25)
						})
					}), got)
					spoil(c.logits)
					loss, count, grad = c.verify(1, 0.25)
				}
			})
		}
	}
}

// classified contains logits with labels, some of them missing, and splits.
type classified struct {
	rows, classes int
	logits        []float32
	labels        []int32
	split         []uint8
}

func newClassified(rows, classes int) *classified {
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(classes)))
	c := &classified{rows: rows, classes: classes, logits: Values(rows*classes, 1)}
	for r := range rows {
		c.labels = append(c.labels, int32(rng.IntN(classes+1)-1))
		c.split = append(c.split, uint8(rng.IntN(4)))
		for j := range classes {
			// Every third row is far from zero, where exp overflows.
			c.logits[r*classes+j] = c.logits[r*classes+j]*20 + float32(r%3*1000)
		}
	}
	return c
}

func (c *classified) checkLoss(t *testing.T, want float64, count int64, run func(labels []int32) (float64, int64)) {
	t.Helper()
	got, n := run(c.labels)
	if n != count {
		t.Fatalf("%d rows counted, want %d", n, count)
	}
	// Float64 throughout. Subtracting a maximum near 2000 costs one ulp of that maximum.
	compare(t, 0, got, want, 1e-13*(1+math.Abs(want))+5e-13*float64(count))
}

// verify computes the loss as the logarithm of one probability, and the gradient from all
// probabilities. It shifts logits by the label's instead of the maximum and sums ratios, so that
// it shares only the formula with the kernels.
func (c *classified) verify(want uint8, scale float64) (loss float64, count int64, grad []float64) {
	grad = make([]float64, c.rows*c.classes)
	for r := range c.rows {
		label := int(c.labels[r])
		if c.split[r] != want || label < 0 {
			continue
		}
		z := c.logits[r*c.classes : (r+1)*c.classes]
		count++
		for j := range z {
			p := probability(z, j)
			if j == label {
				loss -= math.Log(p)
				p--
			}
			grad[r*c.classes+j] = scale * p
		}
	}
	return loss, count, grad
}

// probability returns 1/Σ_i exp(z_i - z_j). It is 0 if z_j is -Inf and another logit is finite,
// and NaN if a logit is +Inf.
func probability(z []float32, j int) float64 {
	top := float64(slices.Max(z))
	if math.IsInf(top, 1) {
		return math.NaN()
	}
	if math.IsInf(float64(z[j]), -1) && top > float64(z[j]) {
		return 0
	}
	var s float64
	for _, v := range z {
		s += math.Exp(float64(v) - float64(z[j]))
	}
	return 1 / s
}

// Softmax runs an implementation of flat.Softmax.
func Softmax(t *testing.T, softmax func(team *kernels.Team, dst []float32, rows, cols int, x []float32)) {
	for _, rows := range []int{0, 1, size(900, 79)} {
		for _, cols := range []int{0, 1, 6, 41} {
			t.Run(fmt.Sprintf("rows=%d/cols=%d", rows, cols), func(t *testing.T) {
				x := newClassified(rows, max(cols, 1)).logits[:rows*cols]
				x = guarded(x)
				got := outcome(t, poison(rows*cols), func(team *kernels.Team, dst []float32) {
					softmax(team, dst, rows, cols, x)
				})
				for i := range got {
					row := x[i/cols*cols:][:cols]
					compare(t, i, float64(got[i]), probability(row, i%cols), 2*unit)
				}
				same(t, outcome(t, x, func(team *kernels.Team, dst []float32) {
					softmax(team, dst, rows, cols, dst)
				}), got)
			})
		}
	}
}
