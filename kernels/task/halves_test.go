package task_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"siafu/halo/codec"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
)

// networks returns all kinds, in both orders, with and without dropout, with all types of
// features.
func networks(dims []int) map[string]model.Spec {
	all := map[string]model.Spec{}
	for _, kind := range model.Kinds() {
		for _, order := range []string{"gather-first", "apply-first"} {
			for _, cache := range []string{"off", "on"} {
				for _, p := range []float64{0, 0.3} {
					s := model.Spec{Kind: kind, Dims: dims, Dropout: p, Heads: 2, OutputHeads: 2, Seed: 1}
					if cache == "off" {
						s.InputDropout = p
					}
					s = composed(s)
					s.Choose(model.Load{CacheFits: true}, model.Choices{Order: order, CacheInput: cache})
					if s.Composed() && (cache == "on" && !s.CacheInput || order != "gather-first" || p == 0) {
						continue // nothing new
					}
					all[fmt.Sprintf("%s,%v,cache=%t,drop=%v", kind, s.Orders, s.CacheInput, p)] = s
				}
			}
		}
	}
	return all
}

// tasks returns the tasks of an epoch, or of an evaluation's forward pass: one per stage or,
// fused, one for all stages between two gathers.
func (b *bench) tasks(train, fused bool) (all []*task.Task) {
	var list []model.Do
	end := func(really bool) {
		if len(list) > 0 && really {
			all, list = append(all, b.task(1, list...)), nil
			all[len(all)-1].Train = train
		}
	}
	stage := func(l int, s model.Stage) {
		if b.net.Has(model.Do{Layer: l, Stage: s}) {
			list = append(list, b.store.Do(l, s)...)
			end(!fused)
		}
	}
	last := len(b.net.Layers) - 1
	for l := range b.net.Layers {
		stage(l, model.Emit)
		end(b.net.Gathers(l))
		stage(l, model.Apply)
	}
	stage(last, model.Loss)
	for l := last; l >= 0 && train; l-- {
		stage(l, model.ApplyBackward)
		end(b.net.GathersBackward(l))
		stage(l, model.EmitBackward)
	}
	end(true)
	return all
}

// each calls do with every task of a bench, in the variants of backends, thin and not, each
// with its own inputs.
func (b *bench) each(do func(t *task.Task)) {
	for k := range 6 {
		train, fused, thin := k < 4, k%2 > 0, k < 2
		for _, t := range b.tasks(train, fused) {
			if thin {
				t.Recompute = b.store.RecomputeStages(t.Do)
			}
			for i, r := range b.net.Transfers(t.Recompute, t.Do, t.Pass()).Inputs {
				if m := b.frame.Value(r); !m.Half() {
					kernels.Write(b.ops, m, noise(m.Rows*m.Cols, uint64(i+3)))
				}
			}
			do(t)
		}
	}
}

// A task in halves gives the bits of the whole task, for every network, both directions, all
// kernels and any end of a half: a kernel's result for a row does not depend on other rows.
// Networks of each kind alternate between few and many rows; with SIAFU_BIG=1 all have both.
func TestHalves(t *testing.T) {
	early, late := 0, 0
	for _, c := range []struct {
		dims []int
		rows []int
	}{{[]int{37, 24, 18, 5}, []int{17, 150}}, {[]int{300, 130, 4}, []int{210}}} {
		all := networks(c.dims)
		for turn, name := range slices.Sorted(maps.Keys(hosttest.Share(t, 2, all))) {
			s := all[name]
			for _, features := range []int{dense, sparse, kept} {
				if features == kept && !s.CacheInput || len(c.dims) == 3 && (s.Dropout == 0 || testing.Short()) {
					continue // nothing new
				}
				for k, rows := range c.rows {
					if len(c.rows) > 1 && (turn+features+k)%2 > 0 && !hosttest.Big() {
						continue
					}
					b := benchOf(t, s, features, rows)
					for v, variant := range kernels.Variants() {
						if variant == "openblas" || !hosttest.Sampled(3, turn, features, v) { // OpenBLAS is not in cloud functions
							continue
						}
						if err := b.ops.Use(variant); err != nil {
							t.Fatal(err)
						}
						b.each(func(one *task.Task) {
							if b.net.ByRow(slices.Concat(one.Recompute, one.Do)[0]) {
								early++
							} else {
								late++
							}
							sameInHalves(t, fmt.Sprintf("%s, features %d, %d rows, %s, %v behind %v", name, features, rows, variant,
								one.Do, one.Recompute), b, one)
						})
					}
				}
			}
		}
	}
	if t.Logf("%d tasks begin with the first half, %d wait", early, late); early == 0 || late == 0 {
		t.Error("the test shows nothing")
	}
}

func sameInHalves(t *testing.T, what string, b *bench, one *task.Task) {
	t.Helper()
	one.Form = task.Form{}
	want, err := task.Work(b.net, one.Encode(nil, b.ops), nil, b.ops)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	one.Form.Halves = true
	message := one.Encode(nil, b.ops)
	if n := len(opened(message)); n != 3 {
		t.Fatalf("%s: %d parts", what, n)
	}
	got, err := task.WorkFrom(b.net, iotest.HalfReader(bytes.NewReader(message)), nil, b.ops)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: halves give another result: %v", what, err)
	}
}

