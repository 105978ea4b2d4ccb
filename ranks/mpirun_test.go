//go:build mpi

package ranks

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
	"siafu/ranks/predictions"
	"siafu/ranks/trace"
)

// program returns the path of siafu, built with MPI.
func program(t *testing.T) string {
	t.Helper()
	return hosttest.Go(t, "mpi/siafu", "siafu", "mpi")
}

// Ranks as processes and ranks as goroutines compute the same bits, for every size of the
// world.
func TestMpirunEqualsInProcess(t *testing.T) {
	t.Parallel()
	siafu := program(t)
	data := generated(t, true)
	base := compared(t, 0.5)
	epochs := fmt.Sprint(base.Epochs)
	want := train(t, base, data).losses()
	for _, n := range []int{1, 2, 3, 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := base
			c.Out = filepath.Join(t.TempDir(), "inside")
			c.Ranks = n
			c.Servers = n / 3
			inside := train(t, c, data)
			out := filepath.Join(t.TempDir(), "run")
			cmd := mpitest.Mpirun(t, n, siafu, "train", data, "--epochs", epochs, "--dropout", "0.5",
				"--eval-every", "0", "--servers", fmt.Sprint(c.Servers), "--out", out, "--quiet")
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			outside := readRun(t, out)
			if !bytes.Equal(outside.model, inside.model) {
				t.Error("model.safetensors differs between processes and goroutines")
			}
			sameLosses(t, "mpirun", outside.losses(), inside.losses(), 0)
			sameLosses(t, "mpirun against one rank", outside.losses(), want, 1e-4)
		})
	}
}

// So do networks with other halo contents (attention's sums, first rows), with several servers
// and with various options: MPI does not depend on the kind of network.
func TestMpirunEqualsInProcessForOtherKinds(t *testing.T) {
	t.Parallel()
	siafu := program(t)
	data := generated(t, true)
	for i, kind := range []string{"gat", "sage", "gcnii"} {
		t.Run(kind, func(t *testing.T) {
			c := compared(t, 0.3)
			c.Epochs, c.Model, c.Heads, c.LR, c.Ranks, c.Servers = 10, kind, 2, 0.005, 4+i, i
			c.Mode = []string{"pipe", "nopipe"}[i%2]
			inside := train(t, c, data)
			out := filepath.Join(t.TempDir(), "run")
			cmd := mpitest.Mpirun(t, c.Ranks, siafu, "train", data, "--epochs", "10", "--dropout", "0.3", "--model", kind, "--heads", "2",
				"--lr", "0.005", "--mode", c.Mode, "--eval-every", "0", "--servers", fmt.Sprint(c.Servers), "--out", out, "--quiet")
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			outside := readRun(t, out)
			if !bytes.Equal(outside.model, inside.model) {
				t.Error("model.safetensors differs between processes and goroutines")
			}
			sameLosses(t, kind, outside.losses(), inside.losses(), 0)
		})
	}
}

// So do predictions of ghost rows.
func TestMpirunPredictsGhosts(t *testing.T) {
	t.Parallel()
	siafu := program(t)
	data := generated(t, true)
	for kind, policy := range map[string]string{"transfer": "delay:2", "gru-gcn": "every:3,1", "lstm-gcn": "every:3"} {
		c := compared(t, 0.3)
		c.Epochs, c.Ranks, c.Servers, c.Refresh, c.Predict = 10, 3, 0, policy, kind
		args := []string{"train", data, "--epochs", "10", "--dropout", "0.3", "--refresh", policy, "--predict", kind,
			"--eval-every", "0", "--servers", "0"}
		if kind == "lstm-gcn" {
			c.PredictEvery = 2
			args = append(args, "--predict", "every=2")
		}
		inside := train(t, c, data)
		out := filepath.Join(t.TempDir(), "run")
		cmd := mpitest.Mpirun(t, c.Ranks, siafu, append(args, "--out", out, "--quiet")...)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		outside := readRun(t, out)
		if !bytes.Equal(outside.model, inside.model) || outside.Summary.Predictions != inside.Summary.Predictions ||
			inside.Summary.Predictions == 0 {
			t.Errorf("%s: %d predictions in processes, %d in goroutines; model.safetensors may differ", kind,
				outside.Summary.Predictions, inside.Summary.Predictions)
		}
	}
}

