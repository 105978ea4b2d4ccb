package trace

import (
	"encoding/binary"

	"siafu/internal/fault"
	"siafu/ranks/world"
)

// tag of the messages by which clocks are compared, away from those of
// training.
const tag = 1 << 14

// rounds of a comparison; the quickest counts.
const rounds = 16

// Offset is how far a rank's clock is ahead of rank 0's.
type Offset struct {
	Nanos int64
	Trip  int64 // nanoseconds of the round trip that told; half of it is the error
}

// Measure compares the clocks of all ranks with rank 0's and returns the
// caller's offset. Ranks on the host of rank 0 share its clock. now is the
// present on the caller's clock, in nanoseconds. Collective.
//
// The estimate is that of the Network Time Protocol (RFC 5905, §8): of several
// round trips the shortest tells most.
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

// answer tells rank q the time as often as it asks.
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

// ask compares this rank's clock with rank 0's.
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

// Better returns the offset that was told by the shorter trip, of one measured
// before and one after training, with the nanoseconds by which it may be wrong:
// half of the trip, and what the clocks have drifted apart meanwhile.
func Better(first, last Offset) (nanos, wrong int64) {
	best := first
	if last.Trip < first.Trip {
		best = last
	}
	return best.Nanos, best.Trip/2 + max(first.Nanos-last.Nanos, last.Nanos-first.Nanos)
}
