package halo

import (
	"fmt"
	"time"

	"siafu/graph/mapped"
	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/kernels"
)

// far has a chunked carrier encode and decode where the rank's Ops compute, so that
// rows cross to the host as short as they travel. A chunk leaves in four steps: a
// kernel encodes it, its payload is copied to its slot, and when somebody asks what has
// arrived, and the copy is done, the header is put in front and the slot is sent.
// Nobody waits for a copy who has anything else to do; and since a rank ends an
// exchange, which sends all that is left, before whatever needs its rows, nobody waits
// for ever for a chunk that another keeps. A chunk that comes is copied as
// soon as its header has been checked, and decoded in its turn.
//
// Rows that a codec sends raw, which are few, are copied one by one.
type far struct {
	wire kernels.Wire
	*staged
	codec       codec.Coded
	sends, gets berth                  // of rows of own vertices, and of ghosts
	ids         kernels.Vector[uint32] // of rows of own vertices
	ghostIDs    kernels.Vector[uint32]
	raw         []float32 // [maxCols]

	out, in         *berth // of the way under way
	outBase, inBase []int  // of each rank's first slot
}

// berth is slots of chunks, at the same places on the host and where Ops compute.
type berth struct {
	host  []byte
	there kernels.Vector[uint8]
}

// slotAlign is what a slot's length is a multiple of, as its header's is.
const slotAlign = 16

// slot is the length of the slot of a chunk.
func slot(c codec.Codec, rows, cols int) int {
	size, _ := c.Size(rows, cols)
	return (codec.BlockHeader + size + slotAlign - 1) / slotAlign * slotAlign
}

// slots is room for the chunks of all ranks' rows, of up to so many columns: the wider
// rows are, the more chunks there are, and the more bytes in all.
func slots(c codec.Codec, start []int64, cols int) (bytes int) {
	rows := ChunkRows(c, cols)
	for q := range len(start) - 1 {
		if n := span(start, q); n > 0 {
			size, _ := c.Size(n, cols)
			bytes += size + (n+rows-1)/rows*(codec.BlockHeader+kernels.CodeSlack+slotAlign)
		}
	}
	return bytes
}

// encodeThere makes what coded ways need if the rank's Ops are a Wire that has kernels
// for the codec in use, and reports whether it does.
func (e *Exchange) encodeThere() bool {
	h := e.chunked
	wire, isWire := e.ops.(kernels.Wire)
	c, isCoded := h.codec.(codec.Coded)
	if !isWire || !isCoded {
		h.far = nil
		return false
	}
	if e.far == nil {
		e.far = e.newFar(wire)
	}
	e.far.codec, h.far = c, e.far
	e.far.sends.grow(e, slots(c, e.plan.SendStart, e.maxCols))
	e.far.gets.grow(e, slots(c, e.plan.RecvStart, e.maxCols))
	return true
}

func (e *Exchange) newFar(wire kernels.Wire) *far {
	a, parts := e.arena.For(Buffers), e.plan.Parts
	return &far{
		wire: wire, staged: &e.staged, raw: make([]float32, e.maxCols),
		ids: kernels.Place(wire, a, e.sendIDs), ghostIDs: kernels.Place(wire, a, e.plan.GhostIDs),
		outBase: make([]int, parts), inBase: make([]int, parts),
	}
}

// grow makes room for so many bytes.
func (b *berth) grow(e *Exchange, bytes int) {
	if len(b.host) < bytes {
		a := e.arena.For(Buffers)
		b.host, b.there = mapped.MakeApart(a, bytes), kernels.NewVector[uint8](e.ops, a, bytes)
		e.staged.crossing.Pin(b.host)
	}
}

// coding reports whether the next way is coded. Observers want rows on the host.
func (e *Exchange) coding() bool {
	return e.observer == nil && e.carrier == carrier(e.chunked) && e.chunked.far != nil
}

// codeForward makes the way that of the rows of x and of sums, and of ghosts.
func (e *Exchange) codeForward(x kernels.Mat) {
	w, f, cols := &e.way, e.far, x.Cols
	w.coded = true
	w.out, w.in = codec.Rows{Cols: cols, Len: len(e.plan.SendRows)}, codec.Rows{Cols: cols, Len: e.plan.Ghosts}
	w.leaves = kernels.Outgoing{X: x, More: e.Sums(cols), Index: e.staged.sendRows, IDs: f.ids, Raw: e.staged.there.Reshape(w.out.Len, cols)}
	w.comes = kernels.Incoming{X: e.Ghosts(cols), Len: w.in.Len}
	f.out, f.in = &f.sends, &f.gets
}

// codeBackward makes it that of the gradients of ghosts, and of own rows, which are
// known at the end.
func (e *Exchange) codeBackward(cols int) {
	w, f := &e.way, e.far
	w.coded, w.add = true, true
	w.out, w.in = codec.Rows{Cols: cols, Len: e.plan.Ghosts}, codec.Rows{Cols: cols, Len: len(e.plan.SendRows)}
	w.leaves = kernels.Outgoing{X: e.Ghosts(cols), IDs: f.ghostIDs, Raw: e.Ghosts(cols)}
	w.comes = kernels.Incoming{
		More: e.Sums(cols), Index: e.staged.sendRows, Len: w.in.Len, Raw: e.staged.there.Reshape(w.in.Len, cols), Add: true,
	}
	f.out, f.in = &f.gets, &f.sends
}

