package ranks

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siafu/graph/generate"
	"siafu/ranks/inproc"
	"siafu/ranks/world"
	"siafu/ranks/world/slow"
)

// trainOver trains with each rank on a host of its own of a network.
func trainOver(t testing.TB, n *slow.Network, c Config, data string) trained {
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
		c := c
		return trainRank(c, data, s, "in-process", world.Limits{}, IO{Out: io.Discard, Err: os.Stderr})
	})
	if err != nil {
		t.Fatal(err)
	}
	return readRun(t, c.Out)
}

// wide is a graph whose rows take long to send.
func wide(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wide")
	_, err := generate.Write(dir, generate.Options{Vertices: 2000, Edges: 40000, Features: 16, Classes: 4, Seed: 5}, false)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Over a slow link few bits are chosen, if that is allowed, and over one that is
// faster than any work nothing is lost.
func TestAutoCodec(t *testing.T) {
	data := wide(t)
	for _, k := range []struct {
		codec string
		rate  float64
		want  string // the choice begins with one of these
	}{
		{"auto", 4e6, "int4 adaptive"},
		{"auto:bf16", 4e6, "bf16"},
		{"auto", 0, "none"},
	} {
		t.Run(fmt.Sprintf("%s at %g", k.codec, k.rate), func(t *testing.T) {
			c := quick(t)
			c.Codec, c.Ranks, c.Servers, c.Hidden, c.EvalEvery, c.Epochs = k.codec, 2, 0, 64, 0, 50
			r := trainOver(t, slow.NewNetwork(k.rate, 50*time.Microsecond), c, data)
			b, _ := os.ReadFile(filepath.Join(c.Out, "log.txt"))
			t.Log(string(b), r.Summary.Chosen)
			for _, want := range strings.Fields(k.want) {
				if strings.HasPrefix(r.Summary.Chosen, want) {
					return
				}
			}
			t.Errorf("%s was chosen", r.Summary.Chosen)
		})
	}
}
