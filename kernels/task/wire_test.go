package task_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/objective"
	"siafu/kernels/task"
)

// bench is a network on a few vertices, with tasks.
type bench struct {
	net   *model.Network
	store *model.Store
	frame *model.Frame
	ops   *kernels.Team
	loss  task.Loss
}

// few rows are not sent in halves, many are.
const (
	few  = 7
	many = 50
)

func newBench(t testing.TB, kind string, vertices int) *bench {
	s := model.Spec{Kind: kind, Dims: []int{5, 4, 4, 3}, Dropout: 0.3, InputDropout: 0.2, Heads: 2, Seed: 1}
	s = composed(s)
	s.Choose(model.Load{}, model.Choices{Order: "gather-first", CacheInput: "off"})
	return benchOf(t, s, dense, vertices)
}

// composed sets the design and the widths of a network whose layers differ.
func composed(s model.Spec) model.Spec {
	s.Design = model.Design{Alpha: 0.2, Theta: 0.5}
	if model.KindOf(s.Kind).Takes(model.OptionHops) {
		s.Design.Hops = 2
	}
	if s.Composed() {
		s.Dims = s.Widths(s.Layers(), s.Dims[0], s.Dims[1], s.Dims[s.Layers()])
	}
	return s
}

// kinds of features; kept: ÂX, if cached, is bfloat16.
const (
	dense = iota
	sparse
	kept
)

func benchOf(t testing.TB, s model.Spec, features, vertices int) *bench {
	b := &bench{net: model.New(s, features == sparse), ops: kernels.NewTeam(1)}
	a := mapped.NewArena()
	t.Cleanup(func() { b.ops.Close(); a.Free() })
	ids, labels := make([]uint32, vertices), make([]int32, vertices)
	for v := range ids {
		ids[v], labels[v] = uint32(3*v), int32(v%(s.Dims[s.Layers()]+1))-1
	}
	x := graph.Features{Rows: vertices, Dim: s.Dims[0]}
	if features == sparse {
		x.Sparse = &graph.SparseRows{Offsets: []int64{0}}
		for v := range vertices {
			for c := v % 3; c < x.Dim; c += 1 + v%5 {
				x.Sparse.Cols, x.Sparse.Vals = append(x.Sparse.Cols, uint32(c)), append(x.Sparse.Vals, float32(v-c)/7)
			}
			x.Sparse.Offsets = append(x.Sparse.Offsets, int64(len(x.Sparse.Cols)))
		}
	} else {
		x.Dense = noise(vertices*x.Dim, 1)
	}
	b.store = model.NewStore(b.net, model.Place(b.ops, a, x, ids, ids), model.InStep, b.ops, a)
	if s.CacheInput {
		for k, to := range b.store.CacheInput(features == kept, a) {
			b.ops.PutColumns(to, 0, kernels.HostMat(vertices, x.Dim, noise(vertices*x.Dim, uint64(2+k))))
		}
	}
	b.frame = b.store.Frame(0, vertices, b.ops, kernels.Mat{})
	s.Initialize(b.frame.Weights.Host(), "he", 1)
	b.loss = task.Loss{
		Labels: kernels.HostVector(labels),
		Split:  kernels.HostVector(slices.Repeat([]uint8{graph.SplitTrain}, vertices)), Scale: 0.25, Count: true,
	}
	return b
}

