package ranks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/ranks/config"
)

// Every pair of values of two flags that promise equal losses or equal bits keeps its promise beside
// further values. Losses are compared with plain training on one rank. A run with flags that
// promise equal bits has the bytes of the run without these flags. A pair that is refused is skipped.
// Another order of sums changes losses by about 1e-7 per step: 1e-4 allows four epochs. Rows in bfloat16
// differ by 2⁻⁸ where an ulp of float32 moves a number to the next bfloat16.
func TestPairsOfFeatures(t *testing.T) {
	t.Parallel()
	seed, all := hosttest.Turn(t, pairsSampled), features()
	stage, k := newPairStage(t), 0
	for i, a := range all {
		for _, b := range all[i+1:] {
			if k++; a.flag != b.flag && hosttest.Sampled(pairsSampled, k, seed) {
				stage.compare(t, withOthers(t, all, a, b, k))
			}
		}
	}
	t.Logf("%d pairs are compared, of which %d diverge, and %d are refused", stage.compared, stage.diverged, stage.refused)
	if stage.compared <= stage.refused {
		t.Error("most pairs are refused")
	}
}

// pairsSampled is the number of commits that test all pairs.
const pairsSampled = 135

// othersTried is the number of values beside a pair, without those that the pair excludes.
const othersTried = 9

// withOthers returns a pair of features, and others that follow from its number. Most of them are
// options that do not exclude each other.
func withOthers(t *testing.T, all []feature, a, b feature, number int) []feature {
	byFlag := map[string][]feature{}
	for _, f := range all {
		byFlag[f.flag] = append(byFlag[f.flag], f)
	}
	rng, names, list := rand.New(rand.NewPCG(uint64(number), 1)), slices.Sorted(maps.Keys(byFlag)), []feature{a, b}
	for range othersTried {
		values := byFlag[names[rng.IntN(len(names))]]
		more := append(slices.Clone(list), values[rng.IntN(len(values))])
		if c := merged(more).config(t, ""); c.Validate() == nil {
			list = more
		}
	}
	return list
}

// pairStage has the datasets and the earlier runs of a test of pairs.
type pairStage struct {
	dir                         string // of the current run
	datasets                    map[string]func() string
	runs                        map[string]*trained // by flags; nil: refused
	compared, refused, diverged int
}

func newPairStage(t *testing.T) *pairStage {
	once := func(data func() string) func() string { return sync.OnceValue(data) }
	of := func(task string) func() string {
		return once(func() string { data, _ := taskGraph(t, task); return data })
	}
	return &pairStage{dir: t.TempDir(), runs: map[string]*trained{}, datasets: map[string]func() string{
		"": once(func() string { return generated(t, false) }), "directed": once(func() string { return generated(t, true) }),
		"sparse": once(func() string { return bag(t) }), "weighted": once(func() string { return weightedGraph(t, false) }),
		graph.MultiLabel: of(graph.MultiLabel), graph.Regression: of(graph.Regression),
		graph.Links:  once(func() string { return linked(t, false) }),
		"relational": once(func() string { return write(t, relatedGraph(5, true, 7)) }),
	}}
}

// compare trains with features, without the last ones if siafu refuses them.
func (s *pairStage) compare(t *testing.T, list []feature) {
	for n := len(list); n >= 2; n-- {
		flags := merged(list[:n])
		got := s.train(t, flags)
		if got == nil {
			continue
		}
		s.compared++
		tolerance := 1e-4
		if flags["gather"] == "bf16" || flags["features"] == "bf16" || flags["products"] == "bf16" || flags["precision"] == "mixed" {
			tolerance = 1e-2
		}
		plain := flags.only(isTrained)
		plain["ranks"] = "1"
		if flags["features"] == "bf16" && flags["cache-input"] == "on" { // the rounded ÂX is part of what is trained
			plain["features"], plain["cache-input"] = "bf16", "on"
		}
		if want := s.train(t, plain); want == nil {
			t.Errorf("siafu train %v: plain training is refused", flags)
		} else if diverges(want.losses()) {
			s.diverged++ // the differences of rounding grow without bound
		} else if why := differs(got.losses(), want.losses(), tolerance); why != "" {
			t.Errorf("siafu train %v: losses are not those of one rank: %s", flags, why)
		}
		same := flags.only(sameLoss)
		if parts := flags["parts"]; parts != "" {
			same["ranks"] = fmt.Sprint(number(parts) + number(flags["servers"]))
		}
		if want := s.train(t, same); want == nil || !bytes.Equal(got.model, want.model) {
			t.Errorf("siafu train %v: the model does not have the bytes of %v", flags, same)
		}
		return
	}
	s.refused++
}

