package ranks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siafu/graph/generate"
	"siafu/internal/mapped"
	"siafu/internal/testkit/worldtest/slow"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// trainOver trains with each rank on its own host of a network. Each of place changes the members first.
func trainOver(t testing.TB, n *slow.Network, c Config, data string, place ...func(*member)) trained {
	t.Helper()
	hosts := make([]string, c.Ranks)
	for r := range hosts {
		hosts[r] = fmt.Sprintf("host%d", r)
	}
	err := inproc.Run(c.Ranks, func(w world.Comm) error {
		s, err := n.Comm(w, hosts)
		if err != nil {
			return err
		}
		return trainMember(c, data, world.View{}, s, "in-process", place...)
	})
	if err != nil {
		t.Fatal(err)
	}
	return readRun(t, c.Out)
}

// wide returns a graph with long rows.
func wide(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wide")
	_, err := generate.Write(dir, generate.Options{Vertices: 2000, Edges: 40000, Features: 16, Classes: 4, Seed: 5}, false)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Over a slow link a codec with few bits is chosen, if allowed. The run reports the codec of
// each epoch. Over a fast link, epochs of a few milliseconds are compared, which other
// programs can delay several times: package tune tests that choice with simulated time. Over
// the slow link a wrong choice fails the test only if three runs make it.
func TestAutomaticCodec(t *testing.T) {
	t.Parallel()
	if mapped.UnderRace {
		t.Skip("under the race detector a codec takes longer than the link that it would save")
	}
	data := wide(t)
	for _, k := range []struct {
		codec, mode string
		rate        float64
		epochs      int
		want        string // the choice begins with one of these
	}{
		{"auto", "pipe", 4e6, 50, "int4 adaptive"},
		{"auto", "nopipe", 4e6, 5, "int4 adaptive"},
		{"auto:bf16", "pipe", 4e6, 50, "bf16"},
		{"auto", "pipe", 0, 50, "none s2 zstd bf16 int8 int4 adaptive"},
		{"auto", "pipe", 4e6, 0, "none"},
	} {
		t.Run(fmt.Sprintf("%s %s %g %d", k.codec, k.mode, k.rate, k.epochs), func(t *testing.T) {
			c := quick(t)
			c.Codec, c.Mode, c.Ranks, c.Servers, c.Hidden, c.EvalEvery, c.Epochs = k.codec, k.mode, 2, 0, 64, 0, k.epochs
			c.RecomputeGhosts = "none" // rows of both layers
			var r trained
			for range 3 { // a machine that is busy for a part of a run measures again, be it in its last epoch
				r = trainOver(t, slow.NewNetwork(k.rate, 50*time.Microsecond), c, data)
				if n := len(r.Epochs); begins(r.Summary.Chosen, k.want) && (n == 0 || r.Epochs[n-1].Codec == r.Summary.Chosen) {
					break
				}
			}
			if !begins(r.Summary.Chosen, k.want) || r.Summary.Codec != k.codec {
				t.Errorf("%s: %s was chosen", r.Summary.Codec, r.Summary.Chosen)
			}
			said, err := os.ReadFile(filepath.Join(c.Out, "log.txt"))
			if err != nil {
				t.Fatal(err)
			}
			if decided := fmt.Sprintf(" -> %s\n", r.Summary.Chosen); k.epochs > 0 && !strings.Contains(string(said), decided) {
				t.Errorf("its log says\n%s", said)
			}
			for i, e := range r.Epochs {
				if last := i == len(r.Epochs)-1; i == 0 && e.Codec != "none" || last && e.Codec != r.Summary.Chosen {
					t.Errorf("epoch %d went through %q", e.Epoch, e.Codec)
				}
			}
		})
	}
}

func begins(s, words string) bool {
	for _, w := range strings.Fields(words) {
		if strings.HasPrefix(s, w) {
			return true
		}
	}
	return false
}

// Without exchanges there is no choice, and with a given codec none is reported.
func TestNothingToChoose(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	for _, k := range []struct {
		set  func(*Config)
		want string
	}{
		{func(c *Config) { c.Codec = "auto" }, "none"},
		{func(c *Config) { c.Codec, c.Ranks, c.Model = "auto", 3, "mlp" }, "none"},
		{func(c *Config) { c.Codec, c.Ranks = "int8", 3 }, ""},
	} {
		c := quick(t)
		c.Epochs = 3
		k.set(&c)
		if r := train(t, c, data); r.Summary.Chosen != k.want || r.Epochs[0].Codec != "" {
			t.Errorf("%s in %d ranks: %q, %q in the first epoch", c.Codec, c.Ranks, r.Summary.Chosen, r.Epochs[0].Codec)
		}
	}
}
