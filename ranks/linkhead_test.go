package ranks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/internal/fault"
	"siafu/internal/signals"
	"siafu/ranks/checkpoint"
	"siafu/ranks/engine"
	"siafu/ranks/forecast"
	"siafu/ranks/predictions"
)

// A run for links that is resumed after its end or a stop ends with the bits of one that never
// stopped, including each epoch's random samples: pairs, and the perceptron's dropout.
func TestLinksResumed(t *testing.T) {
	keep := signals.Watch(signals.Options{}) // no signal may kill the tests between two runs
	defer keep.Close()
	data := linked(t, false)
	for _, score := range []string{"dot", "mlp"} {
		t.Run(score, func(t *testing.T) {
			c := saving(t, "2e")
			c.Epochs, c.Ranks, c.Servers, c.LinkScore, c.LinkDropout, c.LinkHidden = 5, 2, 0, score, 0.3, 9
			train(t, c, data)
			c.Epochs, c.Resume = 4000, "auto" // more than are trained before the signal
			if err := stopAt(t, c, data, syscall.SIGTERM, 8); fault.KindOf(err) != fault.Stopped {
				t.Fatalf("a stopped run says %v", err)
			}
			state, _, err := checkpoint.Latest(filepath.Join(c.Out, checkpoint.Dir))
			if err != nil || state == nil {
				t.Fatalf("%+v %v", state, err)
			}
			c.Epochs = state.Epoch + 4
			train(t, c, data)
			undisturbed := c
			undisturbed.Resume, undisturbed.CheckpointEvery, undisturbed.Out = "", "off", c.Out+"-undisturbed"
			want := train(t, undisturbed, data)
			got := readRun(t, c.Out)
			sameLosses(t, score, got.losses(), want.losses(), 0)
			if !bytes.Equal(got.model, want.model) || !reflect.DeepEqual(got.Summary.Metrics, want.Summary.Metrics) {
				t.Error("models or metrics differ")
			}
			if score == "mlp" {
				c.LinkDropout, c.Epochs = 0.4, c.Epochs+1
				if err := Train(context.Background(), c, data,
					IO{Out: io.Discard, Err: io.Discard}); !strings.Contains(fmt.Sprint(err), "link-dropout") {
					t.Errorf("with other dropout it says %v", err)
				}
			}
		})
	}
}

// Exported networks for links make siafu's embeddings in PyTorch, and score pairs as siafu
// does, by products and by a perceptron.
func TestPyTorchScoresPairs(t *testing.T) {
	t.Parallel()
	python, data := withPyTorch(t), linked(t, true)
	file := filepath.Join(t.TempDir(), "pairs.csv")
	text := "src,dst\n"
	for v := range 300 {
		text += fmt.Sprintf("%d,%d\n", v, (7*v+5)%400)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, score := range []string{"dot", "mlp"} {
		c := quick(t)
		c.Epochs, c.LinkScore, c.LinkHidden, c.Initializer = 6, score, 7, "torch"
		train(t, c, data)
		p := PredictConfig{Tensor: "cpu", StallWarn: "1m", StallAbort: "1m", Pairs: file}
		if err := Predict(context.Background(), p, c.Out, data, IO{Out: io.Discard, Err: io.Discard}); err != nil {
			t.Fatal(err)
		}
		if err := Export(ExportOptions{Run: c.Out, PyTorch: true}, io.Discard); err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(c.Out, "predictions")
		args := []string{filepath.Join(c.Out, "model.py"), data, filepath.Join(at, predictions.EmbeddingFile),
			filepath.Join(at, predictions.PairsFile)}
		if out, err := exec.Command(python, args...).CombinedOutput(); err != nil || !strings.Contains(string(out), "largest_score=") {
			t.Errorf("%s: %v:\n%s", score, err, out)
		}
	}
}

// A forecast includes a rank's memory for the perceptron and its dropout, and none for dot
// products.
func TestHeadIsEstimated(t *testing.T) {
	t.Parallel()
	data := linked(t, false)
	meta, err := graph.ReadMeta(data)
	if err != nil {
		t.Fatal(err)
	}
	c := quick(t)
	c.Ranks, c.Servers, c.LinkHidden, c.LinkDropout = 1, 0, 9, 0.3
	of := func(score, term string) int64 {
		c.LinkScore = score
		f, _, err := forecast.Of(c, meta, 1, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		own, err := partition.Find(parted(t, data), 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range f.GraphRank(0, own.Report.Ranks[0]) {
			if x.Name == term {
				return x.Bytes
			}
		}
		return 0
	}
	// terms are whole lines of a cache
	if got, want := of("mlp", "perceptron of pairs"), 4*engine.HeadFloats(c.NetworkOf(meta)); got < want || got >= want+64 || want == 0 {
		t.Errorf("the perceptron is estimated to take %d bytes, want %d", got, want)
	}
	if of("mlp", "ids of pairs") == 0 || of("dot", "perceptron of pairs") != 0 || of("dot", "ids of pairs") != 0 {
		t.Error("ids of pairs are estimated where nothing is dropped, or not where something is")
	}
}
