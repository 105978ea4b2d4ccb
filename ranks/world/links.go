package world

import (
	"slices"
	"time"
)

// linkTag is the tag of all messages of a measurement. No other messages with this tag may be pending
// on the communicator.
const linkTag = 32001

const (
	measureTime     = 200 * time.Millisecond // of a whole measurement
	leastRound      = 10 * time.Millisecond  // minimum per round, for any number of rounds
	smallestMessage = 8                      // bytes of the message that measures latency
	largestMessage  = 2 << 20                // bytes of the largest message: smallest times a power of 8
	enoughBytes     = 32 << 10               // bytes of a message that tells the bandwidth of a busy host
	patience        = 0.1                    // seconds that such a message may take
	mostMessages    = 64                     // maximal number of messages of each size
	fewestMessages  = 4                      // minimal number
)

// Links are the measured latencies and bandwidths between the ranks of a world. "siafu doctor" prints
// them, and the choice of a codec may use them. Both matrices are symmetric, and their diagonals are unused.
type Links struct {
	Size      int
	Latency   []float64 // [Size x Size] seconds of a small message, one way
	Bandwidth []float64 // [Size x Size] sustained bytes per second, of messages up to 2 MiB
}

// At returns the latency in seconds and the bandwidth in bytes per second from p to q.
func (t *Links) At(p, q int) (latency, bandwidth float64) {
	return t.Latency[p*t.Size+q], t.Bandwidth[p*t.Size+q]
}

// typicalMessage is the typical length of a message of rows, in bytes.
const typicalMessage = 256 << 10

// Slowest returns the pair with the longest time for 256 KiB; ok is false for a single rank.
func (t *Links) Slowest() (p, q int, ok bool) {
	most := 0.0
	for a := range t.Size {
		for b := a + 1; b < t.Size; b++ {
			latency, rate := t.At(a, b)
			if seconds := latency + typicalMessage/rate; seconds > most {
				p, q, most, ok = a, b, seconds, true
			}
		}
	}
	return p, q, ok
}

// MeasureLinks measures the messages between all pairs of ranks and returns the same table on every
// rank. It takes about 0.2 s, or 10 ms per rank for many ranks. Pairs without a common rank are
// measured concurrently: they share hosts and switches as in training. Collective.
func MeasureLinks(c Comm) (*Links, error) {
	n, me := c.Size(), c.Rank()
	t := &Links{Size: n, Latency: make([]float64, n*n), Bandwidth: make([]float64, n*n)}
	if n == 1 {
		return t, nil
	}
	share := max(measureTime/time.Duration(roundsOf(n)), leastRound)
	buf := make([]byte, largestMessage)
	for round := range roundsOf(n) {
		// All ranks begin a round together: an early rank would measure the wait.
		if err := c.Barrier(); err != nil {
			return nil, err
		}
		peer := partner(me, round, n)
		if peer < 0 {
			continue
		}
		latency, bandwidth, err := measurePair(c, peer, buf, share)
		if err != nil {
			return nil, err
		}
		// The higher rank of the pair adds zeros.
		t.Latency[me*n+peer], t.Latency[peer*n+me] = latency, latency
		t.Bandwidth[me*n+peer], t.Bandwidth[peer*n+me] = bandwidth, bandwidth
	}
	if err := SumFloat64s(c, t.Latency); err != nil {
		return nil, err
	}
	return t, SumFloat64s(c, t.Bandwidth)
}

// roundsOf returns the number of rounds in which every pair of n ranks meets once.
func roundsOf(n int) int { return n + n%2 - 1 }

// partner returns the peer of rank r in a round, or -1 for none. It uses the circle method of a
// round-robin tournament, with a bye for odd n: the last of an even number of ranks is fixed, and
// the others rotate.
func partner(r, round, n int) int {
	m := roundsOf(n) // ranks that rotate, an odd number
	var p int
	switch {
	case r == m:
		p = round
	case r == round:
		p = m
	default:
		p = ((2*round-r)%m + m) % m
	}
	if p >= n {
		return -1
	}
	return p
}

// measurePair returns latency and bandwidth on the lower rank of a pair. The other rank returns
// each message until it receives an empty one, and returns zeros.
func measurePair(c Comm, peer int, buf []byte, share time.Duration) (latency, bandwidth float64, err error) {
	if c.Rank() > peer {
		return 0, 0, echo(c, peer)
	}
	if _, err := oneWay(c, peer, buf[:smallestMessage], 0); err != nil { // the first message opens a connection
		return 0, 0, err
	}
	times, err := oneWay(c, peer, buf[:smallestMessage], share/4)
	if err != nil {
		return 0, 0, err
	}
	latency = times[0]
	bandwidth = smallestMessage / latency
	// Each length is eight times the previous one. Its estimated time without the latency is eight
	// times the previous time. A length is measured only if eight such messages fit into the pair's
	// share of time. On a busy host short messages do not, but their times are mostly waits for a
	// processor: longer ones are then measured too.
	fits := func(length int, seconds float64) bool {
		return length <= largestMessage && 8*seconds < share.Seconds() || length <= enoughBytes && seconds < patience
	}
	for length, next := 8*smallestMessage, latency; fits(length, next); length *= 8 {
		if times, err = oneWay(c, peer, buf[:length], share/8); err != nil {
			return 0, 0, err
		}
		// Switches and queues pass a burst at once, so the best time is not sustained. Times
		// that are mostly latency say little about bandwidth.
		middle := times[len(times)/2]
		bandwidth = float64(length) / max(middle-latency, middle/2)
		next = latency + 8*max(times[0]-latency, 0)
	}
	return latency, bandwidth, sendTo(c, peer, nil)
}

// oneWay returns half of the round-trip times of a message, in ascending order.
func oneWay(c Comm, peer int, message []byte, limit time.Duration) ([]float64, error) {
	var times []float64
	for start := time.Now(); len(times) < fewestMessages || len(times) < mostMessages && time.Since(start) < limit; {
		begin := time.Now()
		if err := sendTo(c, peer, message); err != nil {
			return nil, err
		}
		if _, err := c.Recv(peer, linkTag); err != nil {
			return nil, err
		}
		times = append(times, max(time.Since(begin).Seconds()/2, 1e-9))
	}
	slices.Sort(times)
	return times, nil
}

func echo(c Comm, peer int) error {
	for {
		m, err := c.Recv(peer, linkTag)
		if err != nil || len(m.Data) == 0 {
			return err
		}
		if err := sendTo(c, peer, m.Data); err != nil {
			return err
		}
	}
}

func sendTo(c Comm, peer int, message []byte) error {
	r, err := c.Isend(message, peer, linkTag)
	if err != nil {
		return err
	}
	return r.Wait()
}
