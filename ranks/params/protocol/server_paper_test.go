package protocol

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"siafu/internal/wire"
)

// sgd subtracts the gradient, so that weights tell what was applied.
type sgd struct{ updates [][2]int } // epoch and layer of each

func (u *sgd) Update(step, layer int, w, g []float32) {
	u.updates = append(u.updates, [2]int{step, layer})
	for i := range w {
		w[i] -= g[i]
	}
}

func (*sgd) State() [][]float32 { return nil }

var twoLayers = []Range{{Lo: 0, Hi: 2}, {Lo: 2, Hi: 5}}

// whole returns an interval's gradient: small whole numbers, whose sums are exact
// and differ for every set of intervals and epochs.
func whole(interval, epoch, layer int, _ []float32) []float32 {
	r := twoLayers[layer]
	g := make([]float32, r.Hi-r.Lo)
	for i := range g {
		g[i] = float32((r.Lo+i+1)*(1<<interval%97) + epoch)
	}
	return g
}

// wholeVersion returns the version's weights: all gradients of all epochs before,
// once each.
func wholeVersion(intervals, trained, version int) []float32 {
	w := make([]float32, 5)
	for epoch := trained + 1; epoch < version; epoch++ {
		for i := range intervals {
			for l, r := range twoLayers {
				for j, g := range whole(i, epoch, l, nil) {
					w[r.Lo+j] -= g
				}
			}
		}
	}
	return w
}

func drawSetting(t *rapid.T) Setting {
	return Setting{
		Intervals: rapid.SliceOfN(rapid.IntRange(1, 4), 1, 5).Draw(t, "intervals"),
		Servers:   rapid.IntRange(1, 4).Draw(t, "servers"),
		Staleness: rapid.IntRange(0, 3).Draw(t, "staleness"),
		Trained:   rapid.SampledFrom([]int{0, 0, 7}).Draw(t, "trained"),
	}
}

// Weight stashing "allows any interval to use the latest version of weights available in a
// forward pass and stashes (i.e., caches) this version for use during the corresponding
// backward pass" (Dorylus, OSDI'21, §5.1). For any order of delivery and speed of ranks within
// the bound, an interval in epoch e receives a version from e-s to e. The version has the same
// bytes on every server and in the backward pass, and includes every gradient of earlier
// epochs once. All ranks finish.
func TestStashUnderAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawSetting(t)
		epochs := rapid.IntRange(1, 5).Draw(t, "epochs")
		w := newCluster(t, c, twoLayers, epochs, rapid.Uint64().Draw(t, "seed"), func() Updater { return &sgd{} })
		w.grad = whole
		w.taken = func(m Message) {
			if m.Version < m.Epoch-c.Staleness || m.Version > m.Epoch {
				t.Fatalf("epoch %d was given version %d, bound %d", m.Epoch, m.Version, c.Staleness)
			}
			if want := wholeVersion(w.total(), c.Trained, m.Version); !slices.Equal(m.Values, want) {
				t.Fatalf("version %d is %v, want %v", m.Version, m.Values, want)
			}
		}
		if !w.run() {
			t.Fatalf("deadlock")
		}
		w.leave()
		for r, k := range w.workers {
			if want := wholeVersion(w.total(), c.Trained, w.epochs+1); !slices.Equal(k.final, want) {
				t.Fatalf("rank %d ends with %v, want %v", r, k.final, want)
			}
			if len(k.chooser.tallies) != 0 {
				t.Fatalf("rank %d keeps tallies of %d epochs", r, len(k.chooser.tallies))
			}
		}
		for k, s := range w.servers {
			checkEnd(t, w, k, s)
		}
		if want := epochs * len(twoLayers) * c.Servers * (c.Servers - 1); w.sums != want {
			t.Fatalf("%d messages among servers, want %d", w.sums, want)
		}
	})
}

