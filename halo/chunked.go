package halo

import (
	"sync"
	"time"

	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// chunked carries rows through a codec. The rows for a rank travel in chunks,
// a block and a message each: workers encode chunks and send each as soon as
// it is encoded; the receiver decodes chunks while later ones are under way.
// Nobody has to be told lengths first: a message knows its own, and both sides
// cut the rows alike.
//
// Messages of two transfers do not mix: they bear different tags, or one transfer
// ends before the other begins to take what it is owed, since a rank's messages
// with one tag arrive in order.
//
// Design note: messages are taken as they come, not received into buffers made
// ready. Blocks differ in length, and those of a rank whose turn to be added
// has not come wait as they are.
type chunked struct {
	comm        comm.Comm
	codec       codec.Codec
	team        Parallel
	stats       *Stats
	arena       *mapped.Arena
	ops         kernels.Ops
	deviceCodec *deviceCodec // of coded ways; nil until there is one
	codecErrors Feedbacks    // nil: errors are not fed back
	tag         int          // of all messages

	direction direction
	key       Key
	rows      int // of a chunk

	out     []outgoing
	lost    codec.Feedback // of the rows that go out, nil: none
	encode  func(lo, hi int)
	mu      sync.Mutex // guards what follows while chunks are encoded
	leaving []comm.Request
	failed  error
	copied  int // of a coded way: chunks of out that have been sent

	owed           []int  // chunks that each rank has not sent yet
	unchangedRanks []bool // ranks that have said that their rows stay
	waiting        []incoming
	ready          []incoming // those that are decoded at once
	decode         func(lo, hi int)
}

// outgoing is a chunk: rows from..end-1 of all that go out, which are those
// from first on of the message to a rank.
type outgoing struct {
	to, first, from, end int
	block                []byte
	copy                 int // of a coded way: of the payload, to block
}

// incoming is a chunk that has arrived.
type incoming struct {
	from int // rank
	data []byte
	err  error
	// Of a coded way: the rows of the message, and their payload.
	first, rows int
	payload     kernels.Vector[uint8]
}

// series is what errors are kept for.
type series struct {
	layer, cols int
	backward    bool
}

// chunkBytes is about how long a chunk is, at most where codecs compress: a message that
// is no longer leaves without asking the receiver first (world.Prompt), whose answer would
// wait behind what it sends itself, and until it looks. A frame and a message cost little
// beside it, and a message of some megabytes is spread over workers and over time.
const chunkBytes = 60 << 10

func newChunked(c comm.Comm, team Parallel, ops kernels.Ops, a *mapped.Arena, stats *Stats) *chunked {
	h := &chunked{comm: c, team: team, ops: ops, stats: stats, arena: a, owed: make([]int, c.Size())}
	h.encode, h.decode = h.encodeChunks, h.decodeChunks
	return h
}

// use sets the codec. What was lost of rows is fed back by a codec that does
// so, whichever codec has lost it, and forgotten by others.
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
	for q := range h.owed {
		h.owed[q] = h.chunks(rowsOfRank(w.inStart, q))
	}
	if w.unchanged != nil {
		h.unchangedRanks = append(h.unchangedRanks[:0], make([]bool, len(h.owed))...)
	}
	h.planChunks()
	if w.coded {
		h.encodeOnDevice()
		h.stats.Encode += time.Since(start)
		return h.sendEncoded(false)
	}
	h.lost = h.feedback()
	h.team.Run(len(h.out), 1, h.encode)
	h.stats.Encode += time.Since(start)
	for i := range h.out {
		o := &h.out[i]
		raw := 4 * (o.end - o.from) * w.out.Cols
		if len(o.block) == 0 { // nothing but the message that says so
			raw = 0
			h.stats.Messages++
		}
		h.stats.count(raw, len(o.block))
	}
	return h.failed
}

// chunks is the number of chunks of some rows.
func (h *chunked) chunks(rows int) int { return (rows + h.rows - 1) / h.rows }

// planChunks lists what goes out: the first chunk for each rank, from the next rank
// on, then the second for each and so on, so that no rank waits until the
// others have got all of theirs.
func (h *chunked) planChunks() {
	old, most := h.out[:cap(h.out)], 0 // whose buffers are used again
	for q := range h.owed {
		most = max(most, h.chunks(rowsOfRank(h.direction.outStart, q)))
	}
	h.out = h.out[:0]
	for first := 0; first < most*h.rows; first += h.rows {
		for i := range h.owed {
			q := (h.comm.Rank() + i) % len(h.owed)
			rows, from := rowsOfRank(h.direction.outStart, q)-first, int(h.direction.outStart[q])+first
			if rows <= 0 {
				continue
			}
			if first > 0 && h.direction.unchanged != nil && h.direction.unchanged[q] {
				continue // one message says so
			}
			o := outgoing{to: q, first: first, from: from, end: from + min(h.rows, rows)}
			if n := len(h.out); n < len(old) {
				o.block = old[n].block
			}
			h.out = append(h.out, o)
		}
	}
}

// feedback is what has been lost of the rows that go out.
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

// encodeChunk is the message of a chunk, nothing for a rank whose rows stay.
func (h *chunked) encodeChunk(o *outgoing) []byte {
	if h.direction.unchanged != nil && h.direction.unchanged[o.to] {
		return o.block[:0]
	}
	var lost codec.Rows
	if h.lost != nil {
		lost = codec.Rows{X: h.lost, Cols: h.direction.out.Cols, Len: len(h.lost) / h.direction.out.Cols, Index: h.direction.places}.Part(o.from, o.end)
	}
	return codec.EncodeWithFeedback(o.block[:0], h.codec, h.direction.out.Part(o.from, o.end), o.first, h.key, lost)
}

// noteSent notes a message that was begun, and asks for those begun before: MPI
// moves them on only when it is asked.
func (h *chunked) noteSent(r comm.Request, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.leaving = append(h.leaving, r)
		err = h.progress()
	}
	if h.failed == nil {
		h.failed = err
	}
}

// progress forgets the first messages if they have left.
func (h *chunked) progress() error {
	n := 0
	for n < len(h.leaving) {
		left, err := h.leaving[n].Test()
		if err != nil {
			return err
		}
		if !left {
			break
		}
		n++
	}
	kept := copy(h.leaving, h.leaving[n:])
	clear(h.leaving[kept:])
	h.leaving = h.leaving[:kept]
	return nil
}
