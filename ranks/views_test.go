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
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
	"siafu/ranks/inject"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
	"siafu/ranks/world/membership"
	"siafu/ranks/world/parts"
)

// trainThrough trains as trainSpread, in a run whose view may be replaced.
func trainThrough(t testing.TB, c Config, v world.View, data string) trained {
	t.Helper()
	err := inproc.Run(v.Started(), func(rank world.Comm) error {
		s := replaceableRun(c, data, os.Stderr)
		defer s.close()
		return parts.RunViews(rank, v, s, parts.Elasticity{LostAfter: time.Minute})
	})
	if err != nil {
		t.Fatal(err)
	}
	return readRun(t, c.Out)
}

// replaceableRun returns one rank of a run whose view may be replaced.
func replaceableRun(c Config, data string, warn io.Writer) *viewSequence {
	s := newViewSequence(c, data, world.Limits{}, nil, IO{Out: io.Discard, Err: warn})
	s.kind, s.replaceable = "in-process", true
	return s
}

// strikes injects a fault into a run.
func strikes(t testing.TB, fault string) {
	t.Helper()
	t.Setenv(inject.Variable, fault+":"+filepath.Join(t.TempDir(), "mark"))
}

// views returns the lines of a run's log on replaced views.
func (r trained) views(t testing.TB, dir string) []string {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(dir, "log.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, line := range strings.Split(string(log), "\n") {
		if strings.HasPrefix(line, "view ") {
			list = append(list, line)
		}
	}
	return list
}

// faults are the causes of moves, with the expected log lines: part 3 of rank 1 moves between
// epochs 3 and 4, and all parts of rank 1 when their goroutines are ended in the middle of
// epoch 5, forward and backward. A part that still waits for the weights of epoch 5 sets the
// others back to epoch 4.
var faults = []struct {
	fault, says string
	after       []int
}{
	{"3:GA:3:move", "view number=1 carriers=[0 0 1 2 2]", []int{3}},
	{"3:GA:5:end", "view number=1 carriers=[0 0 2 0 2]", []int{3, 4}},
	{"2:∇AV:5:end", "view number=1 carriers=[0 0 2 0 2]", []int{3, 4}},
}

// checkView fails unless the log says that one view was replaced because of the fault.
func checkView(t *testing.T, said []string, want string, after []int) {
	t.Helper()
	if len(said) == 1 {
		for _, epoch := range after {
			if said[0] == fmt.Sprintf("%s after_epoch=%d lost=0 joined=0", want, epoch) {
				return
			}
		}
	}
	t.Errorf("the log says %q, want %s after one of the epochs %v", said, want, after)
}