// diverges reports whether training ends far above its first loss.
func diverges(losses []float64) bool {
	return !(losses[len(losses)-1] <= 10*losses[0])
}

// flags are settings by flag.
type flags map[string]string

// usual are the settings of all runs of a pair, unless its features set others. What a run would decide by
// costs is fixed.
var usual = flags{
	"layers": "3", "hidden": "8", "epochs": "4", "ranks": "2", "servers": "0", "threads": "2", "intervals": "3",
	"partitioner": "hash", "dropout": "0.3",
	"recompute-ghosts": "none", "cache-input": "off", "pre-aggregate": "off", "checkpoint-every": "off", "lr": "0.001",
}

// merged returns the settings of features. The flags of earlier ones take precedence over those of
// later ones, and over flags that a value only needs.
func merged(list []feature) flags {
	all := flags{}
	for _, main := range []bool{true, false} {
		for _, f := range list {
			for k, setting := range f.settings {
				flag, value, _ := strings.Cut(setting, "=")
				if _, set := all[flag]; !set && main == (k == 0) {
					all[flag] = value
				}
			}
		}
	}
	return all
}

// only returns the settings that promise at most p.
func (f flags) only(p promise) flags {
	some := maps.Clone(f)
	maps.DeleteFunc(some, func(flag, _ string) bool { return flagDecisions[flag].promise > p })
	return some
}

func (f flags) String() string {
	var list []string
	for _, flag := range slices.Sorted(maps.Keys(f)) {
		list = append(list, "--"+flag+" "+f[flag])
	}
	return strings.Join(list, " ")
}

func number(text string) (n int) {
	fmt.Sscan(text, &n)
	return n
}

// config returns the configuration with flags, for a run in dir.
func (f flags) config(t *testing.T, dir string) Config {
	c := config.Defaults()
	c.Quiet, c.Force, c.Out = true, true, filepath.Join(dir, "run")
	for _, settings := range []flags{usual, f} {
		for flag, value := range settings {
			if value == "DIR" {
				value = dir
			}
			if flag != "data" {
				set(t, &c, flag, value)
			}
		}
	}
	return c
}

// train returns the run with flags, nil if siafu refuses them. A run with checkpoints stops in the middle
// and is resumed.
func (s *pairStage) train(t *testing.T, f flags) *trained {
	t.Helper()
	if r, known := s.runs[f.String()]; known {
		return r
	}
	c := f.config(t, s.dir)
	defer os.RemoveAll(c.Out)
	data, stops := s.datasets[f["data"]](), f["checkpoint-every"] != ""
	if stops {
		c.Epochs = 2
	}
	run := func() error { return Train(context.Background(), c, data, IO{Out: io.Discard, Err: io.Discard}) }
	err := run()
	if err == nil && stops {
		c.Epochs, c.Resume = 4, "auto"
		err = run()
	}
	var got *trained
	switch kind := fault.KindOf(err); {
	case err == nil:
		r := readRun(t, c.Out)
		got = &r
	case kind != fault.Usage && kind != fault.Config:
		t.Errorf("siafu train %v: %v", f, err)
	}
	s.runs[f.String()] = got
	return got
}
