package task_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"siafu/halo/codec"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
)

// through returns a matrix encoded and decoded by a codec.
func (b *bench) through(t *testing.T, c task.Codec, m kernels.Mat, one *task.Task, r model.Ref) {
	t.Helper()
	k := task.Key{Seed: b.net.Spec.Seed, Epoch: one.Epoch, Value: r}
	if err := c.Decode(m.Host(), m.Cols, c.Encode(nil, m.Host(), m.Cols, b.frame.Vertices().IDs.Host(), k)); err != nil {
		t.Fatal(err)
	}
}

// A task with a codec equals the task on encoded and decoded inputs, with encoded and decoded
// outputs. Gradients of weights are not encoded. A lossless codec changes nothing. Each
// attempt has the same bytes.
func TestTasksThroughCodecs(t *testing.T) {
	all := networks([]int{37, 24, 18, 5})
	for k, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		for _, features := range []int{dense, sparse} {
			for c, form := range []task.Form{formOf(t, "s2"), formOf(t, "bf16"), formOf(t, "int8"), formOf(t, "int4+s2")} {
				if !hosttest.Sampled(4, k, 2*features, c) {
					continue
				}
				b := benchOf(t, s, features, many)
				b.each(func(one *task.Task) {
					what := fmt.Sprintf("%s, features %d, %s, %v behind %v", name, features, form.Codec.Name(), one.Do, one.Recompute)
					one.Form = form
					message := one.Encode(nil, b.ops)
					if !bytes.Equal(message, one.Encode(nil, b.ops)) {
						t.Errorf("%s: another attempt has other bytes", what)
					}
					result, err := task.Work(b.net, message, nil, b.ops, codec.TaskCodec)
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					want := b.outcome(t, one, func() []byte { return b.exact(t, one) })
					if got := b.outcome(t, one, func() []byte { one.Form = form; return result }); !slices.Equal(got, want) {
						t.Errorf("%s: another result", what)
					}
				})
			}
		}
	}
}

func formOf(t testing.TB, name string) task.Form {
	t.Helper()
	c, err := codec.TaskCodec(name)
	if err != nil {
		t.Fatal(err)
	}
	return task.Form{Halves: true, Codec: c}
}

// exact returns the result of a task computed on encoded and decoded inputs, with encoded and
// decoded outputs.
func (b *bench) exact(t *testing.T, one *task.Task) []byte {
	t.Helper()
	c := one.Form.Codec
	cut := b.net.Transfers(one.Recompute, one.Do, one.Pass())
	if cut.Features && !b.net.Sparse {
		b.through(t, c, b.frame.Vertices().Features.Dense, one, model.Ref{Value: model.Input})
	}
	for _, r := range cut.Inputs {
		b.through(t, c, b.frame.Value(r), one, r)
	}
	one.Form = task.Form{}
	result, err := task.Work(b.net, one.Encode(nil, b.ops), nil, b.ops)
	if err == nil {
		err = one.Accept(result, b.ops)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range b.net.Transfers(nil, one.Do, one.Pass()).Outputs {
		b.through(t, c, b.frame.Value(r), one, r)
	}
	return nil
}

// outcome returns the values after a task, and after its result has been accepted, if any.
func (b *bench) outcome(t *testing.T, one *task.Task, result func() []byte) (all []float32) {
	t.Helper()
	clear(b.frame.Grad.Host())
	if r := result(); r != nil {
		if err := one.Accept(r, b.ops); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range b.net.Transfers(nil, one.Do, one.Pass()).Outputs {
		all = append(all, b.frame.Value(r).Host()...)
	}
	return append(append(all, b.frame.Grad.Host()...), float32(b.loss.Sum), float32(b.loss.Correct[0]))
}

// A message with an unknown codec is refused, as is a result encoded by another codec.
func TestUnknownCodec(t *testing.T) {
	b := newBench(t, "gcn", many)
	one := b.task(1, b.last()...)
	one.Form = formOf(t, "int8")
	message := one.Encode(nil, b.ops)
	if _, err := task.Work(b.net, message, nil, b.ops); err == nil {
		t.Error("the task is decoded without a codec")
	}
	other := bytes.Replace(message, []byte("int8"), []byte("int9"), 1)
	if _, err := task.Work(b.net, sealed(opened(other)...), nil, b.ops, codec.TaskCodec); err == nil {
		t.Error("it is done with another codec")
	}
	emits := b.task(1, b.store.Do(1, model.Apply)...)
	emits.Form = one.Form
	result, err := task.Work(b.net, emits.Encode(nil, b.ops), nil, b.ops, codec.TaskCodec)
	if err != nil {
		t.Fatal(err)
	}
	if emits.Form = (task.Form{}); emits.Accept(result, b.ops) == nil {
		t.Error("a result is taken for what it is not")
	}
}