// So does attention with features of edges, which are in every rank's shard.
func TestMpirunEqualsInProcessWithEdgeFeatures(t *testing.T) {
	t.Parallel()
	siafu := program(t)
	data := describedGraph(t, true, 3)
	c := compared(t, 0.3)
	c.Epochs, c.Model, c.Heads, c.LR, c.Ranks, c.Servers = 10, "gatv2", 2, 0.005, 3, 1
	inside := train(t, c, data)
	out := filepath.Join(t.TempDir(), "run")
	cmd := mpitest.Mpirun(t, c.Ranks, siafu, "train", data, "--epochs", "10", "--dropout", "0.3", "--input-dropout", "0.3",
		"--model", "gatv2", "--heads", "2",
		"--lr", "0.005", "--eval-every", "0", "--servers", "1", "--out", out, "--quiet")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	outside := readRun(t, out)
	sameLosses(t, "mpirun", outside.losses(), inside.losses(), 0)
	if !bytes.Equal(outside.model, inside.model) {
		t.Error("model.safetensors differs between processes and goroutines")
	}
}

// Bounded asynchrony trains with processes, with and without servers.
func TestMpirunAsync(t *testing.T) {
	t.Parallel()
	siafu := program(t)
	data := generated(t, true)
	seed := hosttest.Turn(t, 2)
	for i, kind := range []string{"gcn", "gat", "sage", "gatv2"} {
		if !hosttest.Sampled(2, i, seed) {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "run")
			cmd := mpitest.Mpirun(t, 4+i, siafu, "train", data, "--epochs", "15", "--dropout", "0", "--model", kind,
				"--mode", fmt.Sprintf("async:staleness=%d", i), "--intervals", "3", "--servers", fmt.Sprint(i), "--out", out, "--quiet")
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			r := readRun(t, out)
			if len(r.Epochs) != 15 || !(r.Summary.FinalLoss < r.Epochs[0].Loss) {
				t.Errorf("%d epochs, the loss goes from %g to %g", len(r.Epochs), r.Epochs[0].Loss, r.Summary.FinalLoss)
			}
		})
	}
}

// Prediction works under mpirun as well: every rank writes its own rows.
func TestMpirunPredict(t *testing.T) {
	t.Parallel()
	siafu := program(t)
	data := generated(t, false)
	c := quick(t)
	c.Epochs = 5
	train(t, c, data)
	one := predict(t, c.Out, data, 1)
	three := filepath.Join(t.TempDir(), "three")
	cmd := mpitest.Mpirun(t, 3, siafu, "predict", c.Out, data, "--out", three, "--embeddings")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, name := range []string{predictions.ClassFile, predictions.IDFile, predictions.CSVFile} {
		a, errA := os.ReadFile(filepath.Join(one, name))
		b, errB := os.ReadFile(filepath.Join(three, name))
		if errA != nil || errB != nil || (name != predictions.CSVFile && !bytes.Equal(a, b)) || len(b) == 0 {
			t.Errorf("%s: %v %v", name, errA, errB)
		}
	}
	parts := filepath.Join(t.TempDir(), "parts")
	cmd = mpitest.Mpirun(t, 2, siafu, "predict", c.Out, data, "--parts", "3", "--out", parts, "--embeddings")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	sameFiles(t, three, parts)
}

