package task_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
)

// bench is a network on a few vertices, and tasks at it.
type bench struct {
	net   *model.Network
	store *model.Store
	frame *model.Frame
	ops   *kernels.Team
	loss  task.Loss
}

const vertices = 7

func newBench(t testing.TB, kind string) *bench {
	s := model.Spec{Kind: kind, Dims: []int{5, 4, 4, 3}, Dropout: 0.3, InputDropout: 0.2, Heads: 2, Seed: 1}
	s.Choose(model.Load{}, model.Choices{Order: "gather-first", CacheInput: "off"})
	b := &bench{net: model.New(s, false), ops: kernels.NewTeam(1)}
	a := mapped.NewArena()
	t.Cleanup(func() { b.ops.Close(); a.Free() })
	x, ids := make([]float32, vertices*5), make([]uint32, vertices)
	for i := range x {
		x[i] = float32(i%11) - 5
	}
	for v := range ids {
		ids[v] = uint32(3 * v)
	}
	in := model.Place(b.ops, a, graph.Features{Rows: vertices, Dim: 5, Dense: x}, ids, ids)
	b.store = model.NewStore(b.net, in, model.InStep, b.ops, a)
	b.frame = b.store.Frame(0, vertices, b.ops, kernels.Mat{})
	s.Initialize(b.frame.Weights.Host(), "he", 1)
	b.loss = task.Loss{
		Labels: kernels.HostVector([]int32{0, 1, 2, 0, 1, 2, -1}), Split: kernels.HostVector(slices.Repeat([]uint8{graph.SplitTrain}, vertices)), Scale: 0.25, Count: true,
	}
	return b
}

// task is one of a list of stages.
func (b *bench) task(attempt int, list ...model.Do) *task.Task {
	return &task.Task{
		Name: task.Name{Part: 1, Interval: 2, Epoch: 3, Layer: list[0].Layer, Stage: list[0].Stage, Train: true, Attempt: attempt},
		Do:   list, Frame: b.frame, Loss: &b.loss,
	}
}

// last is the end of a way forward and the beginning of the way back.
func (b *bench) last() []model.Do {
	return []model.Do{{Layer: 2, Stage: model.Apply}, {Layer: 2, Stage: model.Loss}, {Layer: 2, Stage: model.ApplyBackward}}
}

// A result fits its task in any attempt, and no other task; the first one counts, and
// leaves what doing the task here leaves.
func TestResult(t *testing.T) {
	for _, kind := range model.Kinds() {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t, kind)
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

// A message with a byte that is another one, or that has been cut off, is refused,
// and changes nothing.
func TestDamaged(t *testing.T) {
	b := newBench(t, "gcn")
	message := b.task(1, b.last()...).Encode(nil, b.ops)
	result, err := task.Work(b.net, message, nil, b.ops)
	if err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(b.frame.Grad.Host())
	for i := range message {
		bad := slices.Clone(message)
		bad[i] ^= 4
		if _, err := task.Work(b.net, bad, nil, b.ops); err == nil {
			t.Fatalf("a task with another byte %d is done", i)
		}
		if _, err := task.Work(b.net, message[:i], nil, b.ops); err == nil {
			t.Fatalf("the first %d bytes of a task are done", i)
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

// A task for another network is refused.
func TestOtherNetwork(t *testing.T) {
	b, other := newBench(t, "gcn"), newBench(t, "sage")
	message := b.task(1, b.last()...).Encode(nil, b.ops)
	if _, err := task.Work(other.net, message, nil, b.ops); err == nil {
		t.Error("it is done")
	}
}

// sealed is a message with the checksum that fits.
func sealed(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(slices.Clone(b), crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// Whatever a message says, whoever gets it neither panics nor writes where it must
// not: tasks of strangers, and results of tasks that were asked for.
func FuzzWork(f *testing.F) {
	b := newBench(f, "gat")
	for _, list := range [][]model.Do{b.last(), {{Layer: 0, Stage: model.Draw}, {Layer: 0, Stage: model.Emit}}, {{Layer: 1, Stage: model.EmitBackward}}} {
		m := b.task(1, list...).Encode(nil, b.ops)
		f.Add(m[:len(m)-4])
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		if result, err := task.Work(b.net, sealed(message), nil, b.ops); err == nil {
			if _, err := task.NameOf(result); err != nil {
				t.Error(err)
			}
		}
	})
}

func FuzzAccept(f *testing.F) {
	b := newBench(f, "gin")
	list := b.last()
	result, err := task.Work(b.net, b.task(1, list...).Encode(nil, b.ops), nil, b.ops)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(result[:len(result)-4])
	f.Fuzz(func(t *testing.T, result []byte) {
		if err := b.task(1, list...).Accept(sealed(result), b.ops); err != nil && fmt.Sprint(err) == "" {
			t.Error("an error that says nothing")
		}
	})
}
