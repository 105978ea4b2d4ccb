package kernels_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/internal/elementary"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// exponential returns e^x for x ≤ 0 with the operations that every instruction set must use.
func exponential(x float64) float64 {
	if x != x {
		return x
	}
	hi := math.Float64frombits(math.Float64bits(math.Ln2) &^ (1<<32 - 1))
	x = max(x, -708)
	n := math.RoundToEven(x * math.Log2E)
	x = math.FMA(-n, math.Ln2-hi, math.FMA(-n, hi, x))
	p, factorials := 0.0, [12]float64{1, 1}
	for k := 2; k < len(factorials); k++ {
		factorials[k] = factorials[k-1] * float64(k)
	}
	for _, f := range slices.Backward(factorials[:]) {
		p = math.FMA(p, x, 1/f)
	}
	return math.Float64frombits(math.Float64bits(p) + uint64(int64(n))<<52)
}

// softmaxOf sets dst to scale times the softmax of z, and returns log Σ e^(z-top) + top.
func softmaxOf(dst, z []float32, scale float64) float64 {
	top := float32(math.Inf(-1))
	for _, v := range z {
		if v > top {
			top = v
		}
	}
	var sums [4]float64
	for j, v := range z {
		e := exponential(float64(v) - float64(top))
		sums[j%4] += e
		dst[j] = float32(e)
	}
	sum := (sums[0] + sums[2]) + (sums[1] + sums[3])
	for j, e := range dst {
		dst[j] = float32(float64(e) * (scale / sum))
	}
	return elementary.Log(sum) + float64(top)
}

// entropyOf defines the loss and its gradient. Losses of 256 rows are summed first.
func entropyOf(grad, logits []float32, classes int, labels []int32, split []uint8, want uint8, scale float32) (loss float64, count int64) {
	block := 0.0
	for r, label := range labels {
		if r%256 == 0 {
			loss, block = loss+block, 0
		}
		g, z := grad[r*classes:(r+1)*classes], logits[r*classes:(r+1)*classes]
		if split[r] != want || label < 0 {
			clear(g)
			continue
		}
		block += softmaxOf(g, z, float64(scale)) - float64(z[label])
		g[label] -= scale
		count++
	}
	return loss + block, count
}

// identical reports whether numbers have the same bits, or are NaN.
func identical(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

// The loss, its gradient and a softmax have the bits of their definitions with every instruction set. Rows have 1 to 400
// columns, some infinite numbers and NaNs, and do not all count. The gradient is missing, in place, or apart.
func TestSoftmaxBits(t *testing.T) {
	eachSet(t, func(t *testing.T, set string) {
		team := kernels.NewTeam(2)
		defer team.Close()
		use(t, team, set)
		rng := rand.New(rand.NewPCG(3, 4))
		check := func(name string, got, want []float32) {
			t.Helper()
			for i := range want {
				if !identical(float64(got[i]), float64(want[i])) {
					t.Fatalf("%s: element %d is %v, want %v", name, i, got[i], want[i])
				}
			}
		}
		for range 150 {
			classes, rows := 1+rng.IntN(400), 1+rng.IntN(40)
			if rng.IntN(2) == 0 {
				classes, rows = 1+rng.IntN(20), 1+rng.IntN(700)
			}
			c := randomLogits(rng, rows, classes)
			want := make([]float32, len(c.logits))
			loss, count := entropyOf(want, c.logits, classes, c.labels, c.split, 1, 0.3)
			for _, form := range []string{"apart", "in place", "no gradient"} {
				name := fmt.Sprintf("%d x %d, %s", rows, classes, form)
				logits := slices.Clone(c.logits)
				grad := map[string][]float32{"apart": make([]float32, len(logits)), "in place": logits}[form]
				got, n := flat.SoftmaxCrossEntropy(team, grad, rows, classes, logits, c.labels, c.split, 1, 0.3)
				if !identical(got, loss) || n != count {
					t.Fatalf("%s: loss %v of %d rows, want %v of %d", name, got, n, loss, count)
				}
				if grad != nil {
					check(name, grad, want)
				}
			}
			for r := range rows {
				softmaxOf(want[r*classes:(r+1)*classes], c.logits[r*classes:(r+1)*classes], 1)
			}
			flat.Softmax(team, c.logits, rows, classes, c.logits)
			check(fmt.Sprintf("softmax %d x %d", rows, classes), c.logits, want)
		}
	})
}

type labelledLogits struct {
	logits []float32
	labels []int32
	split  []uint8
}

// randomLogits returns rows of small or large logits; few of them have an infinite number or a NaN.
func randomLogits(rng *rand.Rand, rows, classes int) (c labelledLogits) {
	special := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, 3e38, -3e38, 1e-40}
	counted := 1 + rng.IntN(4)
	for range rows {
		size := float32(math.Exp(rng.NormFloat64() * 3))
		first := len(c.logits)
		for range classes {
			c.logits = append(c.logits, size*float32(rng.NormFloat64()))
		}
		if rng.IntN(500) == 0 {
			for range 1 + rng.IntN(3) {
				c.logits[first+rng.IntN(classes)] = special[rng.IntN(len(special))]
			}
		}
		c.labels = append(c.labels, int32(rng.IntN(classes+1)-1))
		c.split = append(c.split, uint8(rng.IntN(counted)))
	}
	return c
}

// Predictions are the first columns with the largest logit with every instruction set, and are counted as correct by split.
func TestArgmaxOfEveryInstructionSet(t *testing.T) {
	eachSet(t, func(t *testing.T, set string) {
		team := kernels.NewTeam(2)
		defer team.Close()
		use(t, team, set)
		rng := rand.New(rand.NewPCG(7, 8))
		for range 100 {
			rows, classes := 1+rng.IntN(300), 1+rng.IntN(50)
			c := randomLogits(rng, rows, classes)
			for i := range c.logits { // ties
				c.logits[i] = float32(math.Round(float64(c.logits[i])))
			}
			for j := range classes {
				c.logits[j] = float32(math.Inf(-1))
			}
			c.logits[0] = float32(math.NaN())
			got, want := make([]int32, rows), make([]int32, rows)
			var correct, total [4]int64
			for r := range rows {
				top := float32(math.Inf(-1))
				for j, v := range c.logits[r*classes : (r+1)*classes] {
					if v > top {
						top, want[r] = v, int32(j)
					}
				}
				if c.labels[r] >= 0 {
					total[c.split[r]]++
					if want[r] == c.labels[r] {
						correct[c.split[r]]++
					}
				}
			}
			flat.Argmax(team, got, rows, classes, c.logits)
			if !slices.Equal(got, want) {
				t.Fatalf("%d x %d: %v, want %v", rows, classes, got, want)
			}
			if c, n := flat.Accuracy(team, rows, classes, c.logits, c.labels, c.split); c != correct || n != total {
				t.Fatalf("%d x %d: %v of %v are correct, want %v of %v", rows, classes, c, n, correct, total)
			}
		}
	})
}
