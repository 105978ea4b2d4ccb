package ranks

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/ranks/checkpoint"
	"siafu/ranks/predictions"
	"siafu/ranks/stopping"
)

// jsonKey returns the name of a field in a file.
func jsonKey(f reflect.StructField, tag string) string {
	key, _, _ := strings.Cut(f.Tag.Get(tag), ",")
	return strings.ReplaceAll(key, "_", "-")
}

// Summary keys with the name of a flag have the flag's value, and no key has its zero value in
// a run with other values.
func TestSummarySaysWhatRan(t *testing.T) {
	t.Parallel()
	c := asynchronous(quick(t), 2, 3)
	c.Ranks, c.Servers, c.Parts, c.Threads, c.Epochs, c.Seed, c.Codec, c.Layers, c.Hidden, c.Model = 4, 1, 6, 2, 30, 7, "int8", 3, 9, "sage"
	c.ClassWeights = "root"
	c.Instance, c.Recipe = "c5n.2xlarge", "gcn-cora" // with other flags than its own
	c.Initializer, c.Kernel = "he", "go"             // auto is resolved
	c.TargetAcc, c.SwitchToSync, c.Dropout = 1, 1, 0 // at once
	s := reflect.ValueOf(train(t, c, generated(t, false)).Summary)
	flags := map[string]string{}
	for f, v := range c.Options() {
		flags[jsonKey(f, "toml")] = fmt.Sprint(v)
	}
	shared := 0
	for i := range s.NumField() {
		if s.Type().Field(i).Anonymous { // see TestCostOfInvocations
			continue
		}
		key := jsonKey(s.Type().Field(i), "json")
		want, isFlag := flags[key]
		if isFlag && key != "epochs" {
			shared++
			if got := fmt.Sprint(s.Field(i)); got != want {
				t.Errorf("%s is %s in the summary and was %s", key, got, want)
			}
		}
		switch key {
		// see TestEarlierDecisionsAreTakenOver, TestTooFewRowsToPredict, TestOrderOfIntervals, TestAutoCodec,
		// TestBridges, TestChosenSettings of siafu
		case "synthetic", "codec-chosen", "decided", "bridges", "chosen", "predict-seconds", "predict-bytes",
			"predictions", "predict-fallbacks", "disk":
		default:
			if s.Field(i).IsZero() {
				t.Errorf("%s is never said", key)
			}
		}
	}
	if shared < 10 {
		t.Errorf("only %d keys are flags", shared)
	}
}

// The time of a run includes the parts before it was resumed.
func TestSecondsOfAResumedRun(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := saving(t, "off")
	c.CheckpointEvery, c.Epochs, c.Ranks, c.Servers, c.Delay = "1h", 20, 2, 0, "0:5ms:1"
	first := train(t, c, data).Summary.TotalSeconds
	state, _, err := checkpoint.Latest(filepath.Join(c.Out, checkpoint.Dir))
	if err != nil || state == nil || state.Seconds < 0.1 || state.Seconds > first {
		t.Fatalf("the checkpoint of a run of %g s is wrong or absent: %v", first, err)
	}
	c.Epochs, c.Resume, c.Delay = 21, "auto", ""
	if s := train(t, c, data).Summary; s.TotalSeconds <= state.Seconds {
		t.Errorf("%g s, of which %g before it was resumed", s.TotalSeconds, state.Seconds)
	}
}

