package ranks

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siafu/internal/testkit/worldtest/slow"
	"siafu/kernels"
)

// What a measured link has decided is printed and stored as a flag. An attempt in the same run folder takes it
// over, also before the first checkpoint and over another link, and leaves the same bytes as a run with the
// flag.
func TestEarlierDecisionsAreTakenOver(t *testing.T) {
	t.Parallel()
	data := wide(t)
	c := quick(t)
	c.Ranks, c.Servers, c.Epochs, c.EvalEvery, c.InputDropout, c.Partitioner, c.Hidden = 3, 0, 3, 0, 0, "hash", 8
	first := trainOver(t, slow.NewNetwork(1e6, 20*time.Microsecond), c, data)
	ghosts := first.Summary.Decided["recompute-ghosts"]
	log, err := os.ReadFile(first.Log)
	if err != nil || ghosts == "" || !strings.Contains(string(log), "--cache-input on --recompute-ghosts "+ghosts+";") {
		t.Fatalf("%v %v %s", err, first.Summary.Decided, log)
	}
	other := map[string]string{"none": "layers:1"}[ghosts]
	if other == "" {
		other = "none"
	}
	config, err := os.ReadFile(filepath.Join(c.Out, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, take := range []string{ghosts, other} { // the second is not what this machine decides
		text := bytes.Replace(config, []byte(`"`+ghosts+`"`), []byte(`"`+take+`"`), 1)
		if err := os.WriteFile(filepath.Join(c.Out, "config.toml"), text, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, lost := range []string{"checkpoints", "summary.json"} {
			if err := os.RemoveAll(filepath.Join(c.Out, lost)); err != nil {
				t.Fatal(err)
			}
		}
		again, named := c, c
		again.Resume = "auto"
		got := trainOver(t, slow.NewNetwork(0, 20*time.Microsecond), again, data)
		named.Out, named.RecomputeGhosts, named.CacheInput = c.Out+take, take, "on"
		want := trainOver(t, slow.NewNetwork(0, 20*time.Microsecond), named, data)
		if !bytes.Equal(got.model, want.model) || got.Summary.Decided["recompute-ghosts"] != take {
			t.Errorf("with %s earlier, the attempt has decided %v; equal models %t", take, got.Summary.Decided,
				bytes.Equal(got.model, want.model))
		}
	}
}

// A resumed run continues with the codec that --codec auto has settled on.
func TestSettledCodecIsTakenOver(t *testing.T) {
	t.Parallel()
	data := wide(t)
	c := quick(t)
	c.Codec, c.Ranks, c.Servers, c.Hidden, c.EvalEvery, c.Epochs, c.CheckpointEvery = "auto:bf16", 2, 0, 32, 0, 12, "12e"
	c.RecomputeGhosts = "none"
	first := trainOver(t, slow.NewNetwork(4e6, 50*time.Microsecond), c, data)
	c.Resume, c.Epochs = "auto", 15
	resumed := trainOver(t, slow.NewNetwork(4e6, 50*time.Microsecond), c, data)
	for _, e := range resumed.Epochs[12:] {
		if e.Codec != first.Summary.Chosen {
			t.Errorf("epoch %d has the codec %s, the run had settled on %s", e.Epoch, e.Codec, first.Summary.Chosen)
		}
	}
}

// A run resumes with other kernels, and logs both names. All variants but OpenBLAS give the same bits.
func TestResumedWithOtherKernels(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	whole := train(t, saving(t, "off"), data)
	if whole.Summary.Kernel != kernels.Best() {
		t.Errorf("kernel %q in summary.json", whole.Summary.Kernel)
	}
	c := saving(t, "2e")
	epochs := c.Epochs
	c.Kernel, c.Epochs = "go", epochs/2
	train(t, c, data)
	c.Kernel, c.Epochs, c.Resume = "auto", epochs, "auto"
	resumed := train(t, c, data)
	if !bytes.Equal(resumed.model, whole.model) {
		t.Error("other bits after a change of the kernels")
	}
	log, err := os.ReadFile(resumed.Log)
	if says := "kernel now=" + kernels.Best() + " before=go"; err != nil || kernels.Best() != "go" && !strings.Contains(string(log), says) {
		t.Errorf("%v: not %q in %s", err, says, log)
	}
}

// --repeat takes the decisions of a run in each epoch: over another link, the same bytes.
func TestRepeat(t *testing.T) {
	t.Parallel()
	data := wide(t)
	for name, set := range map[string]func(*Config){
		"codec":   func(c *Config) { c.Codec, c.RecomputeGhosts = "auto", "none" },
		"refresh": func(c *Config) { c.Refresh, c.InputDropout, c.Delay = "auto", 0.2, "*:6ms:1" },
		"ghosts":  func(c *Config) { c.InputDropout = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Ranks, c.Servers, c.Hidden, c.EvalEvery, c.Epochs = 2, 0, 32, 1, 16
			set(&c)
			first := trainOver(t, slow.NewNetwork(4e6, 50*time.Microsecond), c, data)
			c.Repeat, c.Out, c.Delay = first.Dir, c.Out+"-again", ""
			again := trainOver(t, slow.NewNetwork(0, 50*time.Microsecond), c, data)
			for k, e := range again.Epochs {
				if was := first.Epochs[k]; e.Codec != was.Codec || e.Refresh != was.Refresh {
					t.Errorf("epoch %d has %q %q, was %q %q", e.Epoch, e.Codec, e.Refresh, was.Codec, was.Refresh)
				}
			}
			if !bytes.Equal(again.model, first.model) {
				t.Error("other bytes")
			}
		})
	}
}
