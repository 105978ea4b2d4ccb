package ptx

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"siafu/cuda/device"
)

// Stand-ins for cuBLAS and cuSPARSE: plain loops on the memory of a device, in the order of
// its stream. Like copies, they find reads out of bounds and of unwritten memory. They give a
// library's results, not its performance.

var _ device.Libraries = (*Device)(nil)

// beside returns the stream of a library.
func (d *Device) beside(s device.Stream) (*stream, error) {
	own, ok := s.(*stream)
	if !ok || own.device != d {
		return nil, fmt.Errorf("ptx: a stream of another device")
	}
	if !d.settings.Libraries {
		return nil, fmt.Errorf("ptx: %w", device.ErrLibrary)
	}
	return own, nil
}

// BLAS implements device.Libraries.
func (d *Device) BLAS(s device.Stream) (device.BLAS, error) {
	own, err := d.beside(s)
	if err != nil {
		return nil, err
	}
	return &blas{own}, nil
}

// Sparse implements device.Libraries.
func (d *Device) Sparse(s device.Stream) (device.Sparse, error) {
	own, err := d.beside(s)
	if err != nil {
		return nil, err
	}
	return &sparse{own}, nil
}

// columns has count columns of rows elements each, stride elements apart: a column-major
// matrix, or the rows of a row-major one.
type columns struct {
	*region
	at           uint64
	rows, stride int
	count        int
	elem         int // bytes of an element
}

// columns returns the columns of a matrix at p, all in one allocation.
func (d *Device) columns(p device.Ptr, rows, count, stride, elem int, verb string) (columns, error) {
	if rows < 1 || count < 1 || stride < rows {
		return columns{}, fmt.Errorf("ptx: %s: %d columns of %d elements, %d apart", verb, count, rows, stride)
	}
	r, at, err := d.bytes(p, elem*((count-1)*stride+rows), verb)
	return columns{r, at, rows, stride, count, elem}, err
}

// offset returns the offset of element (i, j).
func (c columns) offset(i, j int) uint64 { return c.at + uint64(c.elem*(j*c.stride+i)) }

// get returns element (i, j), a float.
func (c columns) get(i, j int) float32 {
	if c.elem == 2 {
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(c.data[c.offset(i, j):])) << 16)
	}
	return math.Float32frombits(c.word(i, j))
}

func (c columns) word(i, j int) uint32 { return binary.LittleEndian.Uint32(c.data[c.offset(i, j):]) }

// put sets element (i, j), a float.
func (c columns) put(i, j int, x float32) {
	binary.LittleEndian.PutUint32(c.data[c.offset(i, j):], math.Float32bits(x))
	c.written(c.offset(i, j), 4)
}

// readable returns a Finding if an element was never written.
func (c columns) readable(verb string) error {
	for j := range c.count {
		if at := c.unwritten(c.offset(0, j), c.elem*c.rows); at >= 0 {
			return &Finding{Kind: Uninitialised, Detail: verb, Address: c.base + uint64(at), Bytes: c.elem, Allocation: c.String()}
		}
	}
	return nil
}

// blas implements device.BLAS.
type blas struct{ stream *stream }

func (*blas) Name() string { return "a stand-in for cuBLAS" }

func (*blas) Close() error { return nil }

// Gemm implements device.BLAS, each element summed in order of k.
func (l *blas) Gemm(g device.Gemm) error {
	return l.stream.locked(func() (err error) {
		operand := func(p device.Ptr, rows, cols, ld int, transposed bool, verb string) columns {
			if transposed {
				rows, cols = cols, rows
			}
			m, wrong := l.stream.device.columns(p, rows, cols, ld, 4, verb)
			err = cmp.Or(err, wrong)
			return m
		}
		a := operand(g.A, g.M, g.K, g.LDA, g.TransA, "a of a Gemm")
		b := operand(g.B, g.K, g.N, g.LDB, g.TransB, "b of a Gemm")
		c := operand(g.C, g.M, g.N, g.LDC, false, "c of a Gemm")
		if err != nil {
			return err
		}
		return l.stream.add(0, func() error { return multiply(g, a, b, c) })
	})
}

func multiply(g device.Gemm, a, b, c columns) error {
	read := map[string]columns{"a of a Gemm": a, "b of a Gemm": b}
	if g.Beta != 0 {
		read["c of a Gemm"] = c
	}
	for verb, m := range read {
		if err := m.readable(verb); err != nil {
			return err
		}
	}
	at := func(m columns, transposed bool, i, j int) float32 {
		if transposed {
			i, j = j, i
		}
		return m.get(i, j)
	}
	for j := range g.N {
		for i := range g.M {
			sum := float32(0)
			for l := range g.K {
				sum += at(a, g.TransA, i, l) * at(b, g.TransB, l, j)
			}
			if g.Beta != 0 {
				sum += g.Beta * c.get(i, j)
			}
			c.put(i, j, sum)
		}
	}
	return nil
}

// sparse implements device.Sparse.
type sparse struct{ stream *stream }

func (*sparse) Name() string { return "a stand-in for cuSPARSE" }

func (*sparse) Close() error { return nil }

// spmm implements device.SpMM.
type spmm struct {
	stream                       *stream
	offsets, index, values, b, c columns
	rows                         int
}

// SpMM implements device.Sparse. There is one algorithm.
func (l *sparse) SpMM(m device.CSR, b, c device.Dense, _ device.Algorithm) (device.SpMM, error) {
	if m.Rows != c.Rows || m.Cols != b.Rows || b.Cols != c.Cols || m.Half != b.Half || c.Half {
		return nil, fmt.Errorf("ptx: an SpMM of shapes or types that do not fit")
	}
	elem := 4
	if m.Half {
		elem = 2
	}
	s := &spmm{stream: l.stream, rows: m.Rows}
	return s, l.stream.locked(func() (err error) {
		vector := func(p device.Ptr, n, elem int, verb string) columns {
			v, wrong := l.stream.device.columns(p, n, 1, n, elem, verb)
			err = cmp.Or(err, wrong)
			return v
		}
		s.offsets = vector(m.Offsets, m.Rows+1, 4, "offsets of an SpMM")
		s.index = vector(m.Index, m.Edges, 4, "an index of an SpMM")
		s.values = vector(m.Values, m.Edges, elem, "values of an SpMM")
		s.b = vector(b.At, b.Rows*b.Cols, elem, "b of an SpMM")
		s.c = vector(c.At, c.Rows*c.Cols, 4, "c of an SpMM")
		s.b.rows, s.b.stride, s.b.count = b.Cols, b.Cols, b.Rows
		s.c.rows, s.c.stride, s.c.count = c.Cols, c.Cols, c.Rows
		return err
	})
}

func (*spmm) Workspace() int { return 0 }

func (*spmm) Close() error { return nil }

func (s *spmm) Run() error {
	return s.stream.locked(func() error { return s.stream.add(0, s.gather) })
}

func (s *spmm) gather() error {
	for verb, m := range map[string]columns{"offsets of an SpMM": s.offsets, "an index of an SpMM": s.index,
		"values of an SpMM": s.values, "b of an SpMM": s.b} {
		if err := m.readable(verb); err != nil {
			return err
		}
	}
	for r := range s.rows {
		for j := range s.c.rows {
			sum := float32(0)
			for e := int(s.offsets.word(r, 0)); e < int(s.offsets.word(r+1, 0)); e++ {
				sum += s.values.get(e, 0) * s.b.get(j, int(s.index.word(e, 0)))
			}
			s.c.put(j, r, sum)
		}
	}
	return nil
}
