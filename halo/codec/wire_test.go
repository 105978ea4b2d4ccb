package codec_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/cuda"
	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/internal/testkit/ptx"
	"siafu/kernels"
)

// shipment is the input of a codec: n own rows and sums, by index.
type shipment struct {
	n, own, sums, cols int
	x, more            []float32
	index, ids         []uint32
	isSum              []bool
}

// oddly makes rows of which some are constant, huge, tiny or not finite.
func oddly(n, own, sums, cols int, seed uint64) shipment {
	r := rand.New(rand.NewPCG(seed, 1))
	s := shipment{n: n, own: own, sums: sums, cols: cols, x: make([]float32, own*cols), more: make([]float32, sums*cols)}
	for k, row := range slices.Concat(rowsOf(s.x, cols), rowsOf(s.more, cols)) {
		for c := range row {
			row[c] = float32(r.NormFloat64())
			switch k % 11 {
			case 3:
				row[c] = -0.7
			case 4:
				row[c] *= 1e-42
			case 5:
				row[c] = float32(math.Copysign(0, float64(row[c])))
			case 6:
				row[c] *= 1e37
			}
		}
		if k%11 == 7 && cols > 0 {
			row[k%cols] = []float32{float32(math.NaN()), float32(math.Inf(-1)), 3.3e38}[k%3]
		}
		if k%11 == 8 && cols > 1 {
			row[0], row[cols-1] = -3e38, 3e38
		}
	}
	for i, v := range r.Perm(own + sums)[:n] {
		s.index, s.ids = append(s.index, uint32(v)), append(s.ids, uint32(1000+7*i))
		s.isSum = append(s.isSum, v >= own)
	}
	return s
}

func rowsOf(x []float32, cols int) (rows [][]float32) {
	for ; cols > 0 && len(x) > 0; x = x[cols:] {
		rows = append(rows, x[:cols])
	}
	return rows
}

// here returns s as codec.Rows.
func (s *shipment) here() codec.Rows {
	return codec.Rows{X: s.x, More: s.more, Cols: s.cols, Len: s.n, Index: s.index, IDs: s.ids, Sums: s.isSum}
}

// far is an Ops on a stand-in for a device.
type far struct {
	*cuda.Ops
	arena *mapped.Arena
}

func newFar(t *testing.T, backwards bool) far {
	d := ptx.New(ptx.Settings{Backwards: backwards})
	o, err := cuda.New(d, cuda.Own)
	if err != nil {
		t.Fatal(err)
	}
	f := far{o, mapped.NewArena()}
	t.Cleanup(func() { f.arena.Free(); o.Close(); d.Close() })
	return f
}

func (f far) mat(rows, cols int, x []float32) kernels.Mat {
	m := kernels.NewMat(f, f.arena, rows, cols)
	kernels.Write(f, m, x)
	return m
}

func (f far) read(m kernels.Mat) []float32 {
	x := make([]float32, m.Rows*m.Cols)
	kernels.Read(f, x, m)
	return x
}

// encode returns the block of s by kernels. They update lost unless it is nil.
func (f far) encode(c codec.Coded, s *shipment, k codec.Key, lost []float32) []byte {
	size, _ := c.Size(s.n, s.cols)
	bytes := kernels.NewVector[uint8](f, f.arena, size)
	rows := kernels.Outgoing{
		X: f.mat(s.own, s.cols, s.x), More: f.mat(s.sums, s.cols, s.more),
		Index: kernels.Place(f, f.arena, s.index), IDs: kernels.Place(f, f.arena, s.ids),
		Raw: f.mat(s.n, s.cols, make([]float32, s.n*s.cols)),
	}
	rows.Rows, rows.Sums = codec.Draws(k)
	if lost != nil {
		rows.Lost = f.mat(s.n, s.cols, lost)
	}
	f.EncodeRows(bytes, c.Bits(), rows)
	block := append(make([]byte, codec.BlockHeader), kernels.FetchVector(f, bytes)...)
	raw := f.read(rows.Raw)
	for i := range s.n {
		if c.Raw(block[codec.BlockHeader:], i, s.n, s.cols) {
			block = append(block, mapped.Bytes(raw[i*s.cols:(i+1)*s.cols])...)
		}
	}
	codec.Seal(block, c, s.n, s.cols, 5)
	if lost != nil {
		copy(lost, f.read(rows.Lost))
	}
	return block
}

// decode decodes a block into x and more.
func (f far) decode(t *testing.T, c codec.Coded, block []byte, s *shipment, x, more []float32, add bool) {
	b, err := codec.Open(block, c)
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]float32, s.n*s.cols)
	payload, err := b.Coded(c, func(i int, row []byte) { copy(mapped.Bytes(raw[i*s.cols:]), row) })
	if err != nil {
		t.Fatal(err)
	}
	rows := kernels.Incoming{
		X: f.mat(s.own, s.cols, x), More: f.mat(s.sums, s.cols, more), Index: kernels.Place(f, f.arena, s.index),
		Len: s.n, Raw: f.mat(s.n, s.cols, raw), Add: add,
	}
	f.DecodeRows(rows, c.Bits(), kernels.Place(f, f.arena, payload))
	copy(x, f.read(rows.X))
	copy(more, f.read(rows.More))
}

// Kernels give the same bytes, errors and decoded bits as the processor's codecs, for any
// rows, in both orders of blocks.
func TestKernelsCodeAlike(t *testing.T) {
	for _, name := range []string{"bf16", "int8", "int4", "int2"} {
		any, err := codec.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		c := any.(codec.Coded)
		for k, cols := range []int{1, 2, 3, 7, 8, 31, 33, 64, 127, 257, 300} {
			t.Run(fmt.Sprint(name, " ", cols), func(t *testing.T) {
				f := newFar(t, k%2 == 1)
				for _, n := range []int{1, 45} {
					s := oddly(n, 50, 17, cols, uint64(cols))
					alike(t, f, c, &s, false)
					alike(t, f, c, &s, true)
				}
			})
		}
	}
}

func alike(t *testing.T, f far, c codec.Coded, s *shipment, feedback bool) {
	var lost, lostThere []float32
	if feedback {
		lost = make([]float32, s.n*s.cols)
		lostThere = slices.Clone(lost)
	}
	var block []byte
	for epoch := range 2 { // errors of the first are fed back in the second
		key := codec.Key{Seed: 77, Epoch: epoch, Layer: 1, From: 3, Backward: feedback}
		block = codec.EncodeBlock(nil, c, s.here(), 5, key, lost)
		if got := f.encode(c, s, key, lostThere); !bytes.Equal(got, block) {
			t.Fatalf("%d rows, feedback %t, epoch %d: %d bytes by kernels that differ from %d", s.n, feedback, epoch, len(got), len(block))
		}
		sameBits(t, "what is lost", lostThere, lost)
	}
	for _, add := range []bool{false, true} {
		want, got := *s, *s
		want.x, want.more = slices.Clone(s.x), slices.Clone(s.more)
		got.x, got.more = slices.Clone(s.x), slices.Clone(s.more)
		b, err := codec.Open(block, c)
		if err == nil {
			err = b.Decode(c, want.here(), add)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.decode(t, c, block, s, got.x, got.more, add)
		sameBits(t, "rows", got.x, want.x)
		sameBits(t, "sums", got.more, want.more)
	}
}

// sameBits treats all NaNs as equal.
func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("%s: element %d is %v (%08x) instead of %v (%08x)", what, i, got[i], math.Float32bits(got[i]),
				want[i], math.Float32bits(want[i]))
		}
	}
}
