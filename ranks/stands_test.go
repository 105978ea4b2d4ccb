package ranks

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"os"
	"sync"
	"testing"

	"siafu/graph/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/schedule"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
)

// strict is a backend that holds layers and schedules to the contract of
// model.Layer. What a method returns it hands on as a copy. At the moment from
// which on nobody may read it, the layer must not have written to what it
// returned, and the copy becomes NaN for whoever does read on.
type strict struct {
	t   testing.TB
	run *run

	mu    sync.Mutex
	rooms map[room][]float32 // the copies
	out   map[result]*returned
}

// room is a matrix of all own vertices, result an interval's part of one.
type room struct {
	stage        schedule.Stage
	layer, width int
}
type result struct {
	stage           schedule.Stage
	layer, interval int
}

// returned is what a method has returned.
type returned struct {
	own, copy []float32 // the layer's, and what was handed on
	sum       uint64    // of own when it was returned
	ends      moment
	left      map[int]bool // intervals that have not come to it
}

// moment is when an interval calls a method of a layer, or has called it.
type moment struct {
	stage  schedule.Stage
	layer  int
	called bool
}

func newStrict(t testing.TB, r *run) *strict {
	return &strict{t: t, run: r, rooms: map[room][]float32{}, out: map[result]*returned{}}
}

// Begin implements tensor.Backend.
func (b *strict) Begin(worker *kernels.Team, w *tensor.Work) (bool, error) {
	b.reach(w, false)
	done, err := tensor.CPU{}.Begin(worker, w)
	if w.Rows != nil && w.Task.Stage != schedule.Loss {
		b.hand(w)
	}
	b.reach(w, true)
	return done, err
}

// Collect implements tensor.Backend.
func (b *strict) Collect() (*tensor.Work, error) { return nil, nil }

// lifetime is the moment at which nobody reads any more what w has made, and
// whether all intervals must have come to it or only its own.
func (b *strict) lifetime(w *tensor.Work) (ends moment, shared bool) {
	l, layers := w.Task.Layer, w.Net.Layers
	// Bounded asynchrony copies rows before others gather them; what it evaluates
	// at its end is in step.
	inStep := b.run.cfg.Mode != "async" || !w.Pass.Train
	gathers, back := layers[l].GatherWidth() > 0, gathersBack(layers[l])
	_, attended := layers[l].(model.Attended)
	before := max(l-1, 0)
	switch w.Task.Stage {
	case schedule.Emit:
		switch {
		case !gathers: // Apply gets it and may keep it
			return moment{schedule.EmitBackward, l, true}, false
		case attended: // neighbours' gradients depend on it
			return moment{schedule.EmitBackward, l, false}, inStep
		}
		return moment{schedule.Apply, l, false}, inStep
	case schedule.Apply:
		if l == len(layers)-1 {
			return moment{schedule.ApplyBackward, l, false}, false
		}
		return moment{schedule.EmitBackward, l + 1, true}, false
	case schedule.ApplyBackward:
		if !back { // EmitGrad gets it and may return it
			return moment{schedule.EmitBackward, before, true}, false
		}
		return moment{schedule.EmitBackward, l, false}, inStep
	}
	return moment{schedule.EmitBackward, before, true}, inStep && gathersBack(layers[before])
}

func gathersBack(l model.Layer) bool { return l.GatherWidth() > 0 && l.GathersBackward() }

// hand replaces what w has made by a copy.
func (b *strict) hand(w *tensor.Work) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own, rows := b.run.shard.NumOwn(), len(w.Loss.Labels)
	width, first := len(w.Rows)/rows, own-cap(w.Loss.Grad)/w.Loss.Classes
	in := room{w.Task.Stage, w.Task.Layer, width}
	if b.rooms[in] == nil {
		b.rooms[in] = make([]float32, own*width)
	}
	r := &returned{own: w.Rows, copy: b.rooms[in][first*width : (first+rows)*width], sum: sumOf(w.Rows)}
	r.left = map[int]bool{w.Task.Interval: true}
	var shared bool
	if r.ends, shared = b.lifetime(w); shared {
		for k := range b.run.cfg.IntervalsOf(b.run.net, own) {
			r.left[k] = true
		}
	}
	copy(r.copy, r.own)
	b.out[result{w.Task.Stage, w.Task.Layer, w.Task.Interval}] = r
	w.Rows = r.copy
}

