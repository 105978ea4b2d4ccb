//go:build mpi

package mpi

/*
#cgo linux CFLAGS: -I/usr/lib/x86_64-linux-gnu/openmpi/include -pthread
#cgo linux LDFLAGS: -pthread -L/usr/lib/x86_64-linux-gnu/openmpi/lib -lmpi -ldl
#cgo noescape siafu_improbe
#cgo nocallback siafu_improbe
#cgo nocallback siafu_test
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"strings"
	"syscall"
	"unsafe"
)

// Only this file of the package uses C. The flags name the same folders as those of gompi, because
// both must link the same library. The Makefile sets CGO_CFLAGS and CGO_LDFLAGS, which precede them, to
// those of the MPI of MPICC.

// handle is a communicator of MPI.
type handle struct{ comm C.MPI_Comm }

// failure returns the error of an MPI call with return code rc, nil for success.
func failure(call string, rc C.int) error {
	if rc == C.MPI_SUCCESS {
		return nil
	}
	text := (*C.char)(C.calloc(1, C.MPI_MAX_ERROR_STRING))
	defer C.free(unsafe.Pointer(text))
	if C.siafu_error(rc, text) != C.MPI_SUCCESS {
		return fmt.Errorf("%s: MPI error %d", call, int(rc))
	}
	return fmt.Errorf("%s: %s", call, C.GoString(text))
}

// dupWorld duplicates MPI_COMM_WORLD. Collective, blocking.
func dupWorld() (h handle, err error) {
	return h, failure("MPI_Comm_dup", C.siafu_world(&h.comm))
}

// dup duplicates a communicator. Collective, blocking.
func (h handle) dup() (d handle, err error) {
	return d, failure("MPI_Comm_dup", C.siafu_dup(h.comm, &d.comm))
}

// subset makes the communicator of the given ranks of h. Collective over those
// ranks only, blocking.
func (h handle) subset(ranks []int32) (s handle, err error) {
	list := (*C.int)(unsafe.Pointer(unsafe.SliceData(ranks)))
	return s, failure("MPI_Comm_create_group", C.siafu_subset(h.comm, C.int(len(ranks)), list, &s.comm))
}

func hostName() (string, error) {
	text := (*C.char)(C.calloc(1, C.MPI_MAX_PROCESSOR_NAME))
	defer C.free(unsafe.Pointer(text))
	err := failure("MPI_Get_processor_name", C.siafu_name(text))
	return C.GoString(text), err
}

// Library returns the name and the version of the MPI library, such as "Open MPI v4.1.4" and "MPICH
// 4.0.2".
func Library() string {
	text := (*C.char)(C.calloc(1, C.MPI_MAX_LIBRARY_VERSION_STRING))
	defer C.free(unsafe.Pointer(text))
	if C.siafu_library(text) != C.MPI_SUCCESS {
		return "MPI"
	}
	line, _, _ := strings.Cut(C.GoString(text), "\n")
	name, _, _ := strings.Cut(line, ",")
	return strings.Join(strings.Fields(strings.Replace(name, "Version:", " ", 1)), " ")
}

// File returns the path of the MPI library as the loader has found it. Its last element is the name that
// the program was linked with.
func File() string { return C.GoString(C.siafu_file()) }

// outlive makes the library continue after lost connections.
func outlive() error {
	if rc := C.siafu_outlive(); rc != 0 {
		return syscall.Errno(rc)
	}
	return nil
}

// abortWorld ends all processes of the world.
func abortWorld(code int) { C.siafu_abort(C.int(code)) }

// symbol returns the address of a C function in a library of this process, or nil.
func symbol(name string) unsafe.Pointer {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return C.siafu_symbol(text)
}

// knowsDevices reports whether the library supports memory of CUDA devices, by a call that Open MPI
// and its derivatives have.
func knowsDevices() bool {
	question := symbol("MPIX_Query_cuda_support")
	return question != nil && C.siafu_ask(question) == 1
}

// bindThreads sets a C function that is called with context on each thread before it calls MPI; nil
// for none.
func bindThreads(call, context unsafe.Pointer) { C.siafu_bind(call, context) }

// memory is C memory for a group of MPI requests, and for the numbers that these requests refer to
// until they end.
type memory struct {
	base    unsafe.Pointer
	n, next C.int   // number of requests, and of ended ones
	ints    []int32 // unused numbers
}

const requestBytes = C.size_t(unsafe.Sizeof(*(*C.MPI_Request)(nil)))

// newMemory allocates n requests, all null, and some numbers.
func newMemory(n, ints int) memory {
	bytes := C.size_t(n)*requestBytes + C.size_t(ints)*4
	m := memory{base: C.malloc(bytes + 1), n: C.int(n)} // malloc(0) may be nil
	C.siafu_clear(m.request(0), m.n)
	m.ints = unsafe.Slice((*int32)(unsafe.Add(m.base, C.size_t(n)*requestBytes)), ints)
	return m
}

// take returns k unused numbers.
func (m *memory) take(k int) []int32 {
	part := m.ints[:k:k]
	m.ints = m.ints[k:]
	return part
}

func (m *memory) free() { C.free(m.base) }

func (m *memory) request(i int) *C.MPI_Request {
	return (*C.MPI_Request)(unsafe.Add(m.base, C.size_t(i)*requestBytes))
}

// test lets MPI make progress and reports whether all requests have ended.
func (m *memory) test() (bool, error) {
	place := enter()
	next := C.siafu_test(m.request(0), m.n, m.next)
	leave(place)
	if next < 0 {
		return false, failure("MPI_Test", -next)
	}
	m.next = next
	return next == m.n, nil
}

func (m *memory) ibarrier(i int, h handle) error {
	return failure("MPI_Ibarrier", C.siafu_ibarrier(h.comm, m.request(i)))
}

func (m *memory) ibcast(i int, h handle, buf []byte, root int) error {
	return failure("MPI_Ibcast", C.siafu_ibcast(start(buf), C.int(len(buf)), C.int(root), h.comm, m.request(i)))
}

func (m *memory) iallgatherv(i int, h handle, send, recv []byte, counts, displs []int32) error {
	return failure("MPI_Iallgatherv", C.siafu_iallgatherv(start(send), C.int(len(send)),
		start(recv), first(counts), first(displs), h.comm, m.request(i)))
}

func (m *memory) ialltoallv(i int, h handle, send, recv lane) error {
	return failure("MPI_Ialltoallv", C.siafu_ialltoallv(start(send.buf), first(send.counts), first(send.displs),
		start(recv.buf), first(recv.counts), first(recv.displs), h.comm, m.request(i)))
}

func (m *memory) isend(i int, h handle, buf []byte, dst, tag int) error {
	defer leave(enter())
	return failure("MPI_Isend", C.siafu_isend(start(buf), C.int(len(buf)), C.int(dst), C.int(tag), h.comm, m.request(i)))
}

func (m *memory) irecv(i int, h handle, buf []byte, src, tag int) error {
	defer leave(enter())
	return failure("MPI_Irecv", C.siafu_irecv(start(buf), C.int(len(buf)), C.int(src), C.int(tag), h.comm, m.request(i)))
}

// found is a message that MPI has matched and that no other call receives.
type found struct {
	source, tag, length int
	message             C.MPI_Message
}

// improbe matches the next message. A negative source or tag matches any.
func (h handle) improbe(source, tag int) (f found, ok bool, err error) {
	defer leave(enter())
	var p C.siafu_probe
	if err := failure("MPI_Improbe", C.siafu_improbe(C.int(source), C.int(tag), h.comm, &p)); err != nil {
		return f, false, err
	}
	return found{int(p.source), int(p.tag), int(p.count), p.message}, p.found != 0, nil
}

// imrecv receives a matched message into buf.
func (m *memory) imrecv(i int, f *found, buf []byte) error {
	return failure("MPI_Imrecv", C.siafu_imrecv(start(buf), C.int(len(buf)), &f.message, m.request(i)))
}

// start returns the address of a buffer, or nil for an empty one, which MPI accepts.
func start(buf []byte) unsafe.Pointer {
	if len(buf) == 0 {
		return nil
	}
	return unsafe.Pointer(unsafe.SliceData(buf))
}

func first(ints []int32) *C.int { return (*C.int)(unsafe.Pointer(unsafe.SliceData(ints))) }
