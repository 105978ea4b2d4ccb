package refresh_test

import (
	"slices"
	"testing"

	"siafu/cuda"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/halo/refresh"
	"siafu/internal/mapped"
	"siafu/internal/testkit/ptx"
	"siafu/kernels"
)

// kept is an outbox that stores posted messages.
type kept struct{ messages [][]byte }

func (k *kept) Buffer() ([]byte, error) { return nil, nil }
func (k *kept) Post(b []byte, _, _ int) error {
	k.messages = append(k.messages, b)
	return nil
}

// On a device, the messages of bounded asynchrony are the same to the byte, with or without
// kernels for the codec, and received rows are the same to the bit.
func TestBoundedElsewhere(t *testing.T) {
	for _, name := range []string{"none", "bf16", "int8", "int4", "adaptive"} {
		t.Run(name, func(t *testing.T) {
			c, err := codec.ByName(name)
			if err != nil {
				t.Fatal(err)
			}
			team := kernels.NewTeam(1)
			defer team.Close()
			d := ptx.New(ptx.Settings{})
			defer d.Close()
			there, err := cuda.New(d, cuda.Own)
			if err != nil {
				t.Fatal(err)
			}
			defer there.Close()
			messages, rows := bounded(t, c, team)
			messagesThere, rowsThere := bounded(t, c, there)
			if !slices.EqualFunc(messages, messagesThere, slices.Equal[[]byte]) {
				t.Error("messages differ")
			}
			if !slices.Equal(rows, rowsThere) {
				t.Error("rows differ")
			}
		})
	}
}

// bounded sends the rows and the gradients of a rank to itself, as if to another rank. It
// returns the messages and the received rows.
func bounded(t *testing.T, c codec.Codec, o kernels.Ops) (messages [][]byte, rows []float32) {
	const own, width = 9, 21
	arena, out := mapped.NewArena(), &kept{}
	defer arena.Free()
	p := &halo.Plan{
		Parts: 2, Own: own, Ghosts: 5, SendStart: []int64{0, 0, 5}, RecvStart: []int64{0, 0, 5},
		SendRows: []uint32{0, 2, 3, 7, 8}, OwnIDs: []uint32{10, 11, 12, 13, 14, 15, 16, 17, 18}, GhostIDs: []uint32{50, 51, 52, 53, 54},
	}
	s := refresh.NewBounded(refresh.BoundedOptions{
		Shapes: []halo.Shape{{Layer: 0, Width: width, Backward: true}}, Plan: p, Codec: c, Seed: 5, Staleness: 1, Outbox: out,
	}, o, arena)
	x := make([]float32, own*width)
	for i := range x {
		x[i] = float32(i*i%97) / 7
	}
	x[3*width] = 3e38 // a row that no grid spans
	mat := kernels.NewMat(o, arena, own, width)
	kernels.Write(o, mat, x)
	forward, backward := halo.Slot{Epoch: 1}, halo.Slot{Epoch: 1, Backward: true}
	kernels.Write(o, s.SendBuffer(backward), x)
	for _, at := range []struct {
		halo.Slot
		rows   kernels.Mat
		lo, hi int
	}{{forward, mat, 0, 3}, {forward, mat, 3, own}, {backward, s.SendBuffer(backward), 0, 5}} {
		if err := s.Offer(at.Slot, at.rows, at.lo, at.hi); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range out.messages {
		at, due, err := s.Accept(1, slices.Clone(m))
		if err == nil && due {
			_, _, err = s.Take(at)
		}
		if err != nil || !due {
			t.Fatalf("due %t, %v", due, err)
		}
	}
	view, err := s.View(forward)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(o, backward, mat, 0, own); err != nil {
		t.Fatal(err)
	}
	for _, m := range []kernels.Mat{view.Rows, mat} {
		read := make([]float32, m.Rows*m.Cols)
		kernels.Read(o, read, m)
		rows = append(rows, read...)
	}
	return out.messages, rows
}
