package tune

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// cluster is two hosts as they are, which a chooser learns of by its measures.
type cluster struct {
	rate, compute, hidden float64
	blind                 float64 // the link is measured that much too fast
	noise                 float64 // largest share by which epochs are longer, every third one
	rng                   *rand.Rand
}

// sizes and work of candidates, as docs/halo.md has them: bytes for a byte, and
// seconds a GB to encode and to decode.
var kinds = map[string]struct{ size, encode, decode float64 }{
	"none": {1, 0.05, 0.05}, "s2": {0.56, 2.9, 1.5}, "zstd": {0.38, 6.2, 1.7},
	"bf16": {0.5, 0.055, 0.055}, "bf16+s2": {0.24, 1.3, 0.62}, "int8": {0.26, 0.15, 0.05},
	"int8+s2": {0.16, 0.77, 0.27}, "adaptive": {0.133, 0.19, 0.055}, "adaptive+s2": {0.12, 0.5, 0.15},
	"int4": {0.133, 0.15, 0.045}, "int4+s2": {0.103, 0.43, 0.12}, "int4+zstd": {0.065, 1.1, 0.2},
}

func (c *cluster) costs(names []string) [][]Cost {
	var list [][]Cost
	for _, n := range names {
		k := kinds[n]
		list = append(list, []Cost{{k.encode / 1e9, k.decode / 1e9, k.size}, {k.encode / 1e9, k.decode / 1e9, k.size}})
	}
	return list
}

// traffic is 25 MB in each direction, forward and backward.
var traffic = Traffic{
	Hosts: []string{"a", "b"}, Rows: []int64{0, 50_000, 50_000, 0},
	Exchanges: []Exchange{{125, false}, {125, true}},
}

// seconds is what an epoch really takes.
func (c *cluster) seconds(name string) float64 {
	m := NewModel(traffic, pairs(2, 1e-4, c.rate))
	return c.compute + m.Seconds(c.costs([]string{name})[0], []float64{c.hidden, c.hidden}, 1)
}

// epoch lets a chooser go through an epoch and returns what it says.
func (c *cluster) epoch(h *Chooser) string {
	gauging, s := h.Gauging(), c.seconds(h.Codec())
	if c.rng != nil && c.rng.IntN(3) == 0 {
		s *= 1 + c.noise*c.rng.Float64()
	}
	report, due := h.Epoch(s)
	if !due {
		return ""
	}
	if gauging {
		h.Gauge(pairs(2, 1e-4, c.rate*max(c.blind, 1)), c.costs(h.names))
	}
	return h.Agreed(report, []float64{c.hidden, c.hidden})
}

// run goes through so many epochs.
func (c *cluster) run(h *Chooser, epochs int) (said []string, used []string) {
	for range epochs {
		used = append(used, h.Codec())
		if s := c.epoch(h); s != "" {
			said = append(said, s)
		}
	}
	return said, used
}

func chooser(t testing.TB, name string, epochs int) *Chooser {
	t.Helper()
	names, err := Candidates(name)
	if err != nil {
		t.Fatal(err)
	}
	return NewChooser(names, traffic, 1, epochs)
}

// fastest is what a perfect choice takes.
func (c *cluster) fastest(names []string) float64 {
	var all []float64
	for _, n := range names {
		all = append(all, c.seconds(n))
	}
	return slices.Min(all)
}

// Whatever the link, the work and what the work hides, the choice is within 5 %
// of the best one where the measures are right. Where links are half as fast as
// they were measured it is within a tenth.
func TestWithinFivePercent(t *testing.T) {
	for _, name := range []string{"auto", "auto:int8", "auto:lossless"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := cluster{
					rate:    rapid.SampledFrom([]float64{5e6, 25e6, 125e6, 300e6, 1250e6, 1e10}).Draw(t, "rate"),
					compute: rapid.Float64Range(0, 2).Draw(t, "compute"),
					blind:   rapid.SampledFrom([]float64{1, 2}).Draw(t, "blind"),
				}
				c.hidden = c.compute * rapid.Float64Range(0, 0.4).Draw(t, "hidden share") // of each exchange
				names, _ := Candidates(name)
				h := NewChooser(names, traffic, 1, 100)
				c.run(h, 100)
				limit := alike + 1e-9
				if c.blind > 1 {
					limit = 1.1
				}
				if got, best := c.seconds(h.Codec()), c.fastest(names); got > limit*best {
					t.Fatalf("%s takes %.4f s where %.4f is possible", h.Codec(), got, best)
				}
			})
		})
	}
}

