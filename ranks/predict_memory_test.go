package ranks

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph/generate"
	"siafu/graph/partition"
	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/safetensors"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels/model"
	"siafu/ranks/engine"
	"siafu/ranks/forecast"
	"siafu/ranks/world"
)

// The estimate of a prediction's arrays is exact.
func TestPredictionIsForeseen(t *testing.T) {
	t.Parallel()
	data := planted(t, generate.Options{Vertices: 2100, Edges: 9000})
	for name, set := range hosttest.Share(t, 2, map[string]func(*Config){
		"gcn": func(c *Config) {},
		"gat": func(c *Config) { c.Model, c.Heads, c.OutputHeads, c.Hidden = "gat", 2, 3, 4 },
	}) {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Hidden = 40
			set(&c)
			p := PredictConfig{Weights: weights(t, c, data)}
			err := launch(2, world.Limits{}, IO{Out: io.Discard, Err: os.Stderr}, func(w world.Comm, kind string) error {
				var c Config
				c.Mode, c.Codec, c.Kernel = "pipe", "none", "auto"
				member := newMember(c, data, world.View{}, w, kind, IO{})
				defer member.close()
				r, err := member.openModel(p, memoryGate{"predict", false, os.Stderr})
				if err != nil {
					return err
				}
				ready, err := r.startEngine("")
				if err != nil {
					return err
				}
				if _, err := ready.engine.Infer(r.weights); err != nil {
					return err
				}
				f, err := forecast.OfPrediction(r.cfg, r.net, r.meta, r.Graph)
				want := f.GraphRank(r.rank, partition.CountShard(r.shard)).Of(forecast.Array)
				if d := r.arena.Used() - want; d < -1024 || d > 1024 {
					t.Errorf("rank %d made arrays of %d bytes, estimated were %d", r.rank, r.arena.Used(), want)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A network with weights that fit and activations that do not is refused before allocation.
func TestPredictionThatDoesNotFit(t *testing.T) {
	t.Parallel()
	const vertices = 60000
	there := host.AvailableMemory()
	if there == host.Unlimited {
		t.Skip("this system does not say what memory it has")
	}
	hidden := int(there/vertices) + 1 // one matrix with a row per vertex is four times the available memory: other programs may end
	net := model.Spec{Kind: "gcn", Dims: []int{12, hidden, 4}}
	file, dims := filepath.Join(t.TempDir(), "m.safetensors"), fmt.Sprintf("[12,%d,4]", hidden)
	if err := safetensors.Write(file, engine.Tensors(net, make([]float32, net.NumWeights())),
		map[string]string{"model": "gcn", "dims": dims}); err != nil {
		t.Fatal(err)
	}
	data := planted(t, generate.Options{Vertices: vertices, Edges: vertices})
	p := PredictConfig{Ranks: 2, Weights: file, Out: filepath.Join(t.TempDir(), "p"), StallWarn: "1m", StallAbort: "1m"}
	err := Predict(context.Background(), p, t.TempDir(), data, IO{Out: io.Discard, Err: os.Stderr})
	if fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "predict anyway with --force-memory") {
		t.Errorf("%v", err)
	}
}
