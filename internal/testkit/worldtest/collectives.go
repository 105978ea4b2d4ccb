package worldtest

import (
	"fmt"
	"runtime"

	"siafu/ranks/world"
)

var collectives = []check{
	{"Barrier", barrier},
	{"Bcast", bcast},
	{"Allgatherv", allgatherv},
	{"Ialltoallv", alltoallv},
	{"IalltoallvInFlight", inFlight},
	{"IalltoallvOverlap", overlap},
}

// barrier tests that no rank leaves before the last one enters: a rank that leaves must find the
// messages of all.
func barrier(c world.Comm) error {
	for round := range 20 {
		for q := range c.Size() {
			if q == c.Rank() { // MPI may let a message to oneself wait for its receiver
				continue
			}
			if err := finish(c.Isend([]byte{byte(round)}, q, 7)); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		for q := range c.Size() {
			if q == c.Rank() {
				continue
			}
			m, err := c.Recv(q, 7)
			if err != nil {
				return err
			}
			if m.Data[0] != byte(round) {
				return fmt.Errorf("in round %d got a message of round %d", round, m.Data[0])
			}
		}
	}
	return nil
}

func bcast(c world.Comm) error {
	for root := range c.Size() {
		for which, n := range lengths {
			buf, intact := guarded(n)
			want := pattern(n, root, 0, which)
			if c.Rank() == root {
				copy(buf, want)
			}
			if err := c.Bcast(buf, root); err != nil {
				return err
			}
			if err := same(fmt.Sprintf("from %d", root), buf, want); err != nil {
				return err
			}
			if err := intact(); err != nil {
				return err
			}
		}
	}
	return c.Bcast(nil, 0)
}

func allgatherv(c world.Comm) error {
	for which := range lengths {
		counts, want := make([]int, c.Size()), []byte{}
		for q := range counts {
			counts[q] = lengths[(q+which)%len(lengths)]
			want = append(want, pattern(counts[q], q, 0, which)...)
		}
		recv, intact := guarded(len(want))
		if err := c.Allgatherv(pattern(counts[c.Rank()], c.Rank(), 0, which), recv, counts); err != nil {
			return err
		}
		if err := same("blocks", recv, want); err != nil {
			return err
		}
		if err := intact(); err != nil {
			return err
		}
	}
	return c.Allgatherv(nil, nil, make([]int, c.Size()))
}

// exchange is one Ialltoallv with recognisable blocks.
type exchange struct {
	request    world.Request
	recv, want []byte
	intact     func() error
	send, sent []byte // both are equal unless the send buffer was changed
}

// beginExchange begins the exchange with a number. length returns the length of the block between
// two ranks.
func beginExchange(c world.Comm, which int, length func(from, to int) int) (*exchange, error) {
	me, size := c.Rank(), c.Size()
	x := &exchange{}
	sendCounts, recvCounts := make([]int, size), make([]int, size)
	for q := range size {
		sendCounts[q], recvCounts[q] = length(me, q), length(q, me)
		x.send = append(x.send, pattern(sendCounts[q], me, q, which)...)
		x.want = append(x.want, pattern(recvCounts[q], q, me, which)...)
	}
	x.sent = append(x.sent, x.send...)
	x.recv, x.intact = guarded(len(x.want))
	var err error
	x.request, err = c.Ialltoallv(x.send, sendCounts, x.recv, recvCounts)
	// The counts may be changed as soon as Ialltoallv returns.
	clear(sendCounts)
	clear(recvCounts)
	return x, err
}

// end waits for the exchange and checks the buffers.
func (x *exchange) end() error {
	if err := x.request.Wait(); err != nil {
		return err
	}
	if err := same("received", x.recv, x.want); err != nil {
		return err
	}
	if err := same("sent", x.send, x.sent); err != nil {
		return err
	}
	return x.intact()
}

// shapes are functions for the lengths of blocks.
var shapes = []func(from, to int) int{
	func(from, to int) int { return 0 },
	func(from, to int) int { return 1 },
	func(from, to int) int { return lengths[(2*from+to)%len(lengths)] },
	func(from, to int) int { return lengths[(from+3*to+1)%len(lengths)] },
	func(from, to int) int { // a chain of partitions
		if to == from+1 {
			return 70_001
		}
		return 0
	},
	func(from, to int) int { // only one rank sends
		if from == 0 {
			return 12_345
		}
		return 0
	},
}

func alltoallv(c world.Comm) error {
	for which, shape := range shapes {
		x, err := beginExchange(c, which, shape)
		if err != nil {
			return err
		}
		if err := x.end(); err != nil {
			return fmt.Errorf("shape %d: %w", which, err)
		}
	}
	return finish(c.Ialltoallv(nil, make([]int, c.Size()), nil, make([]int, c.Size())))
}

// inFlight tests concurrent exchanges that end in the reverse order, after another collective.
func inFlight(c world.Comm) error {
	under := make([]*exchange, len(shapes))
	for i, shape := range shapes {
		var err error
		if under[i], err = beginExchange(c, i, shape); err != nil {
			return err
		}
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	for i := len(under) - 1; i >= 0; i-- {
		for ended := false; !ended; runtime.Gosched() {
			var err error
			if ended, err = under[i].request.Test(); err != nil {
				return err
			}
		}
		if err := under[i].end(); err != nil {
			return fmt.Errorf("exchange %d: %w", i, err)
		}
	}
	return nil
}

// overlap computes during exchanges, and sends and receives messages in another goroutine.
func overlap(c world.Comm) error {
	exchanges := func() error {
		for round := range 10 {
			x, err := beginExchange(c, round, shapes[2])
			if err != nil {
				return err
			}
			pattern(300_000, 0, 0, round) // takes time
			if err := x.end(); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		return nil
	}
	return together(exchanges, func() error { return ring(c, 100) })
}

// ring sends messages to the next rank and receives those of the previous one.
func ring(c world.Comm, rounds int) error {
	next, before := neighbours(c)
	for round := range rounds {
		n := lengths[round%len(lengths)] % 5000
		req, err := c.Isend(pattern(n, c.Rank(), next, round), next, 3)
		if err != nil {
			return err
		}
		m, err := c.Recv(before, 3)
		if err != nil {
			return err
		}
		if err := same("message", m.Data, pattern(n, before, c.Rank(), round)); err != nil {
			return err
		}
		if err := req.Wait(); err != nil {
			return err
		}
	}
	return nil
}
