package kerneltest

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"siafu/kernels"
)

// Accuracy tests kernels.Ops.Accuracy.
func (s Suite) Accuracy(t *testing.T) {
	sizes{"rows", []int{0, 1, size(3000, 600)}, "classes", []int{1, 2, 41}}.run(t, func(t *testing.T, rows, classes int) {
		c := newClassified(rows, classes)
		for range 2 { // the second round has logits that are NaN or infinite
			correct, total := c.count()
			for _, n := range workers {
				team := kernels.NewTeam(n)
				l := s.newFixture(team)
				gotCorrect, gotTotal := l.Accuracy(l.in(rows, classes, c.logits), place(l, c.labels), place(l, c.split))
				l.done()
				team.Close()
				if gotCorrect != correct || gotTotal != total {
					t.Fatalf("%v of %v with %d workers, want %v of %v", gotCorrect, gotTotal, n, correct, total)
				}
			}
			insertNonFinite(c.logits)
		}
	})
}

// count counts a row as correct if its label is predicted.
func (c *classified) count() (correct, total [4]int64) {
	for r, label := range c.labels {
		if label < 0 {
			continue
		}
		total[c.split[r]]++
		if predicted(c.logits[r*c.classes:(r+1)*c.classes]) == label {
			correct[c.split[r]]++
		}
	}
	return correct, total
}

// predicted returns the predicted class by sorting: columns by descending logit, NaN equal to
// -Inf, lower columns first.
func predicted(z []float32) int32 {
	order := make([]int32, len(z))
	for j := range order {
		order[j] = int32(j)
	}
	key := func(j int32) float64 {
		if v := float64(z[j]); !math.IsNaN(v) {
			return v
		}
		return math.Inf(-1)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(key(b), key(a)) })
	return order[0]
}

// Argmax tests kernels.Ops.Argmax.
func (s Suite) Argmax(t *testing.T) {
	sizes{"rows", []int{0, 1, size(3000, 600)}, "cols", []int{1, 2, 41}}.run(t, func(t *testing.T, rows, cols int) {
		c := newClassified(rows, cols)
		for i := range c.logits { // ties
			c.logits[i] = float32(math.Trunc(float64(c.logits[i])))
		}
		insertNonFinite(c.logits)
		for _, n := range workers {
			team := kernels.NewTeam(n)
			dst := make([]int32, rows+1)
			dst[rows] = -7
			l := s.newFixture(team)
			to := place(l, dst)
			l.Argmax(to.Part(0, rows), l.in(rows, cols, c.logits))
			copy(dst, kernels.FetchVector(l, to))
			l.done()
			team.Close()
			for r := range rows {
				if want := predicted(c.logits[r*cols : (r+1)*cols]); dst[r] != want {
					t.Fatalf("row %d: %d, want %d", r, dst[r], want)
				}
			}
			if dst[rows] != -7 {
				t.Fatal("written behind the end")
			}
		}
	})
}
