package ranks

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/internal/testkit/hosttest"
	"siafu/ranks/forecast"
)

// inStages returns a run of a deep network in pipelines.
func inStages(t *testing.T, set func(*Config)) Config {
	c := quick(t)
	c.Batch, c.Pipeline, c.Microbatches, c.Schedule, c.Redundancy = "cluster:16,2", "1", 4, "1f1b", "off"
	c.Model, c.Layers, c.Hidden, c.Dropout, c.Epochs, c.Threads = "gcn", 5, 8, 0.3, 3, 1
	c.Optimizer, c.LR = "adam", 0.01
	set(&c)
	return c
}

// pipelineRun runs P stages in D pipelines.
func pipelineRun(t *testing.T, c Config, stages, pipelines int, data string) trained {
	c.Pipeline, c.Ranks, c.Out = fmt.Sprintf("%d,%d", stages, pipelines), stages*pipelines+max(c.Servers, 0), t.TempDir()
	return train(t, c, data)
}

// The model and the losses of every division into stages and of both schedules are those of one rank that
// accumulates gradients, to the bit.
func TestPipelinesTrainLikeOneRank(t *testing.T) {
	t.Parallel()
	data := generatedSmall(t, false)
	networks := deepNetworks()
	networks["gcn"] = func(*Config) {}
	networks["sage residual"] = func(c *Config) { c.Model, c.Residual = "sage", "add" }
	for k, name := range hosttest.ShareOf(t, 2, slices.Sorted(maps.Keys(networks))) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := inStages(t, networks[name])
			want := pipelineRun(t, c, 1, 1, data)
			for stages, schedule := range map[int]string{2: "1f1b", 3: "gpipe", 4: "1f1b"} {
				if stages != 2+k%3 && !hosttest.Big() {
					continue
				}
				c.Schedule, c.Balance = schedule, []string{"arithmetic", "memory"}[stages/4]
				got := pipelineRun(t, c, stages, 1, data)
				if !bytes.Equal(got.model, want.model) {
					t.Errorf("%d stages, %s: another model, losses %v, want %v", stages, schedule, got.losses(), want.losses())
				}
				sameLosses(t, fmt.Sprint(stages, schedule), got.losses(), want.losses(), 0)
			}
		})
	}
}

// Steps of one microbatch are the steps of --batch cluster without a pipeline. Several pipelines add their
// gradients like as many graph ranks.
func TestOneMicrobatchIsAMiniBatch(t *testing.T) {
	t.Parallel()
	data, seed := generatedSmall(t, false), hosttest.Turn(t, 2)
	for pipelines := 1; pipelines <= 3; pipelines++ {
		for _, servers := range []int{0, 1} {
			if !hosttest.Sampled(2, pipelines, servers, seed) {
				continue
			}
			t.Run(fmt.Sprintf("%d pipelines, %d servers", pipelines, servers), func(t *testing.T) {
				t.Parallel()
				c := inStages(t, func(c *Config) { c.Microbatches, c.Model, c.Residual, c.Servers = 1, "sage", "add", servers })
				batches := c
				batches.Pipeline, batches.Ranks, batches.Out = "", pipelines+servers, t.TempDir()
				want := train(t, batches, data)
				got := pipelineRun(t, c, 3, pipelines, data)
				if !bytes.Equal(got.model, want.model) {
					t.Errorf("another model, losses %v, want %v", got.losses(), want.losses())
				}
				sameLosses(t, "3 stages", got.losses(), want.losses(), 0)
			})
		}
	}
}

// Without edges between clusters, the gradients of all microbatches add up to that of the whole graph: the
// losses are those of full-batch training except for the order of sums. 1e-5 allows the float32 errors of
// 10 steps.
func TestMicrobatchesAddUp(t *testing.T) {
	t.Parallel()
	content := randomContent(240, 3)
	edges := content.Edges.(graph.EdgePairs)
	for k := range edges { // both ends of an edge are in one of four components
		edges[k] = edges[k]/4*4 + edges[k-k%2]%4
	}
	data := write(t, content)
	c := inStages(t, func(c *Config) { c.Model, c.Residual, c.Dropout, c.InputDropout, c.Epochs = "sage", "add", 0, 0, 10 })
	c.Batch, c.Optimizer, c.LR = "cluster:4,1", "sgd", 0.05
	full := c
	full.Batch, full.Pipeline, full.Microbatches = "full", "", 1
	sameLosses(t, "3 stages", pipelineRun(t, c, 3, 1, data).losses(), train(t, full, data).losses(), 1e-5)
}

// Redundant computation changes no bit.
func TestRedundancyChangesNothing(t *testing.T) {
	t.Parallel()
	data := generatedSmall(t, false)
	c := inStages(t, func(c *Config) { c.Model, c.Residual, c.Jumping = "sage", "add", "cat" })
	want := pipelineRun(t, c, 1, 2, data)
	for k, redundancy := range []string{"lflb", "eflb", "efeb"} {
		for stages, schedule := range map[int]string{2: "1f1b", 3: "gpipe", 4: "1f1b"} {
			if stages == 2+k && !hosttest.Big() {
				continue
			}
			c.Redundancy, c.Schedule = redundancy, schedule
			got := pipelineRun(t, c, stages, 2, data)
			if !bytes.Equal(got.model, want.model) {
				t.Errorf("%s, %d stages, %s: another model, losses %v, want %v", redundancy, stages, schedule, got.losses(), want.losses())
			}
			sameLosses(t, fmt.Sprint(redundancy, stages, schedule), got.losses(), want.losses(), 0)
		}
	}
}

// A run resumes with another number of stages, on other ranks, with the same bits.
func TestPipelinesResume(t *testing.T) {
	t.Parallel()
	data := generatedSmall(t, false)
	c := inStages(t, func(c *Config) { c.Epochs, c.Model, c.Alpha = 6, "gcnii", 0.3 })
	want := pipelineRun(t, c, 1, 2, data)
	c.Pipeline, c.Ranks, c.Epochs, c.CheckpointEvery = "2,2", 4, 3, "2e"
	train(t, c, data)
	c.Pipeline, c.Ranks, c.Servers, c.Epochs, c.Resume = "4,2", 9, 1, 6, "auto"
	got := train(t, c, data)
	if !bytes.Equal(got.model, want.model) {
		t.Errorf("another model, losses %v, want %v", got.losses(), want.losses())
	}
	sameLosses(t, "resumed", got.losses(), want.losses(), 0)
}

// With microbatches of all vertices, the estimates of a stage's arrays are exact.
func TestStagesAreEstimated(t *testing.T) {
	t.Parallel()
	data := brought(t, 600, 0)
	for _, redundancy := range []string{"off", "eflb"} {
		c := inStages(t, func(c *Config) { c.Batch, c.Microbatches, c.Model, c.PreAggregate = "cluster:4,4", 1, "sage", "off" })
		c.Redundancy = redundancy
		run := pipelineRun(t, c, 3, 2, data).Summary
		c.Pipeline = "3,2"
		meta, err := graph.ReadMeta(data)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := partition.Find(data, 2)
		if err != nil {
			t.Fatal(err)
		}
		f, _, err := forecast.Of(c, meta, 6, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		for rank, got := range run.PerRank {
			// Arrays of one term may be rounded up together.
			if want := f.GraphRank(rank, parts.Report.Ranks[rank/3]).
				Of(forecast.Array); max(got.ArrayBytes-want, want-got.ArrayBytes) > 1024 {
				t.Errorf("redundancy %s, rank %d made arrays of %d bytes, estimated were %d", redundancy, rank, got.ArrayBytes, want)
			}
		}
	}
}