// noise returns n numbers of either sign.
func noise(n int, seed uint64) []float32 {
	x, r := make([]float32, n), rand.New(rand.NewPCG(seed, 0))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// task returns a task with a list of stages.
func (b *bench) task(attempt int, list ...model.Do) *task.Task {
	return &task.Task{
		Name: task.Name{Part: 1, Interval: 2, Epoch: 3, Layer: list[0].Layer, Stage: list[0].Stage, Train: true, Attempt: attempt},
		Do:   list, Frame: b.frame, Loss: &b.loss,
	}
}

// last returns the end of a forward pass and the start of the backward pass.
func (b *bench) last() []model.Do {
	l := len(b.net.Layers) - 1
	return []model.Do{{Layer: l, Stage: model.Apply}, {Layer: l, Stage: model.Loss}, {Layer: l, Stage: model.ApplyBackward}}
}

// A result fits any attempt at its task, and no other task. The first one counts, and gives
// the same values as running the task locally.
func TestResult(t *testing.T) {
	for _, kind := range model.Kinds() {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t, kind, few)
			here := b.task(1, b.last()...)
			message := here.Encode(nil, b.ops)
			result, err := task.Work(b.net, message, []byte("in front"), b.ops)
			if err != nil || string(result[:8]) != "in front" {
				t.Fatalf("%q %v", result[:8], err)
			}
			result = result[8:]
			if name, err := task.NameOf(result); name != here.Name || err != nil {
				t.Errorf("%v %v, want %v", name, err, here.Name)
			}
			here.Run(b.ops)
			want, sum := slices.Clone(b.frame.Grad.Host()), b.loss.Found
			if sum.Sum == 0 {
				t.Error("the loss is 0: the test shows nothing")
			}
			clear(b.frame.Grad.Host())
			b.loss.Found = task.Found{}
			if err := b.task(4, b.last()...).Accept(result, b.ops); err != nil {
				t.Error(err)
			}
			if !slices.Equal(b.frame.Grad.Host(), want) || b.loss.Found != sum {
				t.Error("a result is not what the task makes here")
			}
			other := b.task(1, b.last()...)
			other.Interval++
			if err := other.Accept(result, b.ops); err == nil || !strings.Contains(err.Error(), "interval 3") {
				t.Errorf("another task takes it: %v", err)
			}
		})
	}
}

// A loss of an objective is sent with all its inputs, and its results are returned: Work,
// whole or in halves, gives the same as running the task locally.
func TestObjectives(t *testing.T) {
	for _, o := range []objective.Objective{
		{Task: graph.MultiClass, Smoothing: 0.1, Weights: []float64{0.5, 1, 2}},
		{Task: graph.MultiLabel, Smoothing: 0.2, Weights: []float64{3, 1, 2}},
		{Task: graph.MultiLabel},
		{Task: graph.Regression},
	} {
		for _, vertices := range []int{few, many} {
			b := newBench(t, "gcn", vertices)
			o.Outputs = 3
			for k := range o.Spread {
				o.Rows[k], o.Spread[k] = int64(10+k), []float64{1, 0, float64(3 + k)}
			}
			b.loss.Target = task.Target{Objective: &o, Values: noise(3*vertices, 7)}
			split := b.loss.Split.Host()
			for v := range split {
				split[v] = uint8(v % 4)
			}
			here := b.task(1, b.last()...)
			here.Form.Halves = true
			result, err := task.WorkFrom(b.net, bytes.NewReader(here.Encode(nil, b.ops)), nil, b.ops)
			if err != nil {
				t.Fatal(err)
			}
			here.Run(b.ops)
			want, found := slices.Clone(b.frame.Grad.Host()), b.loss.Found
			clear(b.frame.Grad.Host())
			b.loss.Found = task.Found{}
			if err := here.Accept(result, b.ops); err != nil || found.Sum == 0 || found.Rows[1] == 0 ||
				(o.Task == graph.Regression) != (found.Part[1] != 0) {
				t.Errorf("%v, found %+v", err, found)
			}
			if !slices.Equal(b.frame.Grad.Host(), want) || b.loss.Found != found {
				t.Errorf("%s of %d vertices: a result is not what the task makes here: %+v, want %+v", o.Task,
					vertices, b.loss.Found, found)
			}
		}
	}
}

// A message with a changed byte, or a truncated one, is refused, and changes nothing.
func TestDamaged(t *testing.T) {
	for _, vertices := range []int{few, many} {
		b := newBench(t, "gcn", vertices)
		here := b.task(1, b.last()...)
		here.Form.Halves = true
		message := here.Encode(nil, b.ops)
		result, err := task.Work(b.net, message, nil, b.ops)
		if err != nil {
			t.Fatal(err)
		}
		before := slices.Clone(b.frame.Grad.Host())
		for i := range message {
			bad := slices.Clone(message)
			bad[i] ^= 4
			for _, bad := range [][]byte{bad, message[:i]} {
				if _, err := task.Work(b.net, bad, nil, b.ops); err == nil {
					t.Fatalf("a task with another byte %d is done, or the bytes before it", i)
				}
				if _, err := task.WorkFrom(b.net, bytes.NewReader(bad), nil, b.ops); err == nil {
					t.Fatalf("a stream with another byte %d is done, or the bytes before it", i)
				}
			}
		}
		for i := range result {
			bad := slices.Clone(result)
			bad[i] ^= 4
			if b.task(1, b.last()...).Accept(bad, b.ops) == nil || b.task(1, b.last()...).Accept(result[:i], b.ops) == nil {
				t.Fatalf("a result with another byte %d is accepted, or the bytes before it", i)
			}
		}
		if !slices.Equal(b.frame.Grad.Host(), before) {
			t.Error("a damaged result has left something")
		}
	}
}

