package halo

import (
	"cmp"
	"slices"

	"siafu/halo/comm"
	"siafu/internal/mapped"
	"siafu/internal/wire"
	"siafu/kernels"
)

// Portable is a Source whose state can be saved at the start of an epoch and restored later
// or on another rank.
type Portable interface {
	Source
	// Pack returns the state of the source at the start of an epoch, before its first
	// transfer. It waits for rows in transit to this rank. The caller owns the result.
	// Collective.
	Pack() (SourceState, error)
	// Unpack restores the state into a new source.
	Unpack(l SourceState) error
}

var _ Portable = Always{}

// SourceState is the portable state of a part's transfers, without the rows of the current
// epoch.
type SourceState struct {
	CodecErrors []CodecError  // accumulated errors of codecs
	StoredRows  []StoredRows  // rows that are used until others replace them
	Pending     []PendingRows // received rows that are used later
	// OwnRows are own rows of earlier epochs, from which ghost rows are predicted. Rows has those of
	// each epoch of Epochs in turn. Sent and SentAt are the arrays and counters of a recurrent
	// predictor.
	OwnRows []StoredRows
}

// CodecError has the accumulated errors of a codec with error feedback for the rows of a layer.
type CodecError struct {
	Layer, Cols int
	Backward    bool
	Rows        []float32
}

// StoredRows has the stored rows of a layer and direction, with their epochs. If the policy
// needs them, Sent has the rows that this rank sent last, with the epochs by rank.
type StoredRows struct {
	Layer    int
	Backward bool
	Rows     []float32
	Epochs   []int32
	Sent     []float32
	SentAt   []int32
}

// PendingRows is a received exchange whose rows have not been stored yet: the blocks of a part of
// the plan, as they were sent.
type PendingRows struct {
	Layer, Part, Epoch, Cols int
	Backward                 bool
	Blocks                   []RankBlock
}

// RankBlock is the data from one rank, or from all ranks: -1.
type RankBlock struct {
	From int
	Data []byte
}

// Pack implements Portable.
func (a Always) Pack() (SourceState, error) {
	return SourceState{CodecErrors: a.Exchange.CodecErrors()}, nil
}

// Unpack implements Portable.
func (a Always) Unpack(l SourceState) error {
	a.Exchange.RestoreErrors(l.CodecErrors)
	return nil
}

// CodecErrors returns a copy of the accumulated errors, nil without error feedback.
func (e *Exchange) CodecErrors() []CodecError {
	if e.chunked == nil {
		return nil
	}
	return e.chunked.codecErrors.list(e.ops)
}

// list returns a copy of all errors, in the order of layers.
func (f Feedbacks) list(o kernels.Ops) []CodecError {
	var list []CodecError
	for s, l := range f {
		list = append(list, CodecError{s.layer, s.cols, s.backward, l.copy(o)})
	}
	slices.SortFunc(list, func(a, b CodecError) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(wire.Bit(a.Backward), wire.Bit(b.Backward)))
	})
	return list
}

// RestoreErrors restores the errors of an exchange elsewhere, which correct later rows. Call it
// before the first Begin.
func (e *Exchange) RestoreErrors(list []CodecError) {
	e.chunked.restoreErrors(list)
}

// restoreErrors restores the errors of a codec with error feedback. h may be nil.
func (h *chunked) restoreErrors(list []CodecError) {
	if h == nil || h.codecErrors == nil {
		return
	}
	f := h.codecErrors
	for _, l := range list {
		at := series{l.Layer, l.Cols, l.Backward}
		have, ok := f[at]
		if !ok {
			have = new(errorBuffer)
			f[at] = have
		}
		if have.deviceNewer = false; len(have.rows) == len(l.Rows) {
			copy(have.rows, l.Rows)
		} else {
			have.rows = slices.Clone(l.Rows)
		}
	}
}

// CapturePending waits for the rows of the current transfer and returns a copy of them, as they were
// sent. The transfer continues.
func (t *Transfer) CapturePending(layer int) (PendingRows, error) {
	held := PendingRows{Layer: layer, Epoch: t.sentEpoch, Cols: t.width, Backward: t.state == backward}
	var err error
	if !t.direction.onDevice {
		held.Blocks, err = t.transport.capture(t.direction)
		return held, err
	}
	err = t.transport.await()
	come := t.deviceTarget(held)
	rows := make([]float32, come.Rows*come.Cols)
	kernels.Read(t.ops, rows, come)
	held.Blocks = []RankBlock{{-1, mapped.Bytes(rows)}}
	return held, err
}

