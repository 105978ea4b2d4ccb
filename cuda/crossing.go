package cuda

import (
	"unsafe"

	"siafu/cuda/device"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// crossing implements kernels.Crossing on the streams of copies that a rank's Ops share.
// Copies of one direction complete in the order of their start.
type crossing struct {
	*rank
	mark, landed device.Event
	pinned       [][]byte
	outs         []device.Event // ends of copies out since the last Settle; the rest are spare
	begun        int            // used elements of outs
}

// copyStreams has the streams of copies, separate from the kernels' stream.
type copyStreams struct{ out, in device.Stream }

// Crossing implements kernels.Ops.
func (o *Ops) Crossing(a *mapped.Arena) kernels.Crossing {
	c := &crossing{rank: o.rank}
	o.check(o.openCopyStreams())
	c.mark, c.landed = c.event(), c.event()
	a.OnFree(c.close)
	return c
}

// Pin implements kernels.Crossing. If the system refuses, copies use the driver's own buffers.
func (c *crossing) Pin(b []byte) {
	if len(b) == 0 {
		return
	}
	if err := c.device.Pin(b); err != nil {
		c.warnPageable(err)
		return
	}
	c.pinned = append(c.pinned, b)
}

// openCopyStreams makes the streams of copies on first use.
func (r *rank) openCopyStreams() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range []*device.Stream{&r.ways.out, &r.ways.in} {
		if *s == nil && err == nil {
			*s, err = r.device.NewStream()
		}
	}
	return err
}

func (c *crossing) event() device.Event {
	e, err := c.device.NewEvent()
	c.check(err)
	return e
}

// close frees the crossing's resources after its copies. It ignores errors.
func (c *crossing) close() {
	if len(c.pinned) > 0 {
		_ = c.device.Synchronize()
	}
	for _, b := range c.pinned {
		_ = c.device.Unpin(b)
	}
	for _, e := range append(c.outs, c.mark, c.landed) {
		_ = e.Close()
	}
}

func (c *crossing) Mark() {
	c.check(c.stream.Record(c.mark))
	c.check(c.ways.out.Wait(c.mark))
	c.check(c.ways.in.Wait(c.mark))
}

func (c *crossing) Out(dst []byte, src unsafe.Pointer) int {
	if c.begun == len(c.outs) {
		c.outs = append(c.outs, c.event())
	}
	if len(dst) > 0 {
		c.check(c.ways.out.BeginOut(dst, address(src)))
	}
	c.check(c.ways.out.Record(c.outs[c.begun]))
	c.begun++
	return c.begun - 1
}

func (c *crossing) Done(copy int) bool {
	done, err := c.outs[copy].Done()
	c.check(err)
	return done
}

func (c *crossing) Wait(copy int) { c.check(c.outs[copy].Synchronize()) }

func (c *crossing) In(dst unsafe.Pointer, src []byte) {
	if len(src) > 0 {
		c.check(c.ways.in.BeginIn(address(dst), src))
		c.check(c.ways.in.Record(c.landed))
	}
}

func (c *crossing) Land() { c.check(c.stream.Wait(c.landed)) }

func (c *crossing) Settle() {
	if c.begun > 0 {
		c.Wait(c.begun - 1)
		c.begun = 0
	}
	c.check(c.landed.Synchronize())
}