// The links of three clusters: a choice at each, by predictions alone where the
// run is short, and the same one with noise.
func TestChoices(t *testing.T) {
	for _, k := range []struct {
		name   string
		c      cluster
		codec  string
		epochs int
		want   string // one of these
		tried  bool
	}{
		{"200 Mbit/s", cluster{rate: 25e6, compute: 0.3}, "auto", 100, "int4+zstd", true},
		{"200 Mbit/s, 5 epochs", cluster{rate: 25e6, compute: 0.3}, "auto", 5, "int4+s2", false},
		{"200 Mbit/s, no loss", cluster{rate: 25e6, compute: 0.3}, "auto:lossless", 100, "zstd", true},
		{"200 Mbit/s, little loss", cluster{rate: 25e6, compute: 0.3}, "auto:bf16", 100, "bf16+s2", true},
		{"1 Gbit/s", cluster{rate: 125e6, compute: 0.3}, "auto", 100, "adaptive int8+s2", true},
		{"1 Gbit/s with noise", cluster{rate: 125e6, compute: 0.3, noise: 1}, "auto", 100, "adaptive int8 int8+s2", true},
		{"1 Gbit/s, hidden", cluster{rate: 125e6, compute: 1.2, hidden: 0.5}, "auto", 100, "none", false},
		{"10 Gbit/s and much work", cluster{rate: 1250e6, compute: 3}, "auto", 100, "none", false},
		{"memory", cluster{rate: 1e10, compute: 0.3}, "auto", 100, "none", false},
	} {
		t.Run(k.name, func(t *testing.T) {
			if k.c.noise > 0 {
				k.c.rng = rand.New(rand.NewPCG(1, 1))
			}
			h := chooser(t, k.codec, k.epochs)
			said, used := k.c.run(h, k.epochs)
			if !slices.Contains(strings.Fields(k.want), h.Codec()) {
				t.Errorf("%s after %v", h.Codec(), said)
			}
			lines := 1
			if k.tried {
				lines = 2
			}
			if len(said) != lines || !strings.HasSuffix(said[lines-1], "-> "+h.Codec()) {
				t.Errorf("it says %q", said)
			}
			if used[0] != "none" {
				t.Errorf("it begins with %s", used[0])
			}
		})
	}
}

// A trial gives each contender as many epochs, in turns, and no more than a
// quarter of what is left.
func TestTurns(t *testing.T) {
	for _, epochs := range []int{12, 20, 30, 40, 100} {
		c := cluster{rate: 25e6, compute: 0.3}
		h := chooser(t, "auto", epochs)
		_, used := c.run(h, epochs)
		counts := map[string]int{}
		tried := 0
		for i := 2; i < epochs && h.trial.rounds > 0 && i < 2+h.trial.rounds*mostContenders; i++ {
			counts[used[i]]++
			tried++
			if i > 2 && used[i] == used[i-1] {
				t.Errorf("%d epochs: %s runs twice in a row", epochs, used[i])
			}
		}
		if 4*tried > epochs-2 {
			t.Errorf("%d of %d epochs are trials", tried, epochs)
		}
		for name, n := range counts {
			if n != h.trial.rounds {
				t.Errorf("%d epochs: %s has %d of %d", epochs, name, n, h.trial.rounds)
			}
		}
		if epochs == 100 && (h.trial.rounds != mostRounds || len(counts) != mostContenders) {
			t.Errorf("in 100 epochs %d contenders are tried %d times", len(counts), h.trial.rounds)
		}
	}
}

// A link that gets slower is noticed, and so is one that gets faster; the first
// time after ten epochs, then after twenty, and so on. What changes less is not.
func TestLinkChanges(t *testing.T) {
	c := cluster{rate: 1e10, compute: 0.2}
	h := chooser(t, "auto", 1000)
	c.run(h, 100)
	if h.Codec() != "none" {
		t.Fatalf("%s over a fast link", h.Codec())
	}
	for _, compute := range []float64{0.25, 0.1, 0.14} {
		c.compute = compute
		if said, _ := c.run(h, 50); len(said) > 0 {
			t.Fatalf("for nothing: %q", said)
		}
	}
	c.compute, c.rate = 0.2, 25e6
	said, used := c.run(h, 10+8+2+9)
	if len(said) != 3 || !strings.Contains(said[0], "measuring again") || h.Codec() != "int4+zstd" {
		t.Fatalf("%s, it says %q", h.Codec(), said)
	}
	if i := slices.IndexFunc(used, func(s string) bool { return s != "none" }); i > 20+1 {
		t.Errorf("it takes %d epochs to notice", i)
	}
	c.rate = 2e6 // after twenty epochs
	if said, _ := c.run(h, 40+2+9); len(said) != 3 || h.Codec() != "int4+zstd" {
		t.Errorf("%s over a still slower link: %q", h.Codec(), said)
	}
	c.rate = 1e10 // after forty
	if said, _ := c.run(h, 80+2); len(said) != 2 || h.Codec() != "none" {
		t.Errorf("%s over a fast link again: %q", h.Codec(), said)
	}
}

// A link that was measured far too fast is found out by what epochs take.
func TestDeceivingLink(t *testing.T) {
	c := cluster{rate: 25e6, compute: 1, hidden: 0.4, blind: 20}
	h := chooser(t, "auto", 200)
	said, used := c.run(h, 50)
	if used[12] != "none" || !strings.Contains(strings.Join(said, "\n"), "measuring again") {
		t.Errorf("it says %q", said)
	}
	if got, best := c.seconds(h.Codec()), c.fastest(h.names); got > 1.1*best {
		t.Errorf("%s takes %.4f s where %.4f is possible; it says %q", h.Codec(), got, best, said)
	}
}

// Names and what they allow.
func TestCandidates(t *testing.T) {
	for name, want := range map[string]string{
		"auto":          "none s2 zstd bf16 bf16+s2 int8 int8+s2 adaptive adaptive+s2 int4 int4+s2 int4+zstd",
		"auto:int4":     "none s2 zstd bf16 bf16+s2 int8 int8+s2 adaptive adaptive+s2 int4 int4+s2 int4+zstd",
		"auto:int8":     "none s2 zstd bf16 bf16+s2 int8 int8+s2",
		"auto:bf16":     "none s2 zstd bf16 bf16+s2",
		"auto:lossless": "none s2 zstd",
		"int8":          "",
		"none":          "",
	} {
		if got, err := Candidates(name); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"auto:", "auto:none", "auto:int2", "auto:int8+s2"} {
		if got, err := Candidates(name); err == nil {
			t.Errorf("%s gives %v", name, got)
		}
	}
}
