package cuda

import (
	"unsafe"

	"siafu/cuda/device"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Device memory. Its addresses pass through siafu/kernels as unsafe.Pointers that are never
// dereferenced there.

func pointer(p device.Ptr) unsafe.Pointer { return unsafe.Add(nil, uintptr(p)) }

func address(p unsafe.Pointer) device.Ptr { return device.Ptr(uintptr(p)) }

// matPtr returns the address of m, 0 if it is none or has no elements.
func matPtr(m kernels.Mat) device.Ptr { return devicePtr(m.Remote(), m.Address(), m.Bytes()) }

// vectorPtr returns the device address of a vector.
func vectorPtr[T mapped.Elem](v kernels.Vector[T]) device.Ptr {
	return devicePtr(v.Remote(), v.Address(), v.Bytes())
}

func devicePtr(remote bool, at unsafe.Pointer, bytes int) device.Ptr {
	if at == nil || bytes == 0 {
		return 0
	}
	if !remote {
		panic("cuda: an operand in the host's memory")
	}
	return address(at)
}

// Remote implements kernels.Ops.
func (o *Ops) Remote() bool { return true }

// Alloc implements kernels.Ops.
func (o *Ops) Alloc(a *mapped.Arena, bytes int) unsafe.Pointer {
	if bytes == 0 {
		return nil
	}
	p, err := o.device.Alloc(bytes)
	o.check(err)
	r := o.rank
	a.OnFree(func() { r.free(p, bytes) })
	o.check(o.stream.Set(p, 0, bytes))
	return pointer(p)
}

// free frees memory, and drops plans of matrices in it.
func (r *rank) free(p device.Ptr, bytes int) {
	r.forgetAt(p, bytes)
	if err := r.device.Free(p); err != nil {
		r.first(err)
	}
}

// Upload implements kernels.Ops.
func (o *Ops) Upload(dst unsafe.Pointer, src []byte) {
	if len(src) > 0 {
		o.forgetAt(address(dst), len(src))
		o.check(o.stream.CopyIn(address(dst), src))
	}
}

// Download implements kernels.Ops.
func (o *Ops) Download(dst []byte, src unsafe.Pointer) {
	if len(dst) > 0 {
		o.check(o.stream.CopyOut(dst, address(src)))
	}
}

// Copy implements kernels.Ops.
func (o *Ops) Copy(dst, src kernels.Mat) {
	mustFit(isSameShape(dst, src) && dst.Half() == src.Half())
	if to, from := matPtr(dst), matPtr(src); to != from {
		o.check(o.stream.Copy(to, from, dst.Bytes()))
	}
}

// Clear implements kernels.Ops.
func (o *Ops) Clear(dst kernels.Mat) {
	if bytes := dst.Bytes(); bytes > 0 {
		o.check(o.stream.Set(matPtr(dst), 0, bytes))
	}
}

// scratch returns bytes of the workspace with undefined content, for work queued before
// releaseScratch.
func (r *rank) scratch(bytes int) device.Ptr {
	w := &r.workspace
	w.mu.Lock()
	if w.size >= bytes {
		return w.at
	}
	if w.size > 0 {
		_ = r.device.Free(w.at) // after the queued work; a device that fails here fails the next call too
		w.size = 0
	}
	p, err := r.device.Alloc(bytes)
	if err != nil {
		w.mu.Unlock()
		r.check(err)
	}
	w.at, w.size = p, bytes
	return p
}

// Workspace returns the size of the workspace in bytes.
func (r *rank) Workspace() int64 {
	r.workspace.mu.Lock()
	defer r.workspace.mu.Unlock()
	return int64(r.workspace.size)
}

// scratchFloats returns scratch memory for n floats.
func (r *rank) scratchFloats(n int) device.Ptr { return r.scratch(4 * n) }

// releaseScratch releases the workspace.
func (r *rank) releaseScratch() { r.workspace.mu.Unlock() }
