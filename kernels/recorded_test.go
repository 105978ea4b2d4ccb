package kernels_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// load reads what testdata/record.py wrote.
func load(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Every optimiser follows PyTorch's path. The recorded path is in float64; ours rounds a few
// times per step, by 2⁻²⁴ of values of the order of 1.
func TestOptimizersFollowPyTorch(t *testing.T) {
	var recorded struct {
		Param []float32
		Grads [][]float32
		Cases []struct {
			Config kernels.OptimizerConfig
			Params [][]float64
		}
	}
	load(t, "optimizers.json", &recorded)
	for _, c := range recorded.Cases {
		t.Run(fmt.Sprintf("%+v", c.Config), func(t *testing.T) {
			optimizer, err := kernels.NewOptimizer(c.Config)
			if err != nil {
				t.Fatal(err)
			}
			w := slices.Clone(recorded.Param)
			state := newState(optimizer, len(w))
			for step, grad := range recorded.Grads {
				optimizer.Step(step+1, w, grad, state, true)
				for i, want := range c.Params[step] {
					if d := math.Abs(float64(w[i]) - want); !(d <= float64(step+1)*4*0x1p-24) {
						t.Fatalf("step %d: parameter %d is %v, want %v", step+1, i, w[i], want)
					}
				}
			}
		})
	}
	if len(recorded.Cases) != 8 || len(recorded.Grads) != 20 {
		t.Fatalf("%d cases of %d steps recorded", len(recorded.Cases), len(recorded.Grads))
	}
}

func newState(o kernels.Optimizer, n int) [][]float32 {
	state := make([][]float32, o.StateSlots())
	for i := range state {
		state[i] = make([]float32, n)
	}
	return state
}

// A parameter with decay off moves as with an optimiser without weight decay.
func TestWeightDecayIsOptional(t *testing.T) {
	for _, name := range []string{"sgd", "adam", "adamw"} {
		var got [3]float32
		for i, c := range []struct {
			wd    float64
			decay bool
		}{{0.1, false}, {0, true}, {0.1, true}} {
			o, err := kernels.NewOptimizer(kernels.OptimizerConfig{Name: name, LR: 0.1, Momentum: 0.9, WeightDecay: c.wd})
			if err != nil {
				t.Fatal(err)
			}
			w, state := []float32{2}, newState(o, 1)
			for step := range 3 {
				o.Step(step+1, w, []float32{0.3 * float32(step-1)}, state, c.decay)
			}
			got[i] = w[0]
		}
		if got[0] != got[1] || got[0] == got[2] {
			t.Errorf("%s: %v without decay, %v at 0, %v with", name, got[0], got[1], got[2])
		}
	}
}

func TestNewOptimizerRefuses(t *testing.T) {
	for name, c := range map[string]kernels.OptimizerConfig{
		"name":         {Name: "lion", LR: 1},
		"rate":         {Name: "sgd", LR: -1},
		"nan":          {Name: "sgd", LR: math.NaN()},
		"momentum":     {Name: "sgd", LR: 1, Momentum: math.Inf(1)},
		"beta1":        {Name: "adam", LR: 1, Beta1: 1},
		"beta2":        {Name: "adam", LR: 1, Beta2: 1.5},
		"epsilon":      {Name: "adam", LR: 1, Eps: -1},
		"weight decay": {Name: "adamw", LR: 1, WeightDecay: -1},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := kernels.NewOptimizer(c)
			if o != nil || fault.KindOf(err) != fault.Config {
				t.Fatalf("%v, %v", o, err)
			}
		})
	}
}

// Loss, gradient and softmax equal PyTorch's.
func TestLossIsPyTorchs(t *testing.T) {
	var r struct {
		Classes       int
		Logits        [][]float32
		Labels        []int32
		Split         []int
		Want          uint8
		Count         int64
		Loss          float64
		Grad, Softmax [][]float64
	}
	load(t, "loss.json", &r)
	rows := len(r.Logits)
	logits := slices.Concat(r.Logits...)
	split := make([]uint8, rows)
	for i, s := range r.Split {
		split[i] = uint8(s)
	}
	team := kernels.NewTeam(2)
	defer team.Close()
	got := make([]float32, len(logits))
	loss, count := flat.SoftmaxCrossEntropy(team, got, rows, r.Classes, logits, r.Labels, split, r.Want, 1)
	if count != r.Count || math.Abs(loss-r.Loss) > 1e-12*r.Loss {
		t.Errorf("loss %v of %d rows, want %v of %d", loss, count, r.Loss, r.Count)
	}
	checkNear(t, "gradient", got, slices.Concat(r.Grad...))
	flat.Softmax(team, got, rows, r.Classes, logits)
	checkNear(t, "softmax", got, slices.Concat(r.Softmax...))
}

func checkNear(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(float64(got[i])-want[i]) <= 0x1p-23) {
			t.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}