// The validation loss is the mean of -log p(label) over the validation vertices, with the
// probabilities that predict writes: on any number of ranks, in all modes.
func TestValidationLoss(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	const epochs = 12
	want := map[float64]float64{}
	for _, dropout := range []float64{0, 0.5} {
		c := quick(t)
		c.Epochs, c.EvalEvery, c.LR, c.Dropout = epochs-1, 0, 0.05, dropout // the model has the last weights
		train(t, c, data)
		want[dropout] = lossOfPredictions(t, predict(t, c.Out, data, 1), data)
	}
	for name, set := range map[string]func(*Config){
		"pipe":             func(c *Config) {},
		"nopipe":           func(c *Config) { c.Mode, c.Ranks = "nopipe", 3 },
		"two servers":      func(c *Config) { c.Ranks, c.Servers = 5, 2 },
		"dropout":          func(c *Config) { c.Dropout, c.Ranks = 0.5, 2 },
		"async":            func(c *Config) { *c = asynchronous(*c, 0, 1); c.Ranks, c.Servers = 2, 1 },
		"async, no server": func(c *Config) { *c = asynchronous(*c, 1, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Epochs, c.LR, c.Dropout = epochs, 0.05, 0
			set(&c)
			got, want := train(t, c, data).Epochs[epochs-1].ValLoss, want[c.Dropout]
			if got == nil || !(math.Abs(*got-want) < 1e-4*want) {
				t.Errorf("%v, of the predictions %v", got, want)
			}
		})
	}
}

// lossOfPredictions returns the mean of -log p(label) over the validation vertices, from the
// files of predict.
func lossOfPredictions(t *testing.T, dir, data string) float64 {
	t.Helper()
	d, err := graph.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p := readFloats(t, filepath.Join(dir, predictions.ProbabilityFile), d.Meta.Classes)
	sum, n := 0.0, 0.0
	for v, s := range d.Split {
		if s == graph.SplitVal {
			sum -= math.Log(float64(p[v*d.Meta.Classes+int(d.Labels[v])]))
			n++
		}
	}
	return sum / n
}

// Without validation vertices all modes stop after the last epoch, and not before; the last
// weights are best.
func TestNothingToValidate(t *testing.T) {
	t.Parallel()
	c := randomContent(60, 3)
	for v, s := range c.Split {
		if s == 2 {
			c.Split[v] = 3
		}
	}
	data := write(t, c)
	for _, mode := range []string{"pipe", "nopipe", "async"} {
		for _, on := range []string{stopping.OnAccuracy, stopping.OnLoss, stopping.OnBoth, stopping.OnPenalty} {
			for _, ranks := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s %s %d", mode, on, ranks), func(t *testing.T) {
					c := quick(t)
					c.Mode, c.Patience, c.Monitor, c.Ranks, c.Epochs = mode, 3, on, ranks, 12
					r := train(t, c, data)
					if s := r.Summary; s.StoppedBy != stopping.ByEpochs || s.Epochs != 12 || s.BestEpoch != 13 {
						t.Errorf("stopped by %s after %d epochs, best %d", s.StoppedBy, s.Epochs, s.BestEpoch)
					}
					if r.Epochs[0].ValLoss != nil {
						t.Errorf("a validation loss of %v", *r.Epochs[0].ValLoss)
					}
				})
			}
		}
	}
}

// Without a penalty the best weights are those of the lowest validation loss. With a large
// penalty, which shrinks weights in every step, they are the last.
func TestBestWithPenalty(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	best := func(on string, decay float64, ranks int) int {
		c := quick(t)
		c.Monitor, c.WeightDecay, c.WeightDecayOn, c.Ranks, c.Epochs = on, decay, "all", ranks, 12
		c.Optimizer, c.Momentum, c.LR, c.Initializer, c.Dropout = "sgd", 0, 0.02, "xavier", 0
		return train(t, c, data).Summary.BestEpoch
	}
	for _, ranks := range []int{1, 3} {
		loss, none := best("loss", 0, ranks), best("penalised", 0, ranks)
		if loss != none {
			t.Errorf("%d ranks: the best epoch is %d, by a penalty of nothing %d", ranks, loss, none)
		}
		shrunk, last := best("loss", 20, ranks), best("penalised", 20, ranks)
		if last != 13 || shrunk == last {
			t.Errorf("%d ranks: the best epoch with a large penalty is %d, without counting it %d", ranks, last, shrunk)
		}
	}
}
