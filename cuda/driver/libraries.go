//go:build cgo

package driver

/*
#include "libraries_shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"siafu/cuda/device"
)

var _ device.Libraries = (*opened)(nil)

// cuBLAS and cuSPARSE are opened like the driver, on first use, and stay open. The newest
// version is tried first.
var (
	blasLibrary = sync.OnceValues(func() (*blasCalls, error) {
		return openBLAS("libcublas.so.13", "libcublas.so.12", "libcublas.so.11")
	})
	sparseLibrary = sync.OnceValues(func() (*sparseCalls, error) {
		return openSparse("libcusparse.so.12", "libcusparse.so.11")
	})
)

// blasCalls and sparseCalls have the calls of a library and its version.
type blasCalls struct {
	calls   *C.siafu_blas
	version string
}

type sparseCalls struct {
	calls   *C.siafu_sparse
	version string
}

func openBLAS(names ...string) (*blasCalls, error) {
	l := &blasCalls{calls: (*C.siafu_blas)(C.calloc(1, C.size_t(unsafe.Sizeof(C.siafu_blas{}))))}
	err := first(names, func(name *C.char) *C.char { return C.siafu_blas_open(name, l.calls) })
	if err != nil {
		return nil, err
	}
	l.version = version(func(which C.int, value *C.int) { C.siafu_blas_property(l.calls, which, value) })
	return l, nil
}

func openSparse(names ...string) (*sparseCalls, error) {
	l := &sparseCalls{calls: (*C.siafu_sparse)(C.calloc(1, C.size_t(unsafe.Sizeof(C.siafu_sparse{}))))}
	err := first(names, func(name *C.char) *C.char { return C.siafu_sparse_open(name, l.calls) })
	if err != nil {
		return nil, err
	}
	l.version = version(func(which C.int, value *C.int) { C.siafu_sparse_property(l.calls, which, value) })
	return l, nil
}

// first opens the first available one of the named libraries; an ErrLibrary has the reason if
// there is none.
func first(names []string, open func(name *C.char) *C.char) error {
	err := device.ErrLibrary
	for _, name := range names {
		path := C.CString(name)
		wrong := open(path)
		C.free(unsafe.Pointer(path))
		if wrong == nil {
			return nil
		}
		err = fmt.Errorf("%w; %s", err, C.GoString(wrong))
	}
	return err
}

// version returns a library's version from its properties.
func version(property func(which C.int, value *C.int)) string {
	var v [3]C.int
	for i := range v {
		property(C.int(i), &v[i])
	}
	return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2])
}

// Libraries returns the additional libraries of this host. Another Binding uses none.
func Libraries() []Found {
	if binding != nil {
		return nil
	}
	blas, noBLAS := blasLibrary()
	sparse, noSparse := sparseLibrary()
	found := []Found{{Name: "cublas", Err: noBLAS}, {Name: "cusparse", Err: noSparse}}
	if noBLAS == nil {
		found[0].Version = blas.version
	}
	if noSparse == nil {
		found[1].Version = sparse.version
	}
	return found
}

// status returns the error of a library's call, nil if it is 0. Negative codes are the
// driver's.
func (d *opened) status(call string, status C.int, name func(C.int) *C.char, memory ...C.int) error {
	if status <= 0 {
		return d.check("cuCtxSetCurrent", C.CUresult(-status))
	}
	err := errors.New(C.GoString(name(status)))
	for _, m := range memory {
		if status == m {
			err = fmt.Errorf("%w: %w", err, device.ErrMemory)
		}
	}
	return fmt.Errorf("%s: %w", call, err)
}