// deviceTarget returns the destination of rows that the communicator receives in device
// memory.
func (e *Exchange) deviceTarget(h PendingRows) kernels.Mat {
	if h.Backward {
		return e.staged.deviceRows.Reshape(len(e.plan.SendRows), h.Cols)
	}
	return e.Ghosts(h.Cols)
}

// ResumePending puts a transfer in transit with the captured rows of another transfer.
func (t *Transfer) ResumePending(h PendingRows) error {
	e := t.Exchange
	t.sentEpoch = h.Epoch
	e.open(h.Backward, h.Cols)
	switch {
	case e.usesDeviceCodec() && h.Backward:
		e.deviceBackward(h.Cols)
	case e.usesDeviceCodec():
		e.deviceForward(kernels.Mat{Cols: h.Cols})
	case h.Backward:
		e.direction.in, e.direction.add = e.gradDestination(h.Cols), !e.ops.Remote()
	default:
		e.direction.in = e.ghostDestination(h.Cols)
	}
	if e.direction.onDevice {
		kernels.Write(e.ops, e.deviceTarget(h), mapped.Cast[float32](h.Blocks[0].Data))
		return nil
	}
	return e.transport.resume(e.direction, h.Blocks)
}

func (d *direct) capture(w direction) ([]RankBlock, error) {
	err := d.await()
	return []RankBlock{{-1, slices.Clone(mapped.Bytes(d.coming(w)))}}, err
}

func (d *direct) resume(w direction, blocks []RankBlock) error {
	copy(mapped.Bytes(d.coming(w)), blocks[0].Data)
	return nil
}

func (h *chunked) capture(direction) ([]RankBlock, error) {
	err := h.await()
	var list []RankBlock
	for _, c := range h.waiting {
		if h.direction.coded && c.err == nil {
			c.data = h.fetchMessage(c)
		}
		list = append(list, RankBlock{c.from, c.data})
	}
	return list, err
}

func (h *chunked) resume(w direction, blocks []RankBlock) error {
	h.direction, h.rows, h.failed = w, ChunkRows(h.codec, w.in.Cols), nil
	h.out, h.copied = h.out[:0], 0
	if w.coded {
		h.setSlotBases(h.deviceCodec.inBase, w.inStart)
		h.deviceCodec.staged.waitCopies()
	}
	clear(h.expected)
	for _, b := range blocks {
		h.expected[b.From]++
	}
	for _, b := range blocks {
		if err := h.accept(comm.Message{Source: b.From, Data: slices.Clone(b.Data)}); err != nil {
			return err
		}
	}
	return nil
}

// CodecErrors returns a copy of the accumulated codec errors of all histories.
func (h *Histories) CodecErrors() []CodecError { return h.codecErrors.list(h.o.Ops) }

// RestoreErrors restores the codec errors of other histories, which correct later rows.
func (h *Histories) RestoreErrors(list []CodecError) {
	h.list[0].chunked.restoreErrors(list)
}

// CopyRows returns a copy of the rows.
func (r *History) CopyRows(layer int) StoredRows {
	return StoredRows{Layer: layer, Backward: r.backward, Rows: slices.Clone(r.rows), Epochs: slices.Clone(r.epochs)}
}

// Restore copies the rows of another history.
func (r *History) Restore(s StoredRows) {
	copy(r.rows, s.Rows)
	copy(r.epochs, s.Epochs)
	r.Publish()
}

// CapturePending waits for the rows in transit and returns a copy of them, as they were sent.
func (b *Batch) CapturePending(layer, part int) (PendingRows, error) {
	blocks, err := b.transport.capture(b.direction)
	return PendingRows{Layer: layer, Part: part, Epoch: b.epoch, Cols: b.history.shape.Width,
		Backward: b.history.backward, Blocks: blocks}, err
}

// ResumePending puts a batch in transit with the captured rows of another batch.
func (b *Batch) ResumePending(r *History, part *Part, h PendingRows) error {
	b.history, b.epoch, b.direction = r, h.Epoch, r.incomingSide(part)
	return b.transport.resume(b.direction, h.Blocks)
}