// A run with moved parts has the bytes and losses of one without: moved between two epochs,
// and in the middle of one after their goroutines were ended. Each network, codec and policy
// moves between epochs, and in the middle of one either forward or backward. The direction and the
// number of servers, which do not move, alternate; SIAFU_BIG=1 runs all with all.
func TestPartsMove(t *testing.T) {
	data := generated(t, true)
	moved := map[string]func(*Config){
		"gcn":               func(c *Config) {},
		"gat":               func(c *Config) { c.Model, c.Heads = "gat", 2 },
		"gcn, nopipe":       func(c *Config) { c.Mode = "nopipe" },
		"gat, nopipe":       func(c *Config) { c.Model, c.Heads, c.Mode = "gat", 2, "nopipe" },
		"int8":              func(c *Config) { c.Codec = "int8" },
		"int4":              func(c *Config) { c.Codec = "int4+zstd" },
		"feedback":          func(c *Config) { c.Codec = "int4+ef" },
		"previous":          func(c *Config) { c.Refresh = "previous:none" },
		"mini-batches":      func(c *Config) { c.Batch, c.InputDropout = "history:3", 0 },
		"predicted batches": func(c *Config) { c.Batch, c.InputDropout, c.Predict = "history:2", 0, "transfer" },
		"variates":          func(c *Config) { c.Batch, c.InputDropout, c.Layers = "variates:3,2", 0, 3 },
		"previous, ef":      func(c *Config) { c.Model, c.Refresh, c.Codec = "sage", "previous:none", "int4+ef" },
		"delay, ef":         func(c *Config) { c.Refresh, c.Codec = "delay:3", "int4+ef" },
		"smoothed":          func(c *Config) { c.Model, c.Refresh = "gat", "previous:GF0.5" },
		"drift":             func(c *Config) { c.Refresh, c.Dropout = "drift:0.02,3", 0 },
		"predicted": func(c *Config) {
			c.Refresh, c.Predict, c.Model, c.PredictHistory = "every:3,1", "transfer", "sage", "polyline:3"
		},
		"recurrent":     func(c *Config) { c.Refresh, c.Predict, c.PredictEvery = "every:3,1", "gru-gcn", 2 },
		"drifted":       func(c *Config) { c.Refresh, c.Predict, c.Dropout = "drift:0.02,3", "transfer", 0 },
		"never":         func(c *Config) { c.Refresh = "never" },
		"corrections":   func(c *Config) { c.LocalEpochs, c.Refresh, c.ServerCorrection = 3, "never", 2 },
		"kept, patient": func(c *Config) { c.InputDropout, c.CacheInput, c.Patience = 0, "on", 7 },
		"powers kept":   func(c *Config) { c.Model, c.InputDropout, c.CacheInput = "sign", 0, "on" },
	}
	for k, name := range slices.Sorted(maps.Keys(hosttest.Share(t, 5, moved))) {
		for servers := range 3 {
			if servers != k%3 && !hosttest.Big() {
				continue
			}
			c := eight(t, servers)
			c.Parts, c.Epochs, c.Quiet = 5, 8, false
			moved[name](&c)
			v := world.View{Parts: 5, Ranks: 3, Servers: servers}
			c.Ranks = v.Started()
			want := trainSpread(t, c, v, data)
			for i, f := range faults {
				if i > 0 && i != 1+k%2 && !hosttest.Big() {
					continue
				}
				if name == "powers kept" { // which gathers in no epoch
					f.fault = strings.Replace(f.fault, ":GA:", ":AV:", 1)
				}
				t.Run(fmt.Sprint(name, ", servers=", servers, ", ", f.fault), func(t *testing.T) {
					c := c
					c.Out = filepath.Join(t.TempDir(), "run")
					strikes(t, f.fault)
					got := trainThrough(t, c, v, data)
					sameLosses(t, "moved", got.losses(), want.losses(), 0)
					if !bytes.Equal(got.model, want.model) {
						t.Error("model.safetensors differs")
					}
					checkView(t, got.views(t, c.Out), f.says, f.after)
				})
			}
		}
	}
}

// Rank 0 and a server restart in place when their goroutines are ended. A run with all ranks
// in one process continues as any other.
func TestViewsOtherwise(t *testing.T) {
	data := generated(t, false)
	c := eight(t, 1)
	c.Parts, c.Ranks, c.Epochs, c.Quiet, c.CheckpointEvery = 5, 4, 6, false, "2e"
	v := world.View{Parts: 5, Ranks: 3, Servers: 1}
	want := trainSpread(t, c, v, data)
	const same = "view number=1 carriers=[0 0 1 1 2]"
	seed := hosttest.Turn(t, 2)
	for i, f := range []struct {
		fault, says string
		after       []int
	}{
		{"0:AV:4:end", same, []int{2, 3}},
		{"0:AV:3:move", same, []int{3}},
		{"5:gradient:4:end", same, []int{2, 3, 4}},
		{"4:AV:1:end", "view number=1 carriers=[0 0 1 1 0]", []int{0}},
		{"4:WU:4:end", "view number=1 carriers=[0 0 1 1 0]", []int{2, 3, 4}},
		{"0:save:4:end", same, []int{3}},
		{"4:eval:5:move", "view number=1 carriers=[0 0 1 1 0]", []int{5}},
		{"4:start:0:end", "view number=1 carriers=[0 0 1 1 0]", []int{0}},
		{"0:start:0:end", same, []int{0}},
		{"0:opened:0:end", same, []int{0}},
		{"4:AV:6:move", "", nil},
	} {
		train, where := train, "in process"
		if (i+seed)%2 > 0 {
			train = func(t testing.TB, c Config, data string) trained { return trainThrough(t, c, v, data) }
			where = "on ranks"
		}
		t.Run(f.fault+" "+where, func(t *testing.T) {
			c := c
			c.Out = filepath.Join(t.TempDir(), "run")
			strikes(t, f.fault)
			got := train(t, c, data)
			sameLosses(t, "moved", got.losses(), want.losses(), 0)
			if !bytes.Equal(got.model, want.model) {
				t.Error("model.safetensors differs")
			}
			if said := got.views(t, c.Out); f.after != nil || len(said) > 0 {
				checkView(t, said, f.says, f.after)
			}
		})
	}
}