// checkEnd checks a server after the last message.
func checkEnd(t testingT, w *cluster, k int, s *Server) {
	t.Helper()
	if !s.Done() || s.Version() != w.epochs+1 {
		t.Fatalf("server %d: done %v with version %d of %d", k, s.Done(), s.Version(), w.epochs+1)
	}
	if want := wholeVersion(w.total(), w.setting.Trained, s.Version()); !slices.Equal(s.Weights(), want) {
		t.Fatalf("server %d: weights %v, want %v", k, s.Weights(), want)
	}
	var next [2]int
	for _, u := range s.update.(*sgd).updates {
		if next[u[1]]++; u[0] != w.setting.Trained+next[u[1]] {
			t.Fatalf("server %d: layer %d: update of epoch %d in place %d", k, u[1], u[0], next[u[1]])
		}
	}
	m := s.Memory()
	if s.Load() != 0 || m.Versions != 0 || m.Bytes != 0 || m.Waiting != 0 || len(s.sums) != 0 || len(s.waiting) != 0 {
		t.Fatalf("server %d keeps load %d, %+v, %d epochs, %d requests", k, s.Load(), m, len(s.sums), len(s.waiting))
	}
	if m.PeakVersions > w.setting.Staleness+1 || m.PeakBytes != 20*int64(m.PeakVersions) {
		t.Fatalf("server %d: %+v with staleness bound %d", k, m, w.setting.Staleness)
	}
	if made := len(s.stash.versions.free) + 1; made > w.setting.Staleness+2 {
		t.Fatalf("server %d made %d copies of the weights with staleness bound %d", k, made, w.setting.Staleness)
	}
}

// "For each interval in a given epoch, the interval's weight stashes are only maintained on
// the first PS it interacts with in the epoch" (§5.1): no server has state of an interval that
// chose another.
func TestStashOnlyOnFirstServer(t *testing.T) {
	c := Setting{Intervals: []int{1}, Servers: 2}
	var all []*Server
	for k := range c.Servers {
		all = append(all, New(c, k, twoLayers, make([]float32, 5), &sgd{}))
	}
	h := NewChooser(c, 0, 2, 5)
	for _, m := range h.Fetch(0, 1, 0) {
		if _, err := all[m.To-1].Step(m); err != nil {
			t.Fatal(err)
		}
	}
	if all[0].Memory().Versions != 1 || all[1].Memory().Versions != 0 {
		t.Fatalf("versions on the chosen server %d, on the other %d", all[0].Memory().Versions, all[1].Memory().Versions)
	}
	if _, err := all[1].Step(Message{Type: wire.FetchStash, From: 0, To: 2, Epoch: 1}); err == nil {
		t.Fatal("the other server has a stash as well")
	}
}

// "Any interval [is] to use the latest version of weights available" (§5.1): an interval that
// knows that all others have finished the previous epoch receives its result, although the
// request precedes the last gradient; otherwise it receives the current version.
func TestNewestWeightsAreAwaited(t *testing.T) {
	for _, newest := range []bool{false, true} {
		c := Setting{Intervals: []int{1, 1}, Servers: 1, Staleness: 1}
		s := New(c, 0, twoLayers, make([]float32, 5), &sgd{})
		var choosers []*Chooser
		step := func(ms ...Message) (version int) {
			for _, m := range ms {
				out, err := s.Step(m)
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range out {
					version = a.Version
					if err := choosers[a.To].Take(a); err != nil {
						t.Fatal(err)
					}
				}
			}
			return version
		}
		for r := range 2 {
			choosers = append(choosers, NewChooser(c, r, 2, 5))
			step(choosers[r].Fetch(0, 1, 0)...)
		}
		gradients := func(r int) (version int) {
			for l := range 2 {
				values := make([]float32, twoLayers[l].Hi-twoLayers[l].Lo)
				version = step(choosers[r].Gradient(0, 1, l, values))
			}
			return version
		}
		gradients(0)
		fetch, first := choosers[0].Fetch, 1
		if newest {
			fetch, first = choosers[0].FetchNewest, 0
		}
		if at := step(fetch(0, 2, 0)...); at != first {
			t.Errorf("newest: %t: version %d comes before the last gradient", newest, at)
		}
		if at := gradients(1); newest && at != 2 {
			t.Errorf("version %d comes after the last gradient", at)
		}
	}
}

// "Dorylus performs whole-graph training and updates weights only once per
// layer per epoch" (§5.3): many intervals, one update.
func TestOneUpdateALayerAndEpoch(t *testing.T) {
	u := &sgd{}
	w := newCluster(t, Setting{Intervals: []int{3, 4}, Servers: 1, Staleness: 1}, twoLayers, 3, 1,
		func() Updater { return u })
	w.grad = whole
	if !w.run() {
		t.Fatal("deadlock")
	}
	if len(u.updates) != 6 {
		t.Fatalf("%d updates of 2 layers in 3 epochs", len(u.updates))
	}
}
