package halo

import (
	"math"
	"slices"

	"siafu/halo/comm"
	"siafu/internal/fault"
)

// Directory maps a vertex to the rank that owns it and to its row there, in 4 bytes per vertex of the
// whole graph. One goroutine at a time uses a Directory and its sets.
type Directory struct {
	comm  comm.Comm
	start []int64  // rank q's vertices have slots start[q]..start[q+1]-1 [ranks+1]
	slot  []uint32 // by vertex: its rank and, among that rank's, its row
}

// NewDirectory exchanges the lists of own vertices of all ranks, n vertices in total. Collective.
func NewDirectory(c comm.Comm, own []uint32, n int64) (*Directory, error) {
	messages := make([][]uint32, c.Size())
	for q := range messages {
		messages[q] = own
	}
	lists, err := comm.Swap(c, messages, func(int) uint64 { return uint64(n) })
	if err != nil {
		return nil, err
	}
	const nobody = math.MaxUint32 // there are fewer vertices than that
	d := &Directory{comm: c, start: make([]int64, c.Size()+1), slot: slices.Repeat([]uint32{nobody}, int(n))}
	next, seen := int64(0), int64(0)
	for q, list := range lists {
		for _, v := range list {
			if int64(v) < n && d.slot[v] == nobody {
				d.slot[v] = uint32(next)
				seen++
			}
			next++
		}
		d.start[q+1] = next
	}
	if next != n || seen != n {
		return nil, fault.New(fault.Runtime, "exchange", "", "ranks own %d vertices, %d of them distinct, of %d", next, seen, n)
	}
	return d, nil
}

// Row returns the row of a vertex on this rank; ok is false if another rank owns it.
func (d *Directory) Row(v uint32) (row uint32, ok bool) {
	at := int64(d.slot[v]) - d.start[d.comm.Rank()]
	return uint32(at), at >= 0 && int64(d.slot[v]) < d.start[d.comm.Rank()+1]
}

// Owner returns the rank that owns a vertex.
func (d *Directory) Owner(v uint32) int {
	rank, _ := slices.BinarySearch(d.start[1:], int64(d.slot[v])+1)
	return rank
}

// RowSet has the rows of other ranks that this rank fetches, and the own rows that it sends.
type RowSet struct {
	comm     comm.Comm
	ids      []uint32   // slots, ascending
	from     []int64    // ids[from[q]:from[q+1]] are rank q's [ranks+1]
	sendRows [][]uint32 // own rows, by rank
	out      []float32  // buffer for messages
	in       []float32
}

// Request makes a set of vertices of other ranks. Vertices may be repeated. Collective.
func (d *Directory) Request(vertices []uint32) (*RowSet, error) {
	s := &RowSet{comm: d.comm, ids: make([]uint32, len(vertices)), from: make([]int64, len(d.start))}
	for i, v := range vertices {
		s.ids[i] = d.slot[v]
	}
	slices.Sort(s.ids)
	s.ids = slices.Compact(s.ids)
	messages, at := make([][]uint32, d.comm.Size()), 0
	for q := range messages {
		first := at
		for at < len(s.ids) && int64(s.ids[at]) < d.start[q+1] {
			messages[q] = append(messages[q], s.ids[at]-uint32(d.start[q]))
			at++
		}
		s.from[q], s.from[q+1] = int64(first), int64(at)
	}
	own := d.start[d.comm.Rank()+1] - d.start[d.comm.Rank()]
	var err error
	s.sendRows, err = comm.Swap(d.comm, messages, func(int) uint64 { return uint64(own) })
	for _, rows := range s.sendRows {
		if len(rows) > 0 && int64(slices.Max(rows)) >= own {
			return nil, fault.New(fault.Runtime, "exchange", "", "request for row %d of %d", slices.Max(rows), own)
		}
	}
	return s, err
}

// Len returns the number of different vertices in the set.
func (s *RowSet) Len() int { return len(s.ids) }

// At returns the row of a vertex of the set in the result of Fetch.
func (d *Directory) At(s *RowSet, v uint32) int {
	at, _ := slices.BinarySearch(s.ids, d.slot[v])
	return at
}