// reach lets go of what nobody may read any more.
func (b *strict) reach(w *tensor.Work, called bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := moment{w.Task.Stage, w.Task.Layer, called}
	var over []*returned
	for of, r := range b.out {
		if r.ends != now || !r.left[w.Task.Interval] {
			continue
		}
		if delete(r.left, w.Task.Interval); len(r.left) > 0 {
			continue
		}
		if sumOf(r.own) != r.sum {
			b.t.Errorf("epoch %d: what the %v of layer %d returned in interval %d was overwritten before %+v",
				w.Pass.Epoch, of.stage.Kind(), of.layer, of.interval, now)
		}
		over = append(over, r)
		delete(b.out, of)
	}
	for _, r := range over { // one may be the copy of another
		for i := range r.copy {
			r.copy[i] = float32(math.NaN())
		}
	}
}

var sumSeed = maphash.MakeSeed()

func sumOf(x []float32) uint64 { return maphash.Bytes(sumSeed, mapped.Bytes(x)) }

// trainOn is train with the tensor tasks of each rank on a backend.
func trainOn(t testing.TB, c Config, data string, backend func(*run) tensor.Backend) trained {
	t.Helper()
	err := launch(max(c.Ranks, 1), world.Limits{}, IO{Out: io.Discard, Err: os.Stderr}, func(w world.Comm, kind string) error {
		r := &run{cfg: c, data: data, kind: kind, world: w, arena: mapped.NewArena()}
		r.tensor = backend(r)
		defer r.close()
		return r.whole(IO{Out: io.Discard, Err: os.Stderr})
	})
	if err != nil {
		t.Fatal(err)
	}
	return readRun(t, c.Out)
}

func trainStrictly(t testing.TB, c Config, data string) trained {
	t.Helper()
	return trainOn(t, c, data, func(r *run) tensor.Backend { return newStrict(t, r) })
}

// networks are all models in the orders that they have, with ÂX of the first
// layer gathered anew in each pass and kept.
func networks(t testing.TB) map[string]Config {
	all := map[string]Config{}
	for _, n := range []struct{ model, orders string }{
		{"gcn", "gather-first apply-first kept"}, {"sage", "gather-first apply-first kept"},
		{"gin", "gather-first apply-first kept"}, {"gat", "auto"}, {"mlp", "auto"},
	} {
		for _, order := range bytes.Fields([]byte(n.orders)) {
			c := quick(t)
			c.Model, c.Order, c.Layers, c.Hidden, c.Heads = n.model, string(order), 3, 8, 2
			c.Epochs, c.Threads, c.CheckpointEvery, c.CacheInput = 3, 2, "off", "off"
			if c.Order == "kept" {
				c.Order, c.CacheInput, c.InputDropout = "gather-first", "on", 0
			}
			all[n.model+" "+string(order)] = c
		}
	}
	return all
}

// What layers return stands as long as somebody may read it, and nobody reads
// it longer: a run in which it turns into NaN then is the same to the bit.
func TestResultsStand(t *testing.T) {
	data := generated(t, true)
	for name, c := range networks(t) {
		for ranks := 1; ranks <= 4; ranks++ {
			if testing.Short() && ranks%2 == 0 {
				continue
			}
			t.Run(fmt.Sprint(name, " ranks=", ranks), func(t *testing.T) {
				c := c
				c.Ranks, c.Servers, c.Intervals = ranks, ranks/3, 4
				want := trainStrictly(t, c, data)
				c.Mode = "nopipe"
				for what, train := range map[string]func(testing.TB, Config, string) trained{"usual": train, "strict": trainStrictly} {
					if got := train(t, c, data); !bytes.Equal(got.model, want.model) {
						t.Errorf("the %s backend without overlap trains another model", what)
					}
				}
				c.Mode, c.Staleness = "async", 1
				for e, loss := range trainStrictly(t, c, data).losses() {
					if math.IsNaN(loss) {
						t.Fatalf("async: the loss of epoch %d is NaN", e+1)
					}
				}
			})
		}
	}
}

// Overlap changes no bit, whatever the workers get to first: with many intervals
// on one rank, in three layers and in two that grow wider, and each time.
func TestOverlapChangesNothing(t *testing.T) {
	data := generated(t, true)
	for name, c := range networks(t) {
		for _, shape := range []struct{ layers, hidden int }{{3, 16}, {2, 3}} {
			if testing.Short() && shape.layers < 3 {
				continue
			}
			t.Run(fmt.Sprint(name, " ", shape), func(t *testing.T) {
				c.Layers, c.Hidden, c.Ranks, c.Intervals, c.Threads, c.Epochs = shape.layers, shape.hidden, 1, 10, 4, 6
				c.Mode = "nopipe"
				want := train(t, c, data)
				c.Mode = "pipe"
				for range 2 {
					if got := train(t, c, data); !bytes.Equal(got.model, want.model) {
						t.Fatal("model.safetensors differs")
					}
				}
			})
		}
	}
}
