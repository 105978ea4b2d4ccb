package link

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"siafu/ranks/world"
)

// Tag is the tag of all messages of a measurement: no other messages with it may be pending on
// the communicator.
const Tag = 32001

const (
	budget   = 200 * time.Millisecond // of a whole measurement
	least    = 10 * time.Millisecond  // minimum per round, for any number of rounds
	smallest = 8                      // bytes of the message that measures latency
	largest  = 2 << 20                // bytes of the largest message: smallest times a power of 8
	rounds   = 64                     // maximal number of messages of each size
)

// Table is a measurement. Both are symmetric; the diagonal is unused.
type Table struct {
	Size      int
	Latency   []float64 // [Size x Size] seconds of a small message, one way
	Bandwidth []float64 // [Size x Size] sustained bytes per second, of messages up to 2 MiB
}

// At returns the latency in seconds and the bandwidth in bytes a second from p to q.
func (t *Table) At(p, q int) (latency, bandwidth float64) {
	return t.Latency[p*t.Size+q], t.Bandwidth[p*t.Size+q]
}

// typical is the typical length of a message of rows, in bytes.
const typical = 256 << 10

// Slowest returns the pair with the longest time for 256 KiB; ok is false for a single rank.
func (t *Table) Slowest() (p, q int, ok bool) {
	most := 0.0
	for a := range t.Size {
		for b := a + 1; b < t.Size; b++ {
			latency, rate := t.At(a, b)
			if seconds := latency + typical/rate; seconds > most {
				p, q, most, ok = a, b, seconds, true
			}
		}
	}
	return p, q, ok
}

// Measure times messages between all pairs of ranks, in about 0.2 s, or 10 ms per rank for
// many ranks, and gives every rank the same table. Pairs without a common rank are measured
// concurrently: they share hosts and switches as in training. Collective.
func Measure(c world.Comm) (*Table, error) {
	n, me := c.Size(), c.Rank()
	row := make([]float64, 2*n)
	if n > 1 {
		share := max(budget/time.Duration(turns(n)), least)
		buf := make([]byte, largest)
		for turn := range turns(n) {
			// All begin a round together: an early rank would measure the wait.
			if err := c.Barrier(); err != nil {
				return nil, err
			}
			peer := partner(me, turn, n)
			if peer < 0 {
				continue
			}
			if err := measurePair(c, peer, buf, share, row[2*peer:2*peer+2]); err != nil {
				return nil, err
			}
		}
	}
	return gather(c, row)
}

// turns returns the number of rounds in which every pair is measured once.
func turns(n int) int { return n + n%2 - 1 }

// partner returns the peer of rank r in a round, -1 for none: the circle method of a
// round-robin tournament, with a bye for odd n. The last of an even number of ranks is fixed,
// the others rotate.
func partner(r, turn, n int) int {
	m := turns(n) // ranks that rotate, an odd number
	var p int
	switch {
	case r == m:
		p = turn
	case r == turn:
		p = m
	default:
		p = ((2*turn-r)%m + m) % m
	}
	if p >= n {
		return -1
	}
	return p
}

// measurePair fills to with latency and bandwidth on the lower rank of a pair; the other one
// returns each message until it receives an empty one.
func measurePair(c world.Comm, peer int, buf []byte, share time.Duration, to []float64) error {
	if c.Rank() > peer {
		return echo(c, peer)
	}
	times, err := oneWay(c, peer, buf[:smallest], share/4)
	if err != nil {
		return err
	}
	to[0] = times[0]
	to[1] = smallest / to[0]
	// The next length is eight times the last one, and takes at least eight times
	// what that took beyond the latency. It is measured if some round trips fit.
	for length, next := 8*smallest, to[0]; length <= largest && 8*next < share.Seconds(); length *= 8 {
		if times, err = oneWay(c, peer, buf[:length], share/8); err != nil {
			return err
		}
		// Switches and queues pass a burst at once, so the best time is not sustained. Times
		// that are mostly latency say little about bandwidth.
		middle := times[len(times)/2]
		to[1] = float64(length) / max(middle-to[0], middle/2)
		next = to[0] + 8*max(times[0]-to[0], 0)
	}
	return send(c, peer, nil)
}

// oneWay returns half of the round-trip times of a message, in ascending order.
func oneWay(c world.Comm, peer int, message []byte, limit time.Duration) ([]float64, error) {
	var times []float64
	for start := time.Now(); len(times) == 0 || len(times) < rounds && time.Since(start) < limit; {
		begin := time.Now()
		if err := send(c, peer, message); err != nil {
			return nil, err
		}
		if _, err := c.Recv(peer, Tag); err != nil {
			return nil, err
		}
		times = append(times, max(time.Since(begin).Seconds()/2, 1e-9))
	}
	slices.Sort(times)
	return times, nil
}

func echo(c world.Comm, peer int) error {
	for {
		m, err := c.Recv(peer, Tag)
		if err != nil || len(m.Data) == 0 {
			return err
		}
		if err := send(c, peer, m.Data); err != nil {
			return err
		}
	}
}

func send(c world.Comm, peer int, message []byte) error {
	r, err := c.Isend(message, peer, Tag)
	if err != nil {
		return err
	}
	return r.Wait()
}

// gather makes the table from all ranks' rows; a pair's lower rank has filled its part.
func gather(c world.Comm, row []float64) (*Table, error) {
	n := c.Size()
	mine := make([]byte, 0, 8*len(row))
	for _, v := range row {
		mine = binary.LittleEndian.AppendUint64(mine, math.Float64bits(v))
	}
	all := make([]byte, n*len(mine))
	if err := c.Allgatherv(mine, all, slices.Repeat([]int{len(mine)}, n)); err != nil {
		return nil, err
	}
	t := &Table{Size: n, Latency: make([]float64, n*n), Bandwidth: make([]float64, n*n)}
	for p := range n {
		for q := p + 1; q < n; q++ {
			for i, into := range [][]float64{t.Latency, t.Bandwidth} {
				at := 8 * (2*(p*n+q) + i)
				v := math.Float64frombits(binary.LittleEndian.Uint64(all[at:]))
				into[p*n+q], into[q*n+p] = v, v
			}
		}
	}
	return t, nil
}
