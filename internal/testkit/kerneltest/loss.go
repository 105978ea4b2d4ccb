package kerneltest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/kernels"
)

// SoftmaxCrossEntropy tests kernels.Ops.SoftmaxCrossEntropy.
func (s Suite) SoftmaxCrossEntropy(t *testing.T) {
	sizes{"rows", []int{0, 1, 256, size(1301, 301)}, "classes", []int{1, 2, 7, 41}}.run(t, func(t *testing.T, rows, classes int) {
		c := newClassified(rows, classes)
		loss, count, grad := c.verify(1, 0.25)
		entropy := func(l *fixture, grad, logits []float32) {
			to := l.out(rows, classes, grad)
			got, n := l.SoftmaxCrossEntropy(to, l.in(rows, classes, logits), place(l, c.labels), place(l, c.split), 1, 0.25)
			c.checkLoss(t, got, n, loss, count)
		}
		for range 2 {
			got := s.outcome(t, poison(rows*classes), func(l *fixture, dst []float32) { entropy(l, dst, c.logits) })
			for i := range got {
				compare(t, i, float64(got[i]), grad[i], unit)
			}
			// In place, and without a gradient.
			same(t, s.outcome(t, c.logits, func(l *fixture, dst []float32) {
				entropy(l, nil, dst)
				l.flush()
				entropy(l, dst, dst)
			}), got)
			insertNonFinite(c.logits)
			loss, count, grad = c.verify(1, 0.25)
		}
	})
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

func (c *classified) checkLoss(t *testing.T, got float64, n int64, want float64, count int64) {
	t.Helper()
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

// Softmax tests kernels.Ops.Softmax.
func (s Suite) Softmax(t *testing.T) {
	sizes{"rows", []int{0, 1, size(900, 79)}, "cols", []int{0, 1, 6, 41}}.run(t, func(t *testing.T, rows, cols int) {
		x := newClassified(rows, max(cols, 1)).logits[:rows*cols]
		x = guarded(x)
		got := s.both(t, rows, cols, x, nil, func(l *fixture, dst, x kernels.Mat) { l.Softmax(dst, x) })
		for i := range got {
			row := x[i/cols*cols:][:cols]
			compare(t, i, float64(got[i]), probability(row, i%cols), 2*unit)
		}
	})
}