// With device memory, rows are copied to it and back.
func TestHalvesElsewhere(t *testing.T) {
	for name, s := range networks([]int{37, 24, 18, 5}) {
		b := benchOf(t, s, sparse, many)
		ops := kerneltest.NewGuarded(b.ops)
		b.each(func(one *task.Task) {
			for _, form := range []task.Form{{Halves: true}, formOf(t, "int8")} {
				one.Form = form
				message := one.Encode(nil, b.ops)
				want, err := task.Work(b.net, message, nil, b.ops, codec.TaskCodec)
				if err != nil {
					t.Fatal(err)
				}
				got, err := task.WorkFrom(b.net, bytes.NewReader(message), nil, ops, codec.TaskCodec)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s, %v: another result: %v", name, one.Do, err)
				}
			}
		})
	}
}

// A stream is read to its end and no further.
func TestStreamEnds(t *testing.T) {
	b := newBench(t, "sage", many)
	var messages []byte
	for range 2 {
		one := b.task(1, b.last()...)
		one.Form.Halves = true
		messages = one.Encode(messages, b.ops)
	}
	stream := bytes.NewReader(messages)
	for range 2 {
		if _, err := task.WorkFrom(b.net, stream, nil, b.ops); err != nil {
			t.Error(err)
		}
	}
	if stream.Len() > 0 {
		t.Errorf("%d bytes are left", stream.Len())
	}
	if _, err := task.Work(b.net, messages, nil, b.ops); err == nil {
		t.Error("a message with another one behind it is done")
	}
}

// A half of another task does not fit.
func TestHalfOfAnotherTask(t *testing.T) {
	b := newBench(t, "gcn", many)
	var heads, others []byte
	for attempt := range 2 {
		one := b.task(attempt, b.last()...)
		one.Form.Halves = true
		heads, others = others, one.Encode(nil, b.ops)
	}
	if len(heads) != len(others) {
		t.Fatal("the messages are not alike")
	}
	second := len(heads) - 12 - len(opened(heads)[2])
	if _, err := task.Work(b.net, slices.Concat(heads[:second], others[second:]), nil, b.ops); err == nil {
		t.Error("it is done")
	}
}

// A stalled stream ends with the reader's error, and no goroutine reads any more.
func TestStalledStream(t *testing.T) {
	b := newBench(t, "gcn", many)
	one := b.task(1, b.last()...)
	one.Form.Halves = true
	message := one.Encode(nil, b.ops)
	for at := range message {
		stream := io.MultiReader(bytes.NewReader(message[:at]), iotest.ErrReader(os.ErrDeadlineExceeded))
		if _, err := task.WorkFrom(b.net, stream, nil, b.ops); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("behind %d bytes: %v", at, err)
		}
	}
}

// The error of a wrong first half is returned after reading of the second half has ended: the
// caller then owns the stream again.
func TestWrongHalfEndsWithTheReader(t *testing.T) {
	b := newBench(t, "gcn", many)
	one := b.task(1, b.last()...)
	one.Form.Halves = true
	parts := opened(one.Encode(nil, b.ops))
	parts[1][len(parts[1])-1] = 200 // a split
	message := sealed(parts...)
	second := len(message) - 12 - len(parts[2])
	synctest.Test(t, func(t *testing.T) {
		rest, sender := io.Pipe()
		end := make(chan error, 1)
		go func() {
			_, err := task.WorkFrom(b.net, io.MultiReader(bytes.NewReader(message[:second]), rest), nil, b.ops)
			end <- err
		}()
		synctest.Wait()
		select {
		case err := <-end:
			t.Fatalf("it returns while the second half is read: %v", err)
		default:
		}
		_ = sender.CloseWithError(os.ErrDeadlineExceeded)
		if err := <-end; err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the first half is taken: %v", err)
		}
	})
}

// Announced lengths take no memory before the data arrives, and data that a network cannot use
// is not awaited.
func TestStreamOfPromises(t *testing.T) {
	b := newBench(t, "gcn", many)
	one := b.task(1, b.last()...)
	one.Form.Halves = true
	parts := opened(one.Encode(nil, b.ops))
	// The head claims 2³² - 1 rows.
	head := bytes.Replace(parts[0], number(many), number(1<<32-1), 1)
	head = bytes.Replace(head, number(32), number(1<<31), 1)
	if bytes.Equal(head, parts[0]) {
		t.Fatal("the head says nothing of its rows")
	}
	for name, stream := range map[string][]byte{
		"a long head":                       append(number(1<<62), make([]byte, 100)...),
		"a long half":                       append(sealed(head), append(number(1<<35), make([]byte, 1000)...)...),
		"a longer one":                      append(sealed(head), append(number(1<<62), make([]byte, 1000)...)...),
		"a short half":                      sealed(head, parts[1]),
		"a first half before the first row": sealed(bytes.Replace(parts[0], number(32), number(math.MinInt+many), 1), parts[1]),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := task.WorkFrom(b.net, bytes.NewReader(stream), nil, b.ops)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s is done", name)
		}
		t.Logf("%s: %v", name, err)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<21 {
			t.Errorf("%s takes %d bytes: %v", name, took, err)
		}
	}
}