// A task for another network is refused.
func TestOtherNetwork(t *testing.T) {
	b, other := newBench(t, "gcn", few), newBench(t, "sage", few)
	message := b.task(1, b.last()...).Encode(nil, b.ops)
	if _, err := task.Work(other.net, message, nil, b.ops); err == nil {
		t.Error("it is done")
	}
}

// sealed returns a message of parts with matching lengths and checksums.
func sealed(parts ...[]byte) (b []byte) {
	sum, table := uint32(0), crc32.MakeTable(crc32.Castagnoli)
	for _, p := range parts {
		part := append(binary.LittleEndian.AppendUint64(nil, uint64(len(p))), p...)
		sum = crc32.Update(sum, table, part)
		b = binary.LittleEndian.AppendUint32(append(b, part...), sum)
	}
	return b
}

// opened returns the parts of a message.
func opened(b []byte) (parts [][]byte) {
	for len(b) > 0 {
		n := binary.LittleEndian.Uint64(b)
		parts = append(parts, b[8:8+n])
		b = b[12+n:]
	}
	return parts
}

// No message makes its receiver panic or write out of bounds: untrusted tasks, and results of
// own tasks. Messages and streams give the same results.
func FuzzWork(f *testing.F) {
	s := model.Spec{Kind: "gcn", Dims: []int{5, 4, 4, 3}, InputDropout: 0.2, Seed: 1}
	s.Choose(model.Load{}, model.Choices{Order: "apply-first", CacheInput: "off"})
	benches := map[bool]*bench{false: newBench(f, "gat", many), true: benchOf(f, s, sparse, many)}
	for isSparse, b := range benches {
		for _, form := range forms(f) {
			for _, list := range [][]model.Do{b.last(), {{Layer: 0, Stage: model.Emit}}, {{Layer: 1, Stage: model.EmitBackward}}} {
				t := b.task(1, append(b.store.Do(list[0].Layer, list[0].Stage), list[1:]...)...)
				t.Form = form
				parts := append(opened(t.Encode(nil, b.ops)), nil)
				f.Add(isSparse, parts[0], parts[1], parts[2], []byte{})
			}
		}
	}
	f.Fuzz(func(t *testing.T, isSparse bool, head, first, second, behind []byte) {
		b := benches[isSparse]
		message := sealed(head, first)
		if len(second) > 0 {
			message = sealed(head, first, second)
		}
		stream := bytes.NewReader(append(message, behind...))
		result, err := task.Work(b.net, message, nil, b.ops, codec.TaskCodec)
		streamed, other := task.WorkFrom(b.net, stream, nil, b.ops, codec.TaskCodec)
		if (err == nil) != (other == nil) && stream.Len() == len(behind) || err == nil && !bytes.Equal(result, streamed) {
			t.Errorf("%v, and of a stream %v", err, other)
		}
		if err == nil {
			if _, err := task.NameOf(result); err != nil {
				t.Error(err)
			}
		}
	})
}

// forms returns the encodings of tasks: plain, in halves, and with codecs.
func forms(t testing.TB) (all []task.Form) {
	all = []task.Form{{}, {Halves: true}}
	for _, name := range []string{"s2", "int4"} {
		c, err := codec.TaskCodec(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, task.Form{Halves: true, Codec: c})
	}
	return all
}

func FuzzAccept(f *testing.F) {
	b := newBench(f, "gin", many)
	list := b.last()
	for _, form := range forms(f) {
		t := b.task(1, list...)
		t.Form = form
		result, err := task.Work(b.net, t.Encode(nil, b.ops), nil, b.ops, codec.TaskCodec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(opened(result)[0])
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		for _, form := range forms(t) {
			one := b.task(1, list...)
			one.Form = form
			if err := one.Accept(sealed(result), b.ops); err != nil && fmt.Sprint(err) == "" {
				t.Error("an error that says nothing")
			}
		}
	})
}
