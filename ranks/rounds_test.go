package ranks

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/kernels/model"
)

// sgd returns a configuration with steps proportional to gradients.
func sgd(t testing.TB, ranks, servers, epochs int) Config {
	c := quick(t)
	c.Ranks, c.Servers, c.Epochs, c.Optimizer, c.Momentum, c.LR = ranks+servers, servers, epochs, "sgd", 0, 0.2
	return c
}

// ofTwoLayers returns the network that tests train on a content.
func ofTwoLayers(c Config, meta *graph.Meta) model.Spec {
	return c.Network(meta.FeatureDim, meta.Classes)
}

// sameWeights compares models value by value.
func sameWeights(t *testing.T, got, want trained, c Config, data string, tolerance float64) {
	t.Helper()
	meta, err := graph.ReadMeta(data)
	if err != nil {
		t.Fatal(err)
	}
	net := ofTwoLayers(c, meta)
	g, w := got.weights(t, net), want.weights(t, net)
	for i := range w {
		if d := math.Abs(float64(g[i] - w[i])); !(d <= tolerance) {
			t.Fatalf("weight %d is %v, want %v", i, g[i], w[i])
		}
	}
}

// last makes a run save its last weights, with any accuracy: it evaluates only those.
func last(c Config) Config {
	c.EvalEvery = 0
	return c
}

// With plain SGD the mean of the ranks' own steps is the step on the sum of their gradients.
// With rounds of one epoch, training is the same for any kind of ghosts, with and without
// servers. Only rounding differs, by 1e-7 per step.
func TestAveragingOfOneEpochIsSummingGradients(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, policy := range []string{"always", "previous:none", "never"} {
		for servers := range 3 {
			t.Run(fmt.Sprintf("%s servers=%d", policy, servers), func(t *testing.T) {
				c := last(sgd(t, 3, servers, 20))
				c.Refresh, c.Partitioner = policy, "hash"
				want := train(t, c, data)
				c.LocalEpochs, c.Out = 1, c.Out+"-own"
				got := train(t, c, data)
				sameLosses(t, policy, got.losses(), want.losses(), 1e-5)
				sameWeights(t, got, want, c, data, 1e-6)
			})
		}
	}
}

// On one rank averaging changes nothing.
func TestAveragingOfOneRankIsTraining(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for epochs := range 4 {
		for servers := range 2 {
			c := last(compared(t, 0.3))
			c.Ranks, c.Servers = 1+servers, servers
			want := train(t, c, data)
			c.LocalEpochs, c.Out = epochs, c.Out+"-own"
			if got := train(t, c, data); !bytes.Equal(got.model, want.model) {
				t.Errorf("rounds of %d epochs, %d servers: the models differ", epochs, servers)
			}
		}
	}
}

// Within a round ranks train independently, with and without servers: the same bits with one
// server, which adds in the same order.
func TestRoundsWithServers(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := compared(t, 0.3)
	c.Ranks, c.Servers, c.LocalEpochs, c.Refresh, c.EvalEvery = 3, 0, 4, "never", 3
	want := train(t, c, data)
	for i, e := range want.Epochs {
		// Evaluations due before epochs 1, 4, 7, ... are made before the next round.
		if due := i == 0 || i%4 == 0 && i/3 > (i-4)/3; (e.ValAcc != nil) != due {
			t.Errorf("epoch %d: evaluated %t", i+1, !due)
		}
	}
	c.Ranks, c.Servers, c.Out = 4, 1, c.Out+"-server"
	if got := train(t, c, data); !bytes.Equal(got.model, want.model) {
		t.Error("the models differ")
	}
	c.Ranks, c.Servers, c.LocalEpochs, c.Out = 3, 0, 1, c.Out+"-1"
	if got := train(t, c, data); bytes.Equal(got.model, want.model) {
		t.Error("rounds of one epoch are as those of four")
	}
}