// base sets where each rank's slots begin.
func (h *chunked) base(base []int, start []int64) {
	at, cols := 0, h.way.out.Cols
	for q := range base {
		base[q] = at
		n := span(start, q)
		at += n / h.rows * slot(h.codec, h.rows, cols)
		if rest := n % h.rows; rest > 0 {
			at += slot(h.codec, rest, cols)
		}
	}
}

// depart encodes and sends all chunks.
func (h *chunked) depart() {
	f, slack := h.far, h.far.codec.Slack()
	h.base(f.outBase, h.way.outStart)
	h.base(f.inBase, h.way.inStart)
	rows := h.way.leaves
	rows.Rows, rows.Sums = codec.Draws(h.key)
	if l := h.losing(); l != nil {
		rows.Lost = l.elsewhere(h.ops, h.arena)
	}
	f.staged.ready()
	for i := range h.out {
		o := &h.out[i]
		size, _ := f.codec.Size(o.end-o.from, h.way.out.Cols)
		at := f.outBase[o.to] + o.first/h.rows*slot(f.codec, h.rows, h.way.out.Cols)
		o.block = f.out.host[at : at+codec.BlockHeader+size : at+codec.BlockHeader+size]
		payload := f.out.there.Part(at+codec.BlockHeader, at+codec.BlockHeader+size)
		f.wire.EncodeRows(payload, f.codec.Bits(), rows.Part(o.from, o.end))
		f.crossing.Mark()
		o.copy = f.crossing.Out(o.block[codec.BlockHeader:len(o.block)-slack], payload.Address())
	}
	h.copied = 0
}

// dispatch sends the chunks whose payloads are here and, if it is to wait, all others
// when theirs are.
func (h *chunked) dispatch(wait bool) (err error) {
	if !h.way.coded {
		return nil
	}
	defer mapped.Catch(&err) // who asks what has arrived is in no piece of work
	start := time.Now()
	for ; h.copied < len(h.out) && h.failed == nil; h.copied++ {
		o := &h.out[h.copied]
		if !wait && !h.far.crossing.Done(o.copy) {
			break
		}
		h.far.crossing.Wait(o.copy)
		h.seal(o)
		h.stats.count(4*(o.end-o.from)*h.way.out.Cols, len(o.block))
		h.sent(h.comm.Isend(o.block, o.to, h.tag))
	}
	h.stats.Encode += time.Since(start)
	return h.failed
}

// seal makes a block of a payload that is here.
func (h *chunked) seal(o *outgoing) {
	f, rows, cols := h.far, o.end-o.from, h.way.out.Cols
	clear(o.block[len(o.block)-f.codec.Slack():])
	o.block = appendRaw(o.block, o.block[codec.BlockHeader:], f.codec, f.wire, h.way.leaves.Raw.Part(o.from, o.end), f.raw)
	codec.Seal(o.block, f.codec, rows, cols, o.first)
}

// accept takes a message.
func (h *chunked) accept(m comm.Message) (err error) {
	if h.way.stays != nil && len(m.Data) == 0 {
		h.owed[m.Source], h.stayed[m.Source] = 0, true
		return nil
	}
	h.owed[m.Source]--
	c := incoming{from: m.Source, data: m.Data}
	if h.way.coded {
		defer mapped.Catch(&err) // who asks what has arrived is in no piece of work
		c.err = h.board(&c)
	}
	h.waiting = append(h.waiting, c)
	return nil
}

// board begins to copy a chunk to where it is decoded.
func (h *chunked) board(c *incoming) error {
	f, cols := h.far, h.way.in.Cols
	b, from, err := h.open(c)
	if err == nil {
		err = sameShape(b, b.Rows, cols)
	}
	if err != nil {
		return err
	}
	raw := h.way.comes.Raw
	if !h.way.add {
		raw = h.way.comes.X // which kernels leave as they are
	}
	payload, err := b.Coded(f.codec, putRaw(f.wire, raw.Part(from, from+b.Rows), f.raw))
	if err != nil {
		return err
	}
	at := f.inBase[c.from] + b.First/h.rows*slot(f.codec, h.rows, cols)
	c.first, c.rows, c.payload = from, b.Rows, f.in.there.Part(at, at+len(payload))
	here := f.in.host[at : at+len(payload)]
	copy(here, payload)
	f.crossing.In(c.payload.Address(), here)
	c.data = nil
	return nil
}

// unboard is the message of a chunk that has been boarded.
func (h *chunked) unboard(c incoming) []byte {
	f := h.far
	f.crossing.Land()
	payload := kernels.FetchVector(f.wire, c.payload)
	b := append(make([]byte, codec.BlockHeader), payload...)
	raw := h.way.comes.Raw
	if !h.way.add {
		raw = h.way.comes.X
	}
	b = appendRaw(b, payload, f.codec, f.wire, raw.Part(c.first, c.first+c.rows), f.raw)
	codec.Seal(b, f.codec, c.rows, h.way.in.Cols, c.first-int(h.way.inStart[c.from]))
	return b
}

// sameShape is an error unless a block holds just so many rows and columns.
func sameShape(b codec.Block, rows, cols int) error {
	if b.Rows != rows || b.Cols != cols {
		return fmt.Errorf("%d rows of %d floats, want %d rows of %d", b.Rows, b.Cols, rows, cols)
	}
	return nil
}

// decodeThere decodes the chunks of ready.
func (h *chunked) decodeThere() {
	f := h.far
	f.crossing.Land()
	for _, c := range h.ready {
		if c.err == nil {
			f.wire.DecodeRows(h.way.comes.Part(c.first, c.first+c.rows), f.codec.Bits(), c.payload)
		}
	}
}
