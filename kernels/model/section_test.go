package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Every read of a section gets the value that was written for it, at any cut of any network.
func TestValuesOfSectionsStand(t *testing.T) {
	for name, s := range specs() {
		for _, sparse := range []bool{false, true} {
			n := New(s, sparse)
			for first := range n.Layers {
				for _, end := range []int{first + 1, len(n.Layers)} {
					p := newSectionPlan(n, Section{first, end}, InStep)
					if err := stands(p, p.events); err != nil {
						t.Errorf("%s sparse=%t layers %d to %d: %v", name, sparse, first, end, err)
					}
				}
			}
		}
	}
}

// What one section sends is what the next one receives, and neither has memory for other layers.
func TestSectionsHaveOnlyTheirValues(t *testing.T) {
	s := Spec{Kind: "gcn", Dims: []int{64, 32, 16, 8, 4, 3}}
	s.Choose(Load{}, Choices{Order: "gather-first", CacheInput: "off"})
	n := New(s, false)
	whole := n.Section().Columns(n)
	if whole != n.Columns(InStep) {
		t.Fatalf("the section of all layers has %d columns, the network %d", whole, n.Columns(InStep))
	}
	for cut := 1; cut < len(n.Layers); cut++ {
		rows, grads := n.Crossing(cut)
		if len(rows) != 1 || len(grads) != 1 || fmt.Sprint(n.width(ref{rows[0].Layer, rows[0].Value})) != fmt.Sprint(s.Dims[cut]) {
			t.Errorf("cut %d: rows %+v, gradients %+v", cut, rows, grads)
		}
		below, above := Section{0, cut}.Columns(n), Section{cut, len(n.Layers)}.Columns(n)
		if below >= whole || above >= whole {
			t.Errorf("cut %d: %d and %d columns, the network %d", cut, below, above, whole)
		}
	}
}

// A layer that later sections read travels with the rows, and its gradient returns.
func TestSkippedRowsCross(t *testing.T) {
	s := Spec{Kind: "gcnii", Dims: []int{8, 4, 4, 4, 4, 4, 3}, Design: Design{Alpha: 0.1, Theta: 0.5}}
	s.Choose(Load{}, Choices{Order: "auto", CacheInput: "off"})
	n := New(s, false)
	rows, grads := n.Crossing(4)
	if len(rows) != 2 || len(grads) != 2 || rows[1].Layer != 0 || grads[1] != (Ref{0, skipGrad, true}) {
		t.Errorf("rows %+v, gradients %+v", rows, grads)
	}
	if rows, grads = n.Crossing(len(n.Layers) - 1); len(rows) != 1 || len(grads) != 1 {
		t.Errorf("before the last product: rows %+v, gradients %+v", rows, grads)
	}
}

// Deal finds the division whose largest stage is smallest, like a search of all divisions.
func TestDeal(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		costs := make([]float64, 1+rng.IntN(7))
		for k := range costs {
			costs[k] = float64(rng.IntN(5))
		}
		factors := []float64{}
		for stages := 1; stages <= len(costs); stages++ {
			factors = append(factors, float64(1+rng.IntN(3)))
			list, at, most := Deal(costs, factors), 0, 0.0
			for k, s := range list {
				if s.First != at || s.End <= s.First {
					t.Fatalf("%v in %d stages: %v", costs, stages, list)
				}
				at, most = s.End, max(most, factors[k]*sum(costs[s.First:s.End]))
			}
			if len(list) != stages || at != len(costs) || most != leastLargest(costs, factors) {
				t.Fatalf("%v in %d stages: %v, the largest has %g, want %g", costs, stages, list, most, leastLargest(costs, factors))
			}
		}
	}
}

func sum(list []float64) (total float64) {
	for _, x := range list {
		total += x
	}
	return total
}

func leastLargest(costs, factors []float64) float64 {
	if len(factors) == 1 {
		return factors[0] * sum(costs)
	}
	least := math.Inf(1)
	for end := 1; end <= len(costs)-len(factors)+1; end++ {
		least = min(least, max(factors[0]*sum(costs[:end]), leastLargest(costs[end:], factors[1:])))
	}
	return least
}