// A correction is one step of exact training from the weights of the round before it: here,
// after one epoch without cut edges, the same as exact training from that epoch's weights,
// except for the order of float32 sums.
func TestCorrectionIsAnExactStep(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, kind := range []string{"gcn", "gat"} {
		for _, policy := range []string{"never", "previous:none"} {
			c := last(sgd(t, 3, 0, 1))
			c.Model, c.Refresh, c.LocalEpochs, c.Partitioner, c.Dropout = kind, policy, 1, "hash", 0
			round := train(t, c, data)
			exact := c
			exact.Refresh, exact.LocalEpochs, exact.Init, exact.Out = "always", 0, round.Model, c.Out+"-exact"
			want := train(t, exact, data)
			c.ServerCorrection, c.Out = 1, c.Out+"-corrected"
			got := train(t, c, data)
			sameWeights(t, got, want, c, data, 1e-6)
			if got.Epochs[0].GhostBytesRaw <= round.Epochs[0].GhostBytesRaw {
				t.Errorf("%s, %s: %d bytes of rows with a correction, %d without", kind, policy, got.Epochs[0].GhostBytesRaw,
					round.Epochs[0].GhostBytesRaw)
			}
		}
	}
}

// Mini-batches do not depend on the partition: a vertex is sampled by its number. If the steps
// of a round are averaged from gradients with exact ghosts, only corrections could differ.
func TestCorrectionBatchIsSampledByVertex(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	run := func(ranks, batch int) trained {
		c := last(sgd(t, ranks, 0, 6))
		c.LocalEpochs, c.ServerCorrection, c.CorrectionBatch, c.Dropout = 1, 2, batch, 0
		c.Refresh, c.WeightDecay = "never", 0
		c.Model = "mlp" // without edges nothing is cut
		return train(t, c, data)
	}
	want := run(1, 20)
	sameLosses(t, "three ranks", run(3, 20).losses(), want.losses(), 1e-5)
	if all := run(1, 0); bytes.Equal(all.model, want.model) {
		t.Error("batches of 20 vertices are as all of them")
	}
}

// A run stopped between two rounds resumes as if it had never stopped. A run with a stop
// request within a round finishes the round first.
func TestResumedRounds(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for name, set := range map[string]func(*Config){
		"adam, no server": func(c *Config) { c.Ranks, c.Servers = 3, 0 },
		"momentum":        func(c *Config) { c.Ranks, c.Servers, c.Optimizer, c.LR = 5, 2, "sgd", 0.1 },
		"corrections":     func(c *Config) { c.Ranks, c.Servers, c.ServerCorrection, c.CorrectionBatch = 4, 1, 2, 30 },
	} {
		t.Run(name, func(t *testing.T) {
			c := saving(t, "off")
			c.Refresh, c.LocalEpochs = "never", 3
			c.Epochs = 36
			set(&c)
			want := train(t, c, data)
			c.CheckpointEvery, c.Out = "5e", c.Out+"-resumed"
			for _, epochs := range []int{12, 27, 36} {
				c.Epochs = epochs
				train(t, c, data)
				c.Resume = "auto"
			}
			got := readRun(t, c.Out)
			sameLosses(t, name, got.losses(), want.losses(), 0)
			if !bytes.Equal(got.model, want.model) {
				t.Error("the models differ")
			}
		})
	}
}

// Invalid configurations are refused with the flag and a remedy.
func TestRoundsAreRefused(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*Config){
		"async":           func(c *Config) { c.LocalEpochs, c.Mode = 1, "async" },
		"no rounds":       func(c *Config) { c.ServerCorrection, c.Refresh = 1, "never" },
		"exact":           func(c *Config) { c.ServerCorrection, c.LocalEpochs = 1, 1 },
		"no corrections":  func(c *Config) { c.CorrectionBatch = 5 },
		"measured":        func(c *Config) { c.MeasureStaleness, c.LocalEpochs, c.Refresh = 3, 2, "never" },
		"negative rounds": func(c *Config) { c.LocalEpochs = -1 },
	} {
		c := quick(t)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		set(&c)
		if err := c.Validate(); fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}
