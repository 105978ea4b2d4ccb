//go:build mpi

package mpi

import (
	"fmt"

	"siafu/ranks/world"
)

// The two ranks of a pair know only the lengths of the blocks between them, so the length alone
// determines the transport. Short blocks share one MPI_Ialltoallv. A long block is sent point to
// point, in pieces. The limit of a short block is such that all short blocks of a rank fit in one
// piece. If long blocks lie between them, the displacements of short blocks may be too large for
// MPI. The rank then packs its short blocks locally.

// lane is one direction of an MPI_Ialltoallv.
type lane struct {
	buf            []byte
	counts, displs []int32
	staged         bool // buf is not the caller's and has only the short blocks
}

// blocks is one direction of an exchange. It does not refer to the caller's counts, because the
// caller may overwrite them as soon as the exchange has begun.
type blocks struct {
	buf []byte
	at  []int // start of each block, and the end of the last one (world.Offsets)
}

func (b blocks) block(q int) []byte { return b.buf[b.at[q]:b.at[q+1]] }
func (b blocks) length(q int) int   { return b.at[q+1] - b.at[q] }

func (c *comm) Ialltoallv(send []byte, sendCounts []int, recv []byte, recvCounts []int) (world.Request, error) {
	world.CheckAlltoallv(c.Size(), send, sendCounts, recv, recvCounts)
	s := c.begins("Ialltoallv")
	out := blocks{send, world.Offsets(sendCounts)}
	in := blocks{recv, world.Offsets(recvCounts)}
	if sendCounts[c.rank] != recvCounts[c.rank] {
		return nil, s.wrap(fmt.Errorf("the rank sends itself %d bytes but expects %d", sendCounts[c.rank], recvCounts[c.rank]))
	}
	copy(in.block(c.rank), out.block(c.rank))

	long := c.longPieces(out) + c.longPieces(in)
	r := c.request(s, 1+long, 4*c.Size())
	r.keep(send, recv)
	there, back := c.lane(r, out), c.lane(r, in)
	if there.staged {
		c.eachShort(out, func(q int) { copy(there.buf[there.displs[q]:], out.block(q)) })
	}
	if back.staged {
		r.after = func() {
			c.eachShort(in, func(q int) { copy(in.block(q), back.buf[back.displs[q]:]) })
		}
	}
	err := r.mem.ialltoallv(0, c.collective, there, back)
	if err == nil && long > 0 {
		err = c.exchangeLong(r, out, in)
	}
	return asRequest(r.begun(err))
}

// asRequest converts a nil request to a nil interface.
func asRequest(r *request, err error) (world.Request, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// short reports whether the block from or to rank q is part of the MPI_Ialltoallv.
func (c *comm) short(b blocks, q int) bool {
	return b.length(q) <= c.p.pieces.length/c.Size()
}

// eachShort calls do for the short blocks of other ranks.
func (c *comm) eachShort(b blocks, do func(q int)) {
	for q := range c.ranks {
		if q != c.rank && c.short(b, q) {
			do(q)
		}
	}
}

// longPieces counts the pieces of long blocks of other ranks.
func (c *comm) longPieces(b blocks) int {
	n := 0
	for q := range c.ranks {
		if q != c.rank && !c.short(b, q) {
			n += ceil(b.length(q), c.p.pieces.length)
		}
	}
	return n
}

// lane describes the short blocks to MPI.
func (c *comm) lane(r *request, b blocks) lane {
	size := c.Size()
	l := lane{buf: b.buf, counts: r.mem.take(size), displs: r.mem.take(size), staged: len(b.buf) > c.p.pieces.span}
	clear(l.counts) // C memory is not zeroed
	clear(l.displs)
	total := 0
	c.eachShort(b, func(q int) {
		l.counts[q], l.displs[q] = int32(b.length(q)), int32(b.at[q])
		if l.staged {
			l.displs[q] = int32(total)
		}
		total += b.length(q)
	})
	if l.staged {
		l.buf = make([]byte, total)
		r.keep(l.buf)
	}
	return l
}

// exchangeLong begins to receive and to send the long blocks. MPI matches the pieces between two
// ranks in the order of the calls. This order is the same on both ranks, even with several pending
// exchanges.
func (c *comm) exchangeLong(r *request, out, in blocks) error {
	next := 1 // request 0 is the MPI_Ialltoallv
	each := func(b blocks, begin func(i int, h handle, piece []byte, q, tag int) error) error {
		for q := range c.ranks {
			if q == c.rank || c.short(b, q) {
				continue
			}
			err := inPieces(b.block(q), c.p.pieces.length, func(_ int, piece []byte) error {
				next++
				return begin(next-1, c.collective, piece, q, 0)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := each(in, r.mem.irecv); err != nil {
		return err
	}
	return each(out, r.mem.isend)
}
