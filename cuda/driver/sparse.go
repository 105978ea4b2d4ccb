//go:build cgo

package driver

/*
#include "libraries_shim.h"
*/
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"siafu/cuda/device"
)

// sparse implements device.Sparse.
type sparse struct {
	device  *opened
	library *sparseCalls
	handle  C.cusparseHandle_t
}

func (d *opened) Sparse(s device.Stream) (device.Sparse, error) {
	library, err := sparseLibrary()
	if err != nil {
		return nil, err
	}
	return d.openSparse(library, s.(*stream))
}

func (d *opened) openSparse(library *sparseCalls, s *stream) (device.Sparse, error) {
	l := &sparse{device: d, library: library}
	if err := l.check("cusparseCreate", C.siafu_sparse_create(d.calls, d.context, library.calls, &l.handle, s.handle)); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *sparse) check(call string, status C.int) error {
	return l.device.status(call, status, func(s C.int) *C.char { return C.siafu_sparse_name(l.library.calls, s) },
		C.SIAFU_SPARSE_ALLOC_FAILED, C.SIAFU_SPARSE_INSUFFICIENT_RESOURCES)
}

func (l *sparse) Name() string { return "cuSPARSE " + l.library.version }

func (l *sparse) Close() error {
	d := l.device
	return l.check("cusparseDestroy", C.siafu_sparse_destroy(d.calls, d.context, l.library.calls, l.handle))
}

// spmm implements device.SpMM.
type spmm struct {
	library   *sparse
	handle    *C.siafu_spmm
	workspace device.Ptr
	bytes     int
}

func (l *sparse) SpMM(a device.CSR, b, c device.Dense, algorithm device.Algorithm) (device.SpMM, error) {
	if a.Rows != c.Rows || a.Cols != b.Rows || b.Cols != c.Cols || a.Half != b.Half || c.Half ||
		max(a.Rows, a.Cols, a.Edges) > math.MaxInt32 {
		return nil, fmt.Errorf("cuda: SpMM: shapes or types do not match, or a size exceeds 2³¹-1: %+v, %+v and %+v", a, b, c)
	}
	d, p := l.device, &spmm{library: l, handle: (*C.siafu_spmm)(C.calloc(1, C.size_t(unsafe.Sizeof(C.siafu_spmm{}))))}
	kind := C.int(C.SIAFU_R_32F)
	if a.Half {
		kind = C.SIAFU_R_16BF
	}
	number := [...]C.int{C.SIAFU_SPMM_DEFAULT, C.SIAFU_SPMM_CSR_ALG2, C.SIAFU_SPMM_CSR_ALG3}[algorithm]
	var bytes C.size_t
	err := l.check("cusparseSpMM_bufferSize", C.siafu_spmm_describe(d.calls, d.context, l.library.calls, l.handle, p.handle,
		C.int64_t(a.Rows), C.int64_t(a.Cols), C.int64_t(a.Edges), C.CUdeviceptr(a.Offsets), C.CUdeviceptr(a.Index),
		C.CUdeviceptr(a.Values), kind,
		C.int64_t(b.Cols), C.CUdeviceptr(b.At), C.CUdeviceptr(c.At), number, &bytes))
	if err == nil {
		p.bytes = int(bytes)
		p.workspace, err = d.Alloc(p.bytes)
	}
	if err == nil {
		err = l.check("cusparseSpMM_preprocess",
			C.siafu_spmm_preprocess(d.calls, d.context, l.library.calls, l.handle, p.handle, C.CUdeviceptr(p.workspace)))
	}
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	return p, nil
}

func (p *spmm) Run() error {
	l := p.library
	return l.check("cusparseSpMM", C.siafu_spmm_run(l.device.calls, l.device.context, l.library.calls, l.handle, p.handle))
}

func (p *spmm) Workspace() int { return p.bytes }

func (p *spmm) Close() error {
	l := p.library
	err := l.check("cusparseDestroySpMat", C.siafu_spmm_end(l.device.calls, l.device.context, l.library.calls, p.handle))
	C.free(unsafe.Pointer(p.handle))
	if p.workspace != 0 {
		if freed := l.device.Free(p.workspace); err == nil {
			err = freed
		}
	}
	return err
}
