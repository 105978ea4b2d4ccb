package halo

import (
	"fmt"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/mapped"
)

// owner is a rank in the role of sender.
type owner struct {
	shard   *shard.Shard
	start   []int64  // of the send list, by holder
	rows    []uint32 // to send; sums follow own rows
	offsets []int64  // of the sums
	sources []uint32
	ids     []uint32 // of their destinations
}

func newOwner(s *shard.Shard) *owner {
	return &owner{shard: s, start: []int64{0}, offsets: []int64{0}}
}

// take reads the request of rank q. Ranks before q must have been read.
func (o *owner) take(q int, message []uint32) error {
	list := o.shard.SendRows[o.shard.SendStart[q]:o.shard.SendStart[q+1]]
	var err error
	if len(message) == 0 {
		o.rows = append(o.rows, list...)
	} else {
		err = o.read(list, message)
	}
	o.start = append(o.start, int64(len(o.rows)))
	return err
}

// read parses a message about the rows of list.
func (o *owner) read(list, message []uint32) error {
	if len(message) < messageHead {
		return fmt.Errorf("%d numbers", len(message))
	}
	rows, sums, sources := int(message[0]), int(message[1]), int(message[2])
	if rest := len(message) - messageHead; rest != rows+2*sums+sources {
		return fmt.Errorf("%d numbers do not fit %d rows and %d sums of %d sources", rest, rows, sums, sources)
	}
	message = message[messageHead:]
	for i, k := range message[:rows] {
		if int(k) >= len(list) || i > 0 && k <= message[i-1] {
			return fmt.Errorf("row %d of %d has the invalid number %d", i, len(list), k)
		}
		o.rows = append(o.rows, list[k])
	}
	return o.readSums(list, message[rows:rows+sums], message[rows+sums:rows+2*sums], message[rows+2*sums:])
}

func (o *owner) readSums(list, ids, lengths, sources []uint32) error {
	for i, n := range lengths {
		if int(n) > len(sources) || n == 0 {
			return fmt.Errorf("sum %d has %d sources, but only %d are left", i, n, len(sources))
		}
		for _, k := range sources[:n] {
			if int(k) >= len(list) {
				return fmt.Errorf("sum %d has row %d of %d", i, k, len(list))
			}
			o.sources = append(o.sources, list[k])
		}
		sources = sources[n:]
		o.rows = append(o.rows, uint32(o.shard.NumOwn()+len(o.ids)))
		o.ids, o.offsets = append(o.ids, ids[i]), append(o.offsets, int64(len(o.sources)))
	}
	if len(sources) > 0 {
		return fmt.Errorf("%d sources belong to no sum", len(sources))
	}
	return nil
}

// reduction returns the owner's side of a reduction. Arrays of sums are in a.
func (o *owner) reduction(a *mapped.Arena) *Reduction {
	r := Plain(o.shard)
	if len(o.ids) == 0 && len(o.rows) == len(r.Plan.SendRows) {
		return r
	}
	own := o.shard.NumOwn()
	r.Plan.SendStart, r.Plan.SendRows = o.start, copyToArena(a, o.rows)
	r.Plan.Sums = len(o.ids)
	r.Plan.OwnIDs = copyToArena(a, append(append(make([]uint32, 0, own+len(o.ids)), o.shard.Own...), o.ids...))
	r.Sums = graph.CSR{Offsets: copyToArena(a, o.offsets), Cols: copyToArena(a, o.sources)}
	r.SumsOf = shard.Edges{Begin: r.Sums.Offsets[:len(o.ids)], End: r.Sums.Offsets[1:], Cols: r.Sums.Cols, Sources: own}.BySource(a)
	return r
}

// copyToArena copies x to an arena.
func copyToArena[T mapped.Elem](a *mapped.Arena, x []T) []T {
	kept := mapped.Make[T](a, len(x))
	copy(kept, x)
	return kept
}
