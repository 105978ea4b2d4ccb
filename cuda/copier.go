package cuda

import (
	"unsafe"

	"siafu/cuda/device"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// copier implements kernels.Copier on the streams of copies that a rank's Ops share.
// Copies of one direction complete in the order of their start.
type copier struct {
	*rank
	mark, landed device.Event
	pinned       [][]byte
	outs         []device.Event // outs[:begun]: ends of the downloads since the last Settle; the rest are spare
	begun        int
}

// copyStreams has the streams of copies, separate from the kernels' stream.
type copyStreams struct{ down, up device.Stream }

// Copier implements kernels.Ops.
func (o *Ops) Copier(a *mapped.Arena) kernels.Copier {
	c := &copier{rank: o.rank}
	o.check(o.openCopyStreams())
	c.mark, c.landed = c.event(), c.event()
	a.OnFree(c.close)
	return c
}

// Pin implements kernels.Copier. If the system refuses, copies use the driver's own buffers.
func (c *copier) Pin(b []byte) {
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
	for _, s := range []*device.Stream{&r.copies.down, &r.copies.up} {
		if *s == nil && err == nil {
			*s, err = r.device.NewStream()
		}
	}
	return err
}

func (c *copier) event() device.Event {
	e, err := c.device.NewEvent()
	c.check(err)
	return e
}

// close frees the copier's resources after its copies. It ignores errors.
func (c *copier) close() {
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

func (c *copier) Mark() {
	c.check(c.stream.Record(c.mark))
	c.check(c.copies.down.Wait(c.mark))
	c.check(c.copies.up.Wait(c.mark))
}

func (c *copier) StartDownload(dst []byte, src unsafe.Pointer) int {
	if c.begun == len(c.outs) {
		c.outs = append(c.outs, c.event())
	}
	if len(dst) > 0 {
		c.check(c.copies.down.BeginOut(dst, address(src)))
	}
	c.check(c.copies.down.Record(c.outs[c.begun]))
	c.begun++
	return c.begun - 1
}

func (c *copier) Done(copy int) bool {
	done, err := c.outs[copy].Done()
	c.check(err)
	return done
}

func (c *copier) Wait(copy int) { c.check(c.outs[copy].Synchronize()) }

func (c *copier) StartUpload(dst unsafe.Pointer, src []byte) {
	if len(src) > 0 {
		c.check(c.copies.up.BeginIn(address(dst), src))
		c.check(c.copies.up.Record(c.landed))
	}
}

func (c *copier) AwaitUploads() { c.check(c.stream.Wait(c.landed)) }

func (c *copier) Settle() {
	if c.begun > 0 {
		c.Wait(c.begun - 1)
		c.begun = 0
	}
	c.check(c.landed.Synchronize())
}
