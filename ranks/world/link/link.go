package link

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"siafu/ranks/world"
)

// Tag is that of all messages of a measurement: no others with it may be under
// way on the communicator.
const Tag = 32001

const (
	budget   = 200 * time.Millisecond // of a whole measurement
	least    = 10 * time.Millisecond  // of a turn, however many there are
	smallest = 8                      // bytes of the message that measures latency
	largest  = 2 << 20                // bytes of the largest message: smallest times a power of 8
	rounds   = 64                     // messages of each size at most
)

// Table is a measurement. Both are symmetric; a rank and itself have none.
type Table struct {
	Size      int
	Latency   []float64 // [Size x Size] seconds of a small message, one way
	Bandwidth []float64 // [Size x Size] bytes a second that last, of messages up to 2 MiB
}

// At is the latency in seconds and the bandwidth in bytes a second from p to
// q.
func (t *Table) At(p, q int) (latency, bandwidth float64) {
	return t.Latency[p*t.Size+q], t.Bandwidth[p*t.Size+q]
}

// typical is the length of a message of rows.
const typical = 256 << 10

// Slowest is the pair between which 256 KiB take longest; ok is false for a
// single rank.
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

// Measure times messages between all pairs of ranks, in about 0.2 s, or 10 ms a
// rank where there are many, and gives every rank the same table. Pairs that share no
// rank are measured at the same time, as in training: what they share, a host
// or a switch, they share in the figures too. Collective.
func Measure(c world.Comm) (*Table, error) {
	n, me := c.Size(), c.Rank()
	row := make([]float64, 2*n)
	if n > 1 {
		share := max(budget/time.Duration(turns(n)), least)
		buf := make([]byte, largest)
		for turn := range turns(n) {
			// All begin a turn together: who comes early would measure the wait.
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

// turns is the number of turns in which every pair meets once.
func turns(n int) int { return n + n%2 - 1 }

// partner is whom rank r meets in a turn, -1 for nobody: the circle method of
// a round-robin tournament, with a bye where n is odd. The last of an even
// number of players stays, the others rotate.
func partner(r, turn, n int) int {
	m := turns(n) // players that rotate, an odd number
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

// measurePair fills to with latency and bandwidth on the lower rank of a pair;
// the other one sends back what it gets until it gets nothing.
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
		// Switches and queues let a burst pass at once, so that the best is not
		// what lasts. What is latency, for the most part, says little of either.
		middle := times[len(times)/2]
		to[1] = float64(length) / max(middle-to[0], middle/2)
		next = to[0] + 8*max(times[0]-to[0], 0)
	}
	return send(c, peer, nil)
}

// oneWay is half of the times of round trips of a message, in ascending order.
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

// gather makes the table of everybody's rows, of which a pair's lower rank has
// filled its part.
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
