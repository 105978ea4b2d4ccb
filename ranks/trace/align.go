package trace

import (
	"encoding/binary"

	"siafu/internal/fault"
	"siafu/ranks/world"
)

// tag is the tag of messages that compare clocks. Training uses other tags.
const tag = 1 << 14

// rounds is the number of round trips of a comparison. The shortest one is used.
const rounds = 16

// Offset is the difference of a rank's clock and rank 0's.
type Offset struct {
	Nanos int64 // positive: the rank's clock is ahead
	Trip  int64 // nanoseconds of the round trip; half of it bounds the error
}

// Measure compares the clocks of all ranks with rank 0's and returns the caller's offset. Ranks on
// the host of rank 0 share its clock. now returns the time of the caller's clock in nanoseconds.
// Collective.
//
// The estimate is that of the Network Time Protocol (RFC 5905, §8): the shortest of several round
// trips is the most accurate.
func Measure(c world.Comm, now func() int64) (Offset, error) {
	hosts := c.Hosts()
	var mine Offset
	for q := 1; q < c.Size(); q++ {
		var err error
		switch {
		case hosts[q] == hosts[0]:
		case c.Rank() == 0:
			err = answer(c, q, now)
		case c.Rank() == q:
			mine, err = ask(c, now)
		}
		if err != nil {
			return Offset{}, err
		}
	}
	return mine, nil
}

// answer sends the time to rank q for each of its requests.
func answer(c world.Comm, q int, now func() int64) error {
	for range rounds {
		if _, err := c.Recv(q, tag); err != nil {
			return err
		}
		r, err := c.Isend(binary.LittleEndian.AppendUint64(nil, uint64(now())), q, tag)
		if err != nil {
			return err
		}
		if err := r.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// ask requests the time from rank 0 and returns the offset of this rank's clock.
func ask(c world.Comm, now func() int64) (Offset, error) {
	best := Offset{Trip: 1<<63 - 1}
	for range rounds {
		before := now()
		r, err := c.Isend(nil, 0, tag)
		if err != nil {
			return best, err
		}
		m, err := c.Recv(0, tag)
		if err != nil {
			return best, err
		}
		after := now()
		if err := r.Wait(); err != nil {
			return best, err
		}
		if len(m.Data) != 8 {
			return best, fault.New(fault.Runtime, "trace", "", "malformed time message from rank 0 (%d bytes)", len(m.Data))
		}
		if trip := after - before; trip < best.Trip {
			best = Offset{Nanos: before + trip/2 - int64(binary.LittleEndian.Uint64(m.Data)), Trip: trip}
		}
	}
	return best, nil
}

// Better returns the more accurate of two offsets, measured before and after training. wrong bounds
// its error in nanoseconds: half of its round trip, plus the drift of the clocks during training.
func Better(first, last Offset) (nanos, wrong int64) {
	best := first
	if last.Trip < first.Trip {
		best = last
	}
	return best.Nanos, best.Trip/2 + max(first.Nanos-last.Nanos, last.Nanos-first.Nanos)
}
