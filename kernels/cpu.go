package kernels

import (
	"unsafe"

	"siafu/internal/mapped"
)

// A Team is an Ops: its methods are the kernels, on matrices of this process's
// memory.

var _ Ops = (*Team)(nil)

// mustFit panics if shapes do not fit.
func mustFit(ok bool) {
	if !ok {
		panic("kernels: matrices whose shapes do not fit")
	}
}

// isSameShape reports whether matrices have the same shape.
func isSameShape(a, b Mat) bool { return a.Rows == b.Rows && a.Cols == b.Cols }

// Fork implements Ops.
func (t *Team) Fork() Ops {
	f := NewTeam(1)
	if f.Use(t.kernel) != nil {
		panic("kernels: the kernels in use are missing")
	}
	f.rounds, f.emulates = t.rounds, t.emulates
	return f
}

// Has implements Ops.
func (t *Team) Has(f Feature) bool {
	return (FusedInputGrad | ListedRows | SignedAttention).Includes(f)
}

// Intervals implements Ops.
func (t *Team) Intervals(cached int) int { return cached }

// Remote implements Ops.
func (t *Team) Remote() bool { return false }

// Alloc implements Ops.
func (t *Team) Alloc(a *mapped.Arena, bytes int) unsafe.Pointer {
	b := mapped.Make[byte](a, bytes)
	return start(b, len(b))
}

// Upload implements Ops.
func (t *Team) Upload(dst unsafe.Pointer, src []byte) {
	copy(unsafe.Slice((*byte)(dst), len(src)), src)
}

// Download implements Ops.
func (t *Team) Download(dst []byte, src unsafe.Pointer) {
	copy(dst, unsafe.Slice((*byte)(src), len(dst)))
}

// Copy implements Ops.
func (t *Team) Copy(dst, src Mat) {
	mustFit(isSameShape(dst, src))
	copy(dst.Host(), src.Host())
}

// Clear implements Ops.
func (t *Team) Clear(dst Mat) { clear(dst.Host()) }

// Step implements Ops.
func (t *Team) Step(o Optimizer, step int, w, grad Mat, state []Mat, decay bool) {
	mustFit(isSameShape(w, grad))
	t.state = t.state[:0]
	for _, s := range state {
		t.state = append(t.state, s.Host())
	}
	o.Step(step, w.Host(), grad.Host(), t.state, decay)
}