// Processes leave the same timeline as goroutines.
func TestMpirunTimeline(t *testing.T) {
	t.Parallel()
	siafu := program(t)
	data := generated(t, true)
	for _, servers := range []int{0, 1} {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "run")
			timeline := filepath.Join(out, "trace.json")
			cmd := mpitest.Mpirun(t, 4, siafu, "train", data, "--epochs", "6", "--servers", fmt.Sprint(servers),
				"--out", out, "--quiet", "--trace", timeline)
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			f, err := trace.Read(timeline)
			if err != nil {
				t.Fatal(err)
			}
			checkTimeline(t, readRun(t, out).Run, f)
		})
	}
}

// So do runs in mini-batches.
func TestMpirunInBatches(t *testing.T) {
	t.Parallel()
	siafu := program(t)
	data := generated(t, true)
	for predict, batch := range map[string]string{"off": "history:5", "transfer": "history:3", "": "variates:3,2"} {
		c := inBatches(t, 4, 1)
		c.Batch, c.Servers, c.Layers, c.Predict = batch, 1, 3, cmp.Or(predict, "off")
		inside := train(t, c, data)
		out := filepath.Join(t.TempDir(), "run")
		cmd := mpitest.Mpirun(t, 4, siafu, "train", data, "--epochs", "8", "--batch", batch, "--predict", c.Predict, "--layers", "3",
			"--servers", "1", "--out", out, "--quiet")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		outside := readRun(t, out)
		if !bytes.Equal(outside.model, inside.model) {
			t.Errorf("%s: model.safetensors differs between processes and goroutines", batch)
		}
	}
}

// So do links: rows of random pairs, and sums in pieces, on directed and undirected graphs.
func TestMpirunLinks(t *testing.T) {
	t.Parallel()
	siafu := program(t)
	for _, directed := range []bool{false, true} {
		data := linked(t, directed)
		c := quick(t)
		c.Epochs, c.Ranks, c.Servers = 4, 3, 0
		inside := train(t, c, data)
		out := filepath.Join(t.TempDir(), "run")
		cmd := mpitest.Mpirun(t, c.Ranks, siafu, "train", data, "--defaults", "fixed", "--epochs", "4",
			"--servers", "0", "--out", out, "--quiet")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		outside := readRun(t, out)
		sameLosses(t, "mpirun", outside.losses(), inside.losses(), 0)
		if !bytes.Equal(outside.model, inside.model) || !reflect.DeepEqual(outside.Summary.Metrics, inside.Summary.Metrics) {
			t.Errorf("directed %t: the model or its metrics differ between processes and goroutines", directed)
		}
		for i, e := range outside.Epochs {
			if e.PairBytes != inside.Epochs[i].PairBytes || e.PairBytes == 0 {
				t.Errorf("directed %t: epoch %d sends %d bytes for pairs, within a process %d", directed, e.Epoch,
					e.PairBytes, inside.Epochs[i].PairBytes)
			}
		}
	}
}

// So do pipelines: two of two stages.
func TestMpirunRunsPipelines(t *testing.T) {
	t.Parallel()
	siafu := program(t)
	data := generated(t, true)
	c := inStages(t, func(c *Config) { c.Model, c.Residual, c.Redundancy, c.InputDropout = "sage", "add", "eflb", 0.3 })
	inside := pipelineRun(t, c, 2, 2, data)
	out := filepath.Join(t.TempDir(), "run")
	cmd := mpitest.Mpirun(t, 4, siafu, "train", data, "--pipeline", "2,2", "--batch", c.Batch, "--pipeline",
		"microbatches=4,redundancy=eflb", "--model", "sage", "--residual", "add",
		"--layers", "5", "--hidden", "8", "--dropout", "0.3", "--input-dropout", "0.3", "--lr", "0.01", "--epochs", "3", "--defaults",
		"fixed", "--out", out, "--quiet")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	outside := readRun(t, out)
	if !bytes.Equal(outside.model, inside.model) {
		t.Error("model.safetensors differs between processes and goroutines")
	}
	sameLosses(t, "mpirun", outside.losses(), inside.losses(), 0)
}
