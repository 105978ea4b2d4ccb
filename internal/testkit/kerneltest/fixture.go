package kerneltest

import (
	"math"
	"unsafe"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// fixture copies the slices of a case to the memory of an Ops, and results back. The same slice maps
// to the same matrix. Output matrices have guards in the memory of the Ops.
type fixture struct {
	kernels.Ops
	direct bool // no copies: matrices are the slices themselves
	arena  *mapped.Arena
	mats   map[*float32]kernels.Mat
	back   []func()
}

func newFixture(o kernels.Ops) *fixture {
	return &fixture{Ops: o, arena: mapped.NewArena(), mats: map[*float32]kernels.Mat{}}
}

// flush copies results back, so that the next kernel reads and writes new copies of slices.
func (l *fixture) flush() {
	for _, take := range l.back {
		take()
	}
	l.back = nil
	clear(l.mats)
}

// done copies results back and frees the memory.
func (l *fixture) done() {
	l.flush()
	l.arena.Free()
}

// in returns x [rows x cols] for reading, or the matrix that out made of x. A nil x gives an
// absent matrix.
func (l *fixture) in(rows, cols int, x []float32) kernels.Mat {
	if x == nil {
		return kernels.Mat{}
	}
	if l.direct {
		return kernels.HostMat(rows, cols, x)
	}
	if m, ok := l.mats[unsafe.SliceData(x)]; ok && rows*cols > 0 {
		return m.Reshape(rows, cols)
	}
	m := kernels.NewMat(l, l.arena, rows, cols)
	kernels.Write(l, m, x)
	return m
}

// out returns x [rows x cols] for writing.
func (l *fixture) out(rows, cols int, x []float32) kernels.Mat {
	if x == nil {
		return kernels.Mat{}
	}
	if l.direct {
		return kernels.HostMat(rows, cols, x)
	}
	n := rows * cols
	all := guarded(x[:n])
	all = unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(all)), -4*guardLen)), n+2*guardLen)
	there := kernels.NewMat(l, l.arena, len(all), 1)
	kernels.Write(l, there, all)
	l.back = append(l.back, func() {
		kernels.Read(l, all, there)
		copy(x, all[guardLen:guardLen+n])
		for i := range guardLen {
			for _, g := range []float32{all[i], all[guardLen+n+i]} {
				if math.Float32bits(g) != guardBits {
					panic("kerneltest: an Ops wrote outside of its matrix")
				}
			}
		}
	})
	m := there.Part(guardLen, guardLen+n).Reshape(rows, cols)
	if n > 0 {
		l.mats[unsafe.SliceData(x)] = m
	}
	return m
}

// place copies x, so that the Ops does not share memory with the case.
func place[T mapped.Elem](l *fixture, x []T) kernels.Vector[T] {
	if l.direct {
		return kernels.HostVector(x)
	}
	v := kernels.NewVector[T](l, l.arena, len(x))
	if len(x) > 0 {
		l.Upload(v.Address(), mapped.Bytes(x))
	}
	return v
}

// half returns x, whose rows have cols columns, with slack after the last row.
func (l *fixture) half(rows, cols int, x []kernels.BF16) kernels.Mat {
	if l.direct {
		return kernels.HostHalf(rows, cols, x)
	}
	m := kernels.NewHalf(l, l.arena, rows, cols, kernels.HalfSlack)
	l.Upload(m.Address(), mapped.Bytes(x[:rows*cols]))
	return m
}

func (l *fixture) drop(d *kernels.Dropout) *kernels.Dropout {
	if d == nil {
		return nil
	}
	there := *d
	there.IDs = place(l, d.IDs.Host())
	return &there
}

func (l *fixture) edges(g kernels.Gather) kernels.Edges {
	return kernels.Edges{
		Begin: place(l, g.Begin), End: place(l, g.End), Cols: place(l, g.Cols), Weights: place(l, g.Weights), Base: g.Base,
		RowScale: place(l, g.RowScale), ColScale: place(l, g.ColScale), SelfLoops: g.SelfLoops, First: g.First,
		Features: place(l, g.Features), Self: place(l, g.Self), At: place(l, g.At),
	}
}

func (l *fixture) sparse(xs graph.SparseRows) kernels.Sparse {
	return kernels.Sparse{Offsets: place(l, xs.Offsets), Cols: place(l, xs.Cols), Vals: place(l, xs.Vals), Source: xs}
}

// rowsOf returns the number of rows in x.
func rowsOf[T any](x []T, width int) int { return len(x) / max(width, 1) }
