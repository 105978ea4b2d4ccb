package objective_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"

	"siafu/kernels/objective"
)

// scoresOf returns scores with ties. Those of edges are higher on average.
func scoresOf(n int, above float64, rng *rand.Rand) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(math.Round(8*(rng.NormFloat64()+above))) / 8
	}
	return list
}

// Metrics of links equal a second implementation in NumPy, after OGB's evaluators.
func TestLinkMetricsAreNumPys(t *testing.T) {
	type in struct{ Edges, Without, Each []float32 }
	rng := rand.New(rand.NewPCG(5, 6))
	var examples []in
	var got []map[string]float64
	for _, sizes := range [][2]int{{1, 1}, {40, 15}, {60, 300}, {7, 100}} {
		x := in{scoresOf(sizes[0], 1, rng), scoresOf(sizes[1], 0, rng), scoresOf(sizes[0]*30, 0, rng)}
		mrr := 0.0
		for i, s := range x.Edges {
			mrr += objective.Reciprocal(s, x.Each[30*i:30*i+30]) / float64(len(x.Edges))
		}
		m := objective.Links(slices.Clone(x.Edges), slices.Clone(x.Without))
		m.MRR = &mrr
		text, _ := json.Marshal(m)
		of := map[string]float64{}
		json.Unmarshal(text, &of)
		delete(of, "links")
		examples, got = append(examples, x), append(got, of)
	}
	text, _ := json.Marshal(examples)
	c := exec.Command("/usr/bin/python3", "testdata/links.py")
	c.Stdin = bytes.NewReader(text)
	out, err := c.Output()
	if ended := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &ended) || ended.ExitCode() == 3) {
		t.Skipf("there is no NumPy (apt-get install python3-numpy): %v", err)
	}
	var want []map[string]float64
	if err := json.Unmarshal(out, &want); err != nil || len(want) != len(got) {
		t.Fatal(err, len(want))
	}
	for i := range want {
		same(t, "links", got[i], want[i])
	}
}

// The area of a histogram is exact, except for pairs in one class. Below 4, these scores,
// multiples of 1/8, have only equal ones in a class.
func TestHistogram(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var h objective.Histogram
	edges, without := scoresOf(200, 0.5, rng), scoresOf(300, 0, rng)
	for k, list := range [][]float32{without, edges} {
		h.Count(list, k == 1)
	}
	if want := *objective.Links(edges, without).ROCAUC; math.Abs(h.AUC()-want) > 1e-12 {
		t.Errorf("%v, want %v", h.AUC(), want)
	}
}

// The loss of pairs and its slopes match their formulae, term by term in float64.
func TestPairLosses(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	scores := []float32{0, 1e-30, -1e-30, 100, -100, 3e38, -3e38}
	for range 2000 {
		scores = append(scores, float32(8*rng.NormFloat64()))
	}
	for _, edge := range []bool{false, true} {
		got, want := slices.Clone(scores), 0.0
		loss := objective.PairLosses(got, edge, 0.25)
		for i, score := range scores {
			s := float64(score)
			if edge {
				s = -s
			}
			slope := 1 / (1 + math.Exp(-s))
			if want += max(s, 0) + math.Log1p(math.Exp(-math.Abs(s))); edge {
				slope = -slope
			}
			if math.Abs(float64(got[i])-slope/4) > 1e-7 { // a float32 of no more than 0.25
				t.Errorf("edge %t, score %v: the slope is %v, want %v", edge, score, got[i], slope/4)
			}
		}
		if math.Abs(loss-want) > 1e-12*want {
			t.Errorf("edge %t: the loss is %v, want %v", edge, loss, want)
		}
	}
	if loss := objective.PairLosses([]float32{float32(math.NaN())}, true, 1); !math.IsNaN(loss) {
		t.Errorf("no number has the loss %v", loss)
	}
}
