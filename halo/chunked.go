package halo

import (
	"sync"
	"time"

	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// chunked is the transport that sends rows through a codec, in chunks of one block and one message
// each. Workers encode chunks and send each as soon as it is encoded; the receiver decodes chunks
// while later ones are in transit. No lengths are exchanged first: a message has its own length,
// and sender and receiver divide the rows into the same chunks.
//
// Messages of two transfers do not mix: their tags differ, or one transfer ends before the other
// begins to receive, since a rank's messages with one tag arrive in order.
//
// Design note: messages are taken as they arrive, not received into prepared buffers. Blocks differ
// in length. Gradients are added in the order of ranks, and a block that arrives earlier waits encoded.
type chunked struct {
	comm        comm.Comm
	codec       codec.Codec
	team        Parallel
	stats       *Stats
	arena       *mapped.Arena
	ops         kernels.Ops
	deviceCodec *deviceCodec // of directions encoded on the device; nil until first used
	codecErrors Feedbacks    // nil: no error feedback
	tag         int          // of all messages

	direction direction
	key       Key
	rows      int // of a chunk

	out      []outgoing
	residual codec.Feedback // codec errors of the sent rows; nil: no error feedback
	encode   func(lo, hi int)
	mu       sync.Mutex // guards the fields below while chunks are encoded
	sends    []comm.Request
	failed   error
	copied   int // encoding on the device: chunks of out that have been sent

	expected       []int  // chunks still expected from each rank
	unchangedRanks []bool // ranks that have reported their rows unchanged
	waiting        []incoming
	ready          []incoming // chunks that are decoded together
	decode         func(lo, hi int)
}

// outgoing is a chunk: rows from..end-1 of all sent rows. In the message to its rank they
// start at row first.
type outgoing struct {
	to, first, from, end int
	block                []byte
	copy                 int // encoding on the device: number of the download of the payload to block
}

// incoming is a chunk that has arrived.
type incoming struct {
	from int // rank
	data []byte
	err  error
	// Encoding on the device: the rows of the message, and their payload.
	first, rows int
	payload     kernels.Vector[uint8]
}

// series identifies rows with accumulated codec errors.
type series struct {
	layer, cols int
	backward    bool
}

// chunkBytes is the approximate length of a chunk, an upper bound if the codec compresses. A
// message up to this length is sent without asking the receiver first (world.Prompt). The
// answer would wait for the receiver's own sends and for its next poll. A frame and a message
// cost little in comparison, and a message of some megabytes is divided over workers and time.
const chunkBytes = 60 << 10

func newChunked(c comm.Comm, team Parallel, ops kernels.Ops, a *mapped.Arena, stats *Stats) *chunked {
	h := &chunked{comm: c, team: team, ops: ops, stats: stats, arena: a, expected: make([]int, c.Size())}
	h.encode, h.decode = h.encodeChunks, h.decodeChunks
	return h
}

// use sets the codec. A codec with error feedback continues with the errors of earlier codecs;
// others discard them.
func (h *chunked) use(rows codec.Codec) {
	corrected, ok := rows.(codec.Corrected)
	switch {
	case !ok:
		h.codec, h.codecErrors = rows, nil
	case h.codecErrors == nil:
		h.codec, h.codecErrors = corrected.Codec, Feedbacks{}
	default:
		h.codec = corrected.Codec
	}
}

// ChunkRows returns the number of rows per chunk for rows of cols columns, the same on all
// ranks. Rows without a codec are sent in one piece.
func ChunkRows(c codec.Codec, cols int) int {
	return RowsIn(chunkBytes, c, cols)
}

// RowsIn returns about how many encoded rows of cols columns fit into the given bytes, at
// least one.
func RowsIn(bytes int, c codec.Codec, cols int) int {
	const sample = 1024
	all, _ := c.Size(sample, cols)
	return max(bytes*sample/max(all, 1), 1)
}

func (h *chunked) begin(w direction, k Key) error {
	start := time.Now()
	h.direction, h.key, h.rows, h.failed = w, k, ChunkRows(h.codec, w.out.Cols), nil
	for q := range h.expected {
		h.expected[q] = h.chunks(rowsOfRank(w.inStart, q))
	}
	if w.unchanged != nil {
		h.unchangedRanks = append(h.unchangedRanks[:0], make([]bool, len(h.expected))...)
	}
	h.planChunks()
	if w.coded {
		h.encodeOnDevice()
		h.stats.Encode += time.Since(start)
		return h.sendEncoded(false)
	}
	h.residual = h.feedback()
	h.team.Run(len(h.out), 1, h.encode)
	h.stats.Encode += time.Since(start)
	for i := range h.out {
		o := &h.out[i]
		raw := 4 * (o.end - o.from) * w.out.Cols
		if len(o.block) == 0 { // an empty message reports this
			raw = 0
			h.stats.Messages++
		}
		h.stats.count(raw, len(o.block))
	}
	return h.failed
}

// chunks returns the number of chunks of the given rows.
func (h *chunked) chunks(rows int) int { return (rows + h.rows - 1) / h.rows }

// planChunks lists the chunks to send: the first chunk for each rank, from the next rank on,
// then the second for each, and so on. Thus no rank waits until others have received all of
// theirs.
func (h *chunked) planChunks() {
	old, most := h.out[:cap(h.out)], 0 // its buffers are reused
	for q := range h.expected {
		most = max(most, h.chunks(rowsOfRank(h.direction.outStart, q)))
	}
	h.out = h.out[:0]
	for first := 0; first < most*h.rows; first += h.rows {
		for i := range h.expected {
			q := (h.comm.Rank() + i) % len(h.expected)
			rows, from := rowsOfRank(h.direction.outStart, q)-first, int(h.direction.outStart[q])+first
			if rows <= 0 {
				continue
			}
			if first > 0 && h.direction.unchanged != nil && h.direction.unchanged[q] {
				continue // one message reports this
			}
			o := outgoing{to: q, first: first, from: from, end: from + min(h.rows, rows)}
			if n := len(h.out); n < len(old) {
				o.block = old[n].block
			}
			h.out = append(h.out, o)
		}
	}
}

// feedback returns the accumulated errors of the sent rows.
func (h *chunked) feedback() codec.Feedback {
	if l := h.errorsToFeed(); l != nil {
		return l.onHost(h.ops, h.arena)
	}
	return nil
}

// encodeChunks encodes chunks lo..hi-1 and sends each.
func (h *chunked) encodeChunks(lo, hi int) {
	for i := lo; i < hi; i++ {
		o := &h.out[i]
		o.block = h.encodeChunk(o)
		r, err := h.comm.Isend(o.block, o.to, h.tag)
		h.noteSent(r, err)
	}
}

// encodeChunk returns the message of a chunk, empty for a rank whose rows are unchanged.
func (h *chunked) encodeChunk(o *outgoing) []byte {
	if h.direction.unchanged != nil && h.direction.unchanged[o.to] {
		return o.block[:0]
	}
	var residual codec.Rows
	if h.residual != nil {
		residual = codec.Rows{X: h.residual, Cols: h.direction.out.Cols, Len: len(h.residual) / h.direction.out.Cols,
			Index: h.direction.outIndices}.Part(o.from, o.end)
	}
	return codec.EncodeWithFeedback(o.block[:0], h.codec, h.direction.out.Part(o.from, o.end), o.first, h.key, residual)
}

// noteSent records a started send, and tests earlier ones: MPI progresses them only in calls.
func (h *chunked) noteSent(r comm.Request, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.sends = append(h.sends, r)
		err = h.progress()
	}
	if h.failed == nil {
		h.failed = err
	}
}

// progress removes the first sends that have completed.
func (h *chunked) progress() error {
	n := 0
	for n < len(h.sends) {
		left, err := h.sends[n].Test()
		if err != nil {
			return err
		}
		if !left {
			break
		}
		n++
	}
	kept := copy(h.sends, h.sends[n:])
	clear(h.sends[kept:])
	h.sends = h.sends[:kept]
	return nil
}