// restless is an ElasticJob whose first views each end one member's rank at a random time.
type restless struct {
	*viewSequence
	victims []victim // by the number of the view
}

type victim struct {
	member int
	after  time.Duration
	next   func(world.View) world.View
}

// RunMember implements parts.ElasticJob.
func (r *restless) RunMember(w world.Comm, v world.View, copied func(membership.State)) error {
	if v.Number < len(r.victims) && r.victims[v.Number].member == w.Rank() {
		victim := r.victims[v.Number]
		end := time.AfterFunc(victim.after, func() {
			r.requestView(victim.next(v))
			parts.End(w)
		})
		defer end.Stop()
	}
	return r.viewSequence.RunMember(w, v, copied)
}

// A run leaves the same bytes whenever and however often members are ended: while it opens,
// trains, evaluates, saves or resumes.
func TestEndedAtAnyTime(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	c := eight(t, 1)
	c.Model, c.Parts, c.Ranks, c.Epochs, c.Refresh, c.Codec, c.Quiet, c.CheckpointEvery = "sage", 5, 4, 60,
		"previous:none", "int4+ef", false, "3e"
	v := world.View{Parts: 5, Ranks: 3, Servers: 1}
	want := trainSpread(t, c, v, data)
	rng := rand.New(rand.NewPCG(3, 5))
	replaced := 0
	runs := 2
	if hosttest.Big() {
		runs = 8
	}
	for range runs {
		c.Out = filepath.Join(t.TempDir(), "run")
		var victims []victim
		for range 4 {
			part, rank := 1+rng.IntN(4), rng.IntN(3)
			victims = append(victims, victim{rng.IntN(6), time.Duration(rng.IntN(60)) * time.Millisecond,
				func(v world.View) world.View { return v.Move(part, rank) }})
		}
		err := inproc.Run(v.Started(), func(rank world.Comm) error {
			s := replaceableRun(c, data, os.Stderr)
			defer s.close()
			return parts.RunViews(rank, v, &restless{s, victims}, parts.Elasticity{LostAfter: time.Minute})
		})
		if err != nil {
			t.Fatal(err)
		}
		got := readRun(t, c.Out)
		said := got.views(t, c.Out)
		sameLosses(t, fmt.Sprintf("after %q", said), got.losses(), want.losses(), 0)
		if !bytes.Equal(got.model, want.model) {
			t.Errorf("model.safetensors differs after %q", said)
		}
		replaced += len(said)
	}
	if replaced < runs {
		t.Errorf("the view was replaced %d times in all", replaced)
	}
}

// A run that resumed from a checkpoint also continues in another view: from the checkpoint, or
// from a later epoch.
func TestViewsAfterResume(t *testing.T) {
	data := generated(t, false)
	c := eight(t, 0)
	c.Parts, c.Ranks, c.Epochs = 5, 3, 10
	v := world.View{Parts: 5, Ranks: 3}
	want := trainSpread(t, c, v, data)
	for _, fault := range []string{"2:start:0:end", "2:AV:6:end", "2:AV:8:end", "3:AV:8:move"} {
		t.Run(fault, func(t *testing.T) {
			c := c
			c.Out, c.Epochs, c.CheckpointEvery = filepath.Join(t.TempDir(), "run"), 5, "5e"
			trainSpread(t, c, v, data)
			c.Epochs, c.Resume = 10, "auto"
			strikes(t, fault)
			got := trainThrough(t, c, v, data)
			sameLosses(t, "moved", got.losses(), want.losses(), 0)
			if !bytes.Equal(got.model, want.model) {
				t.Error("model.safetensors differs")
			}
		})
	}
}

// A run that cannot continue in another view is refused before it begins.
func TestNoOtherView(t *testing.T) {
	data := generated(t, false)
	for says, set := range map[string]func(*Config){
		"--mode=async": func(c *Config) { c.Mode = "async" },
		"--trace":      func(c *Config) { c.Trace = filepath.Join(t.TempDir(), "trace.json") },
	} {
		strikes(t, "1:AV:2:move")
		c := quick(t)
		c.Ranks, c.Servers = 2, 0
		set(&c)
		err := Train(context.Background(), c, data, IO{Out: io.Discard, Err: io.Discard})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}
