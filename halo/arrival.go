package halo

import (
	"fmt"
	"slices"
	"time"

	"siafu/halo/codec"
	"siafu/internal/fault"
	"siafu/internal/wire"
)

func (h *chunked) arrived() (bool, error) {
	if err := h.collect(); err != nil {
		return false, err
	}
	return h.pendingRank() < 0, nil
}

// pendingRank returns a rank whose chunks have not all arrived, or -1.
func (h *chunked) pendingRank() int {
	return slices.IndexFunc(h.expected, func(n int) bool { return n > 0 })
}

func (h *chunked) await() error {
	for {
		if here, err := h.arrived(); here || err != nil {
			return err
		}
		if err := h.receiveFrom(h.pendingRank()); err != nil {
			return err
		}
	}
}

// receiveFrom waits for a chunk of a rank.
func (h *chunked) receiveFrom(rank int) error {
	if err := h.sendEncoded(true); err != nil {
		return err
	}
	start := time.Now()
	m, err := h.comm.Recv(rank, h.tag)
	h.stats.Wait += time.Since(start)
	if err != nil {
		return err
	}
	return h.accept(m)
}

func (h *chunked) end(w direction) error {
	h.direction = w
	for i := range h.expected {
		turn := i // sums are in ascending order of ranks
		if !w.add {
			turn = (h.comm.Rank() + i) % len(h.expected)
		}
		if err := h.receive(turn); err != nil {
			return err
		}
	}
	return h.waitSent()
}

// receive decodes received chunks until no more arrive from rank turn. If there is nothing to
// decode, it waits for that rank alone, so that a timeout can name it.
func (h *chunked) receive(turn int) error {
	for {
		if err := h.collect(); err != nil {
			return err
		}
		if h.selectReady(turn); len(h.ready) > 0 {
			if err := h.decodeReady(); err != nil {
				return err
			}
			continue
		}
		if h.expected[turn] == 0 {
			return nil
		}
		if err := h.receiveFrom(turn); err != nil {
			return err
		}
	}
}

// collect takes received messages and progresses sends.
func (h *chunked) collect() error {
	if err := h.sendEncoded(false); err != nil {
		return err
	}
	for q := range h.expected {
		for h.expected[q] > 0 {
			m, ok, err := h.comm.TryRecv(q, h.tag)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if err := h.accept(m); err != nil {
				return err
			}
		}
	}
	return h.progress()
}

// selectReady moves chunks that may be decoded now to ready: all if rows are set, those from
// rank turn if rows are added.
func (h *chunked) selectReady(turn int) {
	later := h.waiting[:0]
	for _, c := range h.waiting {
		if !h.direction.add || c.from == turn {
			h.ready = append(h.ready, c)
		} else {
			later = append(later, c)
		}
	}
	clear(h.waiting[len(later):])
	h.waiting = later
}

// decodeReady decodes the chunks of ready. Their rows are distinct.
func (h *chunked) decodeReady() error {
	start := time.Now()
	if h.direction.coded {
		h.decodeOnDevice()
	} else {
		h.team.Run(len(h.ready), 1, h.decode)
	}
	h.stats.Decode += time.Since(start)
	for _, c := range h.ready {
		if c.err != nil {
			return fault.New(fault.Runtime, "halo", "", "rank %d: the %s block from rank %d is damaged: %v",
				h.comm.Rank(), h.direction.name(), c.from, c.err)
		}
	}
	for _, c := range h.ready {
		if !h.direction.coded { // a device may copy it later
			wire.PutBuffer(c.data)
		}
	}
	clear(h.ready)
	h.ready = h.ready[:0]
	return nil
}

func (h *chunked) decodeChunks(lo, hi int) {
	for i := lo; i < hi; i++ {
		h.ready[i].err = h.decodeChunk(&h.ready[i])
	}
}

// openBlock checks c, whose rows must be one chunk, and returns the index of its first row in the
// receive buffer.
func (h *chunked) openBlock(c *incoming) (b codec.Block, from int, err error) {
	if b, err = codec.Open(c.data, h.codec); err != nil {
		return b, 0, err
	}
	all := rowsOfRank(h.direction.inStart, c.from)
	if b.First%h.rows != 0 || b.First >= all || b.Rows != min(h.rows, all-b.First) {
		return b, 0, fmt.Errorf("%d rows at row %d are not a chunk of the %d rows expected from this rank", b.Rows, b.First, all)
	}
	return b, int(h.direction.inStart[c.from]) + b.First, nil
}

// decodeChunk decodes c into the rows' destination.
func (h *chunked) decodeChunk(c *incoming) error {
	b, from, err := h.openBlock(c)
	if err != nil {
		return err
	}
	return b.Decode(h.codec, h.direction.in.Part(from, from+b.Rows), h.direction.add)
}

// waitSent waits for all sends.
func (h *chunked) waitSent() error {
	if err := h.sendEncoded(true); err != nil {
		return err
	}
	start := time.Now()
	defer func() { h.stats.Wait += time.Since(start) }()
	for _, r := range h.sends {
		if err := r.Wait(); err != nil {
			return err
		}
	}
	clear(h.sends)
	h.sends = h.sends[:0]
	return nil
}
