package refresh

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"siafu/halo"
	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/internal/wire"
	"siafu/kernels"
)

// series has the rows of one layer in one direction over all epochs: the newest received rows,
// and buffers for sent rows.
//
//	start[q] <= i < start[q+1]  row i is one that rank q sends
//	blocks                      are in ascending order, do not overlap, and each
//	                            holds rows of one rank
//	missing                     is the number of rows in no block
//	oldest                      is the least epoch of the blocks
type series struct {
	width    int
	ops      kernels.Ops
	start    []int64
	rows     kernels.Mat // [rows x width], received
	hostRows []float32   // rows if in host memory, else a copy; nil with a coder
	// Sent rows: forward own rows, nil if they need no copy; backward the gradients of ghosts,
	// which are written to buffer.
	sendRows []float32
	buffer   kernels.Mat
	coder    *halo.Coder // nil: the host encodes and decodes

	mu      sync.Mutex        // guards the fields below; only take changes blocks
	pending []acceptedMessage // in the order in which they were accepted
	blocks  []halo.Block
	missing int
	oldest  int
}

// acceptedMessage is an accepted message. block is the destination of its rows.
type acceptedMessage struct {
	from  int // rank
	first int // in its message
	block halo.Block
	data  []byte // of the block
	whole []byte // message
}

// newSeries allocates received rows, and buffers to encode and decode; at most most rows are
// sent at once.
func newSeries(width int, start []int64, most int, c codec.Codec, ops kernels.Ops, a *mapped.Arena) *series {
	n := int(start[len(start)-1])
	r := &series{width: width, ops: ops.Fork(), start: start, missing: n, oldest: math.MaxInt}
	if r.coder = halo.NewCoder(r.ops, c, max(most, longest(start)), width, a.For(halo.Buffers)); r.coder != nil {
		r.rows = kernels.NewMat(ops, a, n, width)
		return r
	}
	r.hostRows = mapped.Make[float32](a, n*width)
	r.rows = kernels.PlaceMat(ops, a, n, width, r.hostRows)
	return r
}

// host returns sent rows in host memory. From a device it copies rows lo..hi-1 first.
func (r *series) host(rows kernels.Mat, lo, hi int) []float32 {
	if !rows.Remote() {
		return rows.Host()
	}
	kernels.Read(r.ops, r.sendRows[lo*r.width:hi*r.width], rows.Part(lo, hi))
	return r.sendRows
}

// accept queues the rows of a whole message, unless the rank has no such rows. take gives its memory
// to wire.PutBuffer.
func (r *series) accept(m message, whole []byte, from int) bool {
	at, all := int(r.start[from]), int(r.start[from+1]-r.start[from])
	if m.rows < 1 || m.first+m.rows > all {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	block := halo.Block{First: at + m.first, Rows: m.rows, Epoch: m.slot.Epoch}
	r.pending = append(r.pending, acceptedMessage{from, m.first, block, m.block, whole})
	return true
}

// complete reports whether each row has arrived at least once.
func (r *series) complete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing == 0
}

// age returns the epoch of the oldest row, 0 while one is missing.
func (r *series) age() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missing > 0 {
		return 0
	}
	return r.oldest
}

// hasPending reports whether a message is pending.
func (r *series) hasPending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending) > 0
}

// take stores the rows of the first pending message, unless newer ones are stored. It returns
// their range and the rank that sent them.
func (r *series) take(c codec.Codec) (lo, hi, from int, err error) {
	next, ok := r.pop()
	if !ok {
		panic("refresh: no rows to take")
	}
	if r.coder == nil { // a device may copy it later
		defer wire.PutBuffer(next.whole)
	}
	b := next.block
	k, old, err := r.find(b)
	if err != nil || old {
		return 0, 0, next.from, err
	}
	lo, hi = b.First, b.First+b.Rows
	opened, err := codec.Open(next.data, c)
	if err == nil && opened.First != next.first {
		err = fmt.Errorf("a block at row %d, want row %d", opened.First, next.first)
	}
	if err == nil {
		err = r.put(opened, c, lo, hi)
	}
	if err != nil {
		return 0, 0, next.from, err
	}
	r.setBlock(k, b)
	return lo, hi, next.from, nil
}

// put decodes a block into rows lo..hi-1.
func (r *series) put(b codec.Block, c codec.Codec, lo, hi int) error {
	if r.coder != nil {
		return r.coder.Decode(r.rows.Part(lo, hi), b)
	}
	place := r.hostRows[lo*r.width : hi*r.width]
	if err := b.Decode(c, codec.Rows{X: place, Cols: r.width, Len: hi - lo}, false); err != nil {
		return err
	}
	kernels.Write(r.ops, r.rows.Part(lo, hi), place)
	return nil
}

// pop removes the first message that is pending.
func (r *series) pop() (acceptedMessage, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) == 0 {
		return acceptedMessage{}, false
	}
	first := r.pending[0]
	r.pending = slices.Delete(r.pending, 0, 1)
	return first, true
}

// find returns the index of b among the blocks, and whether b is no newer than the one at that
// index. It is an error if b overlaps a block with other bounds.
func (r *series) find(b halo.Block) (k int, old bool, err error) {
	k, found := slices.BinarySearchFunc(r.blocks, b.First, func(o halo.Block, first int) int { return cmp.Compare(o.First, first) })
	switch {
	case found && r.blocks[k].Rows == b.Rows:
		return k, r.blocks[k].Epoch >= b.Epoch, nil
	case found, k > 0 && r.blocks[k-1].First+r.blocks[k-1].Rows > b.First, k < len(r.blocks) && b.First+b.Rows > r.blocks[k].First:
		return 0, false, fmt.Errorf("rows %d to %d overlap rows received before", b.First, b.First+b.Rows-1)
	}
	return k, false, nil
}

// setBlock sets the k-th block to b, or inserts it there if its rows are new.
func (r *series) setBlock(k int, b halo.Block) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k == len(r.blocks) || r.blocks[k].First != b.First {
		r.blocks = slices.Insert(r.blocks, k, b)
		r.missing -= b.Rows
		r.oldest = min(r.oldest, b.Epoch)
		return
	}
	before := r.blocks[k].Epoch
	r.blocks[k] = b
	if before == r.oldest {
		r.oldest = slices.MinFunc(r.blocks, func(a, b halo.Block) int { return cmp.Compare(a.Epoch, b.Epoch) }).Epoch
	}
}

// owner returns the rank that sends a row.
func (r *series) owner(row int) int {
	return slices.IndexFunc(r.start[1:], func(end int64) bool { return int64(row) < end })
}
