package halo

import (
	"fmt"
	"time"

	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// deviceCodec makes a chunked transport encode and decode on the rank's device, so that rows
// cross to the host in encoded form. A chunk is sent in four steps: a kernel encodes it; its
// payload is copied to its slot; a poll (Arrived) sees that the copy is done; the header is
// written and the slot is sent. No rank waits for a copy while it has other work. Since a rank
// ends an exchange, which sends all remaining chunks, before it uses the rows, no rank waits
// forever. A received chunk is copied as soon as its header has been checked, and decoded in
// its order.
//
// The few rows that a codec sends raw are copied one by one.
type deviceCodec struct {
	ops kernels.Ops
	*staged
	codec       codec.Coded
	sends, gets slotBuffer             // of rows of own vertices, and of ghosts
	ids         kernels.Vector[uint32] // of rows of own vertices
	ghostIDs    kernels.Vector[uint32]
	raw         []float32 // [maxCols]

	out, in         *slotBuffer // of the current direction
	outBase, inBase []int       // of each rank's first slot
}

// slotBuffer has the slots of chunks, at the same offsets on the host and on the device.
type slotBuffer struct {
	host   []byte
	device kernels.Vector[uint8]
}

// A slot's length is a multiple of slotAlign, as is the header's.
const slotAlign = 16

// slot returns the length of a chunk's slot in bytes.
func slot(c codec.Codec, rows, cols int) int {
	size, _ := c.Size(rows, cols)
	return (codec.BlockHeader + size + slotAlign - 1) / slotAlign * slotAlign
}

// slots returns the bytes for the chunks of all ranks' rows, of up to cols columns. Wider rows
// need more chunks and more bytes in total.
func slots(c codec.Codec, start []int64, cols int) (bytes int) {
	rows := ChunkRows(c, cols)
	for q := range len(start) - 1 {
		if n := rowsOfRank(start, q); n > 0 {
			size, _ := c.Size(n, cols)
			bytes += size + (n+rows-1)/rows*(codec.BlockHeader+kernels.CodeSlack+slotAlign)
		}
	}
	return bytes
}

// useDeviceCodec prepares encoding on the device if the rank's Ops have kernels for the current
// codec. It reports whether they are.
func (e *Exchange) useDeviceCodec() bool {
	h := e.chunked
	c, isCoded := h.codec.(codec.Coded)
	if !isCoded || !e.ops.Has(kernels.RowCoding) {
		h.deviceCodec = nil
		return false
	}
	if e.deviceCodec == nil {
		e.deviceCodec = e.newDeviceCodec()
	}
	e.deviceCodec.codec, h.deviceCodec = c, e.deviceCodec
	e.deviceCodec.sends.grow(e, slots(c, e.plan.SendStart, e.maxCols))
	e.deviceCodec.gets.grow(e, slots(c, e.plan.RecvStart, e.maxCols))
	return true
}

func (e *Exchange) newDeviceCodec() *deviceCodec {
	a, parts := e.arena.For(Buffers), e.plan.Parts
	return &deviceCodec{
		ops: e.ops, staged: &e.staged, raw: make([]float32, e.maxCols),
		ids: kernels.Place(e.ops, a, e.sendIDs), ghostIDs: kernels.Place(e.ops, a, e.plan.GhostIDs),
		outBase: make([]int, parts), inBase: make([]int, parts),
	}
}

// grow makes the buffers fit the given number of bytes.
func (b *slotBuffer) grow(e *Exchange, bytes int) {
	if len(b.host) < bytes {
		a := e.arena.For(Buffers)
		b.host, b.device = mapped.MakeApart(a, bytes), kernels.NewVector[uint8](e.ops, a, bytes)
		e.staged.copier.Pin(b.host)
	}
}

// usesDeviceCodec reports whether the next direction is encoded on the device. Observers need
// rows on the host.
func (e *Exchange) usesDeviceCodec() bool {
	return e.observer == nil && e.transport == transport(e.chunked) && e.chunked.deviceCodec != nil
}

// deviceForward sets the direction to send rows of x and of sums, and to receive ghosts.
func (e *Exchange) deviceForward(x kernels.Mat) {
	w, f, cols := &e.direction, e.deviceCodec, x.Cols
	w.coded = true
	w.out, w.in = codec.Rows{Cols: cols, Len: len(e.plan.SendRows)}, codec.Rows{Cols: cols, Len: e.plan.Ghosts}
	w.deviceOut = kernels.Outgoing{X: x, More: e.Sums(cols), Index: e.staged.sendRows, IDs: f.ids,
		Raw: e.staged.deviceRows.Reshape(w.out.Len, cols)}
	w.deviceIn = kernels.Incoming{X: e.Ghosts(cols), Len: w.in.Len}
	f.out, f.in = &f.sends, &f.gets
}

// deviceBackward sets the direction to send gradients of ghosts, and to receive gradients of
// own rows, whose matrix End gets.
func (e *Exchange) deviceBackward(cols int) {
	w, f := &e.direction, e.deviceCodec
	w.coded, w.add = true, true
	w.out, w.in = codec.Rows{Cols: cols, Len: e.plan.Ghosts}, codec.Rows{Cols: cols, Len: len(e.plan.SendRows)}
	w.deviceOut = kernels.Outgoing{X: e.Ghosts(cols), IDs: f.ghostIDs, Raw: e.Ghosts(cols)}
	w.deviceIn = kernels.Incoming{
		More: e.Sums(cols), Index: e.staged.sendRows, Len: w.in.Len, Raw: e.staged.deviceRows.Reshape(w.in.Len, cols), Add: true,
	}
	f.out, f.in = &f.gets, &f.sends
}

// setSlotBases sets the first slot of each rank.
func (h *chunked) setSlotBases(base []int, start []int64) {
	at, cols := 0, h.direction.out.Cols
	for q := range base {
		base[q] = at
		n := rowsOfRank(start, q)
		at += n / h.rows * slot(h.codec, h.rows, cols)
		if rest := n % h.rows; rest > 0 {
			at += slot(h.codec, rest, cols)
		}
	}
}

// encodeOnDevice encodes and sends all chunks.
func (h *chunked) encodeOnDevice() {
	f, slack := h.deviceCodec, h.deviceCodec.codec.Slack()
	h.setSlotBases(f.outBase, h.direction.outStart)
	h.setSlotBases(f.inBase, h.direction.inStart)
	rows := h.direction.deviceOut
	rows.Rows, rows.Sums = codec.Draws(h.key)
	if l := h.errorsToFeed(); l != nil {
		rows.Lost = l.onDevice(h.ops, h.arena)
	}
	f.staged.waitCopies()
	for i := range h.out {
		o := &h.out[i]
		size, _ := f.codec.Size(o.end-o.from, h.direction.out.Cols)
		at := f.outBase[o.to] + o.first/h.rows*slot(f.codec, h.rows, h.direction.out.Cols)
		o.block = f.out.host[at : at+codec.BlockHeader+size : at+codec.BlockHeader+size]
		payload := f.out.device.Part(at+codec.BlockHeader, at+codec.BlockHeader+size)
		f.ops.EncodeRows(payload, f.codec.Bits(), rows.Part(o.from, o.end))
		f.copier.Mark()
		o.copy = f.copier.StartDownload(o.block[codec.BlockHeader:len(o.block)-slack], payload.Address())
	}
	h.copied = 0
}

// sendEncoded sends the chunks whose payloads have been copied; with wait, all chunks.
func (h *chunked) sendEncoded(wait bool) (err error) {
	if !h.direction.coded {
		return nil
	}
	defer mapped.Catch(&err) // the caller of this method has no Catch
	start := time.Now()
	for ; h.copied < len(h.out) && h.failed == nil; h.copied++ {
		o := &h.out[h.copied]
		if !wait && !h.deviceCodec.copier.Done(o.copy) {
			break
		}
		h.deviceCodec.copier.Wait(o.copy)
		h.seal(o)
		h.stats.count(4*(o.end-o.from)*h.direction.out.Cols, len(o.block))
		h.noteSent(h.comm.Isend(o.block, o.to, h.tag))
	}
	h.stats.Encode += time.Since(start)
	return h.failed
}

// seal makes a block of a copied payload.
func (h *chunked) seal(o *outgoing) {
	f, rows, cols := h.deviceCodec, o.end-o.from, h.direction.out.Cols
	clear(o.block[len(o.block)-f.codec.Slack():])
	o.block = appendRaw(o.block, o.block[codec.BlockHeader:], f.codec, f.ops, h.direction.deviceOut.Raw.Part(o.from, o.end), f.raw)
	codec.Seal(o.block, f.codec, rows, cols, o.first)
}

// accept takes a message.
func (h *chunked) accept(m comm.Message) (err error) {
	if h.direction.unchanged != nil && len(m.Data) == 0 {
		h.expected[m.Source], h.unchangedRanks[m.Source] = 0, true
		return nil
	}
	h.expected[m.Source]--
	c := incoming{from: m.Source, data: m.Data}
	if h.direction.coded {
		defer mapped.Catch(&err) // the caller of this method has no Catch
		c.err = h.copyToDevice(&c)
	}
	h.waiting = append(h.waiting, c)
	return nil
}

// copyToDevice starts to copy a chunk to the device.
func (h *chunked) copyToDevice(c *incoming) error {
	f, cols := h.deviceCodec, h.direction.in.Cols
	b, from, err := h.openBlock(c)
	if err == nil {
		err = sameShape(b, b.Rows, cols)
	}
	if err != nil {
		return err
	}
	raw := h.direction.deviceIn.Raw
	if !h.direction.add {
		raw = h.direction.deviceIn.X // which kernels do not change
	}
	payload, err := b.Coded(f.codec, putRaw(f.ops, raw.Part(from, from+b.Rows), f.raw))
	if err != nil {
		return err
	}
	at := f.inBase[c.from] + b.First/h.rows*slot(f.codec, h.rows, cols)
	c.first, c.rows, c.payload = from, b.Rows, f.in.device.Part(at, at+len(payload))
	here := f.in.host[at : at+len(payload)]
	copy(here, payload)
	f.copier.StartUpload(c.payload.Address(), here)
	c.data = nil
	return nil
}

// fetchMessage returns the message of a chunk that was copied to the device.
func (h *chunked) fetchMessage(c incoming) []byte {
	f := h.deviceCodec
	f.copier.AwaitUploads()
	payload := kernels.FetchVector(f.ops, c.payload)
	b := append(make([]byte, codec.BlockHeader), payload...)
	raw := h.direction.deviceIn.Raw
	if !h.direction.add {
		raw = h.direction.deviceIn.X
	}
	b = appendRaw(b, payload, f.codec, f.ops, raw.Part(c.first, c.first+c.rows), f.raw)
	codec.Seal(b, f.codec, c.rows, h.direction.in.Cols, c.first-int(h.direction.inStart[c.from]))
	return b
}

// sameShape returns an error unless a block has the given rows and columns.
func sameShape(b codec.Block, rows, cols int) error {
	if b.Rows != rows || b.Cols != cols {
		return fmt.Errorf("%d rows of %d floats, want %d rows of %d", b.Rows, b.Cols, rows, cols)
	}
	return nil
}

// decodeOnDevice decodes the chunks of ready.
func (h *chunked) decodeOnDevice() {
	f := h.deviceCodec
	f.copier.AwaitUploads()
	for _, c := range h.ready {
		if c.err == nil {
			f.ops.DecodeRows(h.direction.deviceIn.Part(c.first, c.first+c.rows), f.codec.Bits(), c.payload)
		}
	}
}
