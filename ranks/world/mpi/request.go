//go:build mpi

package mpi

import (
	"runtime"
	"runtime/cgo"
)

// request is a pending communication: a group of MPI requests that complete together. MPI may write
// into the buffers until then, even if the caller drops the request. So the request stays
// reachable, and its buffers pinned, until MPI reports completion, or forever if it is never tested
// again.
type request struct {
	c     *comm
	stall stall // for reports if the request does not end
	mem   memory
	after func() // called after completion, may be nil

	pin   runtime.Pinner
	hold  cgo.Handle
	ended bool
	err   error
}

// request makes a request with n MPI requests and memory for ints numbers.
func (c *comm) request(s stall, n, ints int) *request {
	r := &request{c: c, stall: s, mem: newMemory(n, ints)}
	r.hold = cgo.NewHandle(r)
	return r
}

// keep pins buffers until the request ends.
func (r *request) keep(buffers ...[]byte) {
	for _, b := range buffers {
		if len(b) > 0 {
			r.pin.Pin(&b[0])
		}
	}
}

// begun returns the request after the MPI calls that began it. err is their first error. If there
// is one, the memory of the successful calls is not released, because they continue.
func (r *request) begun(err error) (*request, error) {
	if err != nil {
		r.c.p.failed.Store(true)
		return nil, r.stall.wrap(err)
	}
	return r, nil
}

// whole checks err like begun, and waits for the request.
func (r *request) whole(err error) error {
	if _, err := r.begun(err); err != nil {
		return err
	}
	return r.Wait()
}

func (r *request) Test() (bool, error) {
	if r.ended || r.err != nil {
		return r.ended, r.err
	}
	ended, err := r.mem.test()
	switch {
	case err != nil:
		r.c.p.failed.Store(true)
		r.err = r.stall.wrap(err)
		return false, r.err
	case ended:
		r.release()
	}
	return ended, nil
}

// release releases the memory of the request.
func (r *request) release() {
	r.ended = true
	if r.after != nil {
		r.after() // before free: it may use the numbers in mem
	}
	r.pin.Unpin()
	r.mem.free()
	r.hold.Delete()
}

func (r *request) Wait() error {
	if r.ended || r.err != nil {
		return r.err
	}
	err := r.c.poll(r.stall, r.Test)
	if err != nil && r.err == nil {
		r.err = err
		r.c.p.park(r)
	}
	return err
}
