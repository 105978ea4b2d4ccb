//go:build cgo

package driver

/*
#include "libraries_shim.h"
*/
import "C"

import (
	"fmt"
	"math"
	"sync"

	"siafu/cuda/device"
)

// blasWorkspace is the bytes that cuBLAS's documentation recommends for a handle on GPUs of
// compute capability 9.0, which need most.
const blasWorkspace = 32 << 20

// blas implements device.BLAS.
//
// Design note: cuBLAS guarantees the same bits in two runs if a handle has its own stream and
// workspace. In its default mode float32 is multiplied as float32; TF32 is another mode, which
// siafu does not use.
type blas struct {
	device    *opened
	library   *blasCalls
	mu        sync.Mutex // of the handle
	handle    C.cublasHandle_t
	workspace device.Ptr
}

func (d *opened) BLAS(s device.Stream) (device.BLAS, error) {
	library, err := blasLibrary()
	if err != nil {
		return nil, err
	}
	return d.openBLAS(library, s.(*stream))
}

func (d *opened) openBLAS(library *blasCalls, s *stream) (device.BLAS, error) {
	b := &blas{device: d, library: library}
	if err := b.check("cublasCreate", C.siafu_blas_create(d.calls, d.context, library.calls, &b.handle)); err != nil {
		return nil, err
	}
	workspace, err := d.Alloc(blasWorkspace)
	if err == nil {
		b.workspace = workspace
		err = b.check("cublasSetWorkspace",
			C.siafu_blas_prepare(d.calls, d.context, library.calls, b.handle, s.handle, C.CUdeviceptr(workspace), blasWorkspace))
	}
	if err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

func (b *blas) check(call string, status C.int) error {
	return b.device.status(call, status, func(s C.int) *C.char { return C.siafu_blas_name(b.library.calls, s) }, C.SIAFU_BLAS_ALLOC_FAILED)
}

func (b *blas) Name() string { return "cuBLAS " + b.library.version }

func (b *blas) Gemm(g device.Gemm) error {
	for _, n := range [...]int{g.M, g.N, g.K, g.LDA, g.LDB, g.LDC} {
		if n < 1 || n > math.MaxInt32 {
			return fmt.Errorf("cuda: cuBLAS does not support the product %+v", g)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.device
	status := C.siafu_gemm(d.calls, d.context, b.library.calls, b.handle, op(g.TransA), op(g.TransB), C.int(g.M), C.int(g.N), C.int(g.K),
		C.CUdeviceptr(g.A), C.int(g.LDA), C.CUdeviceptr(g.B), C.int(g.LDB), C.float(g.Beta), C.CUdeviceptr(g.C), C.int(g.LDC))
	if status == 0 {
		return nil
	}
	return b.check("cublasSgemm", status)
}

func op(transposed bool) C.int {
	if transposed {
		return C.SIAFU_OP_T
	}
	return C.SIAFU_OP_N
}

func (b *blas) Close() error {
	d := b.device
	err := b.check("cublasDestroy", C.siafu_blas_destroy(d.calls, d.context, b.library.calls, b.handle))
	if b.workspace != 0 {
		if freed := d.Free(b.workspace); err == nil {
			err = freed
		}
	}
	return err
}
