package trace

import (
	"time"

	"siafu/ranks/world"
)

// Watch returns a communicator that adds the blocking time of its calls to r. Communicators that
// its Sub creates do so, too.
func Watch(c world.Comm, r *Recorder) world.Comm { return &watched{c, r} }

type watched struct {
	world.Comm
	recorder *Recorder
}

// since adds the time since a call began to the waiting time.
func (w *watched) since(began time.Time) { w.recorder.waited.Add(int64(time.Since(began))) }

func (w *watched) Ialltoallv(send []byte, sendCounts []int, recv []byte, recvCounts []int) (world.Request, error) {
	return w.request(w.Comm.Ialltoallv(send, sendCounts, recv, recvCounts))
}

func (w *watched) Isend(buf []byte, dst, tag int) (world.Request, error) {
	return w.request(w.Comm.Isend(buf, dst, tag))
}

func (w *watched) request(r world.Request, err error) (world.Request, error) {
	if err != nil {
		return nil, err
	}
	return &request{r, w}, nil
}

func (w *watched) Barrier() error {
	defer w.since(time.Now())
	return w.Comm.Barrier()
}

func (w *watched) Bcast(buf []byte, root int) error {
	defer w.since(time.Now())
	return w.Comm.Bcast(buf, root)
}

func (w *watched) Allgatherv(send, recv []byte, counts []int) error {
	defer w.since(time.Now())
	return w.Comm.Allgatherv(send, recv, counts)
}

func (w *watched) Recv(src, tag int) (world.Message, error) {
	defer w.since(time.Now())
	return w.Comm.Recv(src, tag)
}

func (w *watched) Sub(ranks []int) (world.Comm, error) {
	defer w.since(time.Now())
	c, err := w.Comm.Sub(ranks)
	if err != nil || c == nil {
		return nil, err
	}
	return Watch(c, w.recorder), nil
}

// Pause implements world.Pauser.
func (w *watched) Pause(d time.Duration) { world.Pause(w.Comm, d) }

// EagerLimit implements world.EagerLimiter.
func (w *watched) EagerLimit() int { return world.EagerLimit(w.Comm) }

// request counts the time that Wait blocks.
type request struct {
	world.Request
	comm *watched
}

func (r *request) Wait() error {
	defer r.comm.since(time.Now())
	return r.Request.Wait()
}
