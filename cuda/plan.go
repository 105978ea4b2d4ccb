package cuda

import (
	"cmp"
	"slices"

	"siafu/cuda/device"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// A row with more edges than two pieces is a hub. It is cut into pieces of pieceEdges edges,
// or more if there would be more than maxPieces pieces. Pieces are long enough that adding
// their sums is cheap, and short enough that no piece delays a launch.
const (
	pieceEdges = 512
	maxPieces  = 1 << 16
)

// orderRows is the number of consecutive rows sorted by degree together: nearby rows gather
// from the same rows, which are then in the second-level cache.
const orderRows = 1024

// matrix names a sparse matrix: row r has the edges from begin[r] to end[r].
type matrix struct {
	begin, end device.Ptr // of int64
	rows       int
}

// plan divides the rows of a matrix among threads. It is made at the first product with the
// matrix, which waits for a copy of its bounds, and stored until these are set again or freed.
//
//	order        the rows without hubs, sorted by degree within stretches
//	begin, end   the edges of each piece; line has its row
//	hubs         the divided rows; the pieces of hub h are firsts[h] to firsts[h+1]
type plan struct {
	memory           device.Ptr // memory of the fields below; 0: none
	order            device.Ptr // 0: rows in natural order
	begin, end, line device.Ptr
	hubs, firsts     device.Ptr

	rows, pieces, cut int // in order, of all hubs, hubs
}

// hostPlan is a plan on the host.
type hostPlan struct {
	begin, end   []int64
	order, line  []uint32
	hubs, firsts []uint32
	ordered      bool  // order is natural and complete
	piece        int64 // edges of a piece
}

// planOf returns the plan of m, whose edges are among cols, and makes it if there is none.
func (o *Ops) planOf(m matrix, cols kernels.Vector[uint32]) *plan {
	o.mu.Lock()
	p := o.plans[m]
	o.mu.Unlock()
	if p != nil {
		return p
	}
	if o.sketch != nil {
		return o.sketchPlan(m, cols)
	}
	begin, end := make([]int64, m.rows), make([]int64, m.rows)
	o.Download(mapped.Bytes(begin), pointer(m.begin))
	o.Download(mapped.Bytes(end), pointer(m.end))
	p = o.uploadPlan(newHostPlan(begin, end))
	o.mu.Lock()
	defer o.mu.Unlock()
	if other := o.plans[m]; other != nil {
		o.releasePlan(p)
		return other
	}
	o.plans[m] = p
	return p
}

// newHostPlan makes a plan of rows.
func newHostPlan(begin, end []int64) *hostPlan {
	s := &hostPlan{ordered: true, firsts: []uint32{0}}
	degree := func(r uint32) int64 { return end[r] - begin[r] }
	edges := int64(0)
	for r := range begin {
		edges += degree(uint32(r))
	}
	s.piece = max(pieceEdges, edges/maxPieces)
	for from := 0; from < len(begin); from += orderRows {
		start := len(s.order)
		for r := uint32(from); r < uint32(min(from+orderRows, len(begin))); r++ {
			if degree(r) > 2*s.piece {
				s.splitHub(r, begin[r], end[r])
			} else {
				s.order = append(s.order, r)
			}
		}
		slices.SortStableFunc(s.order[start:], func(a, b uint32) int { return cmp.Compare(degree(b), degree(a)) })
	}
	for i, r := range s.order {
		s.ordered = s.ordered && int(r) == i
	}
	s.ordered = s.ordered && len(s.hubs) == 0
	return s
}

// splitHub makes pieces of a hub.
func (s *hostPlan) splitHub(row uint32, begin, end int64) {
	for from := begin; from < end; from += s.piece {
		s.begin, s.end = append(s.begin, from), append(s.end, min(from+s.piece, end))
		s.line = append(s.line, row)
	}
	s.hubs, s.firsts = append(s.hubs, row), append(s.firsts, uint32(len(s.begin)))
}

// uploadPlan copies s to the device.
func (o *Ops) uploadPlan(s *hostPlan) *plan {
	p := &plan{rows: len(s.order), pieces: len(s.begin), cut: len(s.hubs)}
	if s.ordered {
		return p
	}
	var image []byte
	part := func(b []byte) device.Ptr {
		image = append(image, b...)
		return device.Ptr(len(image) - len(b))
	}
	p.begin, p.end = part(mapped.Bytes(s.begin)), part(mapped.Bytes(s.end))
	p.order, p.line = part(mapped.Bytes(s.order)), part(mapped.Bytes(s.line))
	p.hubs, p.firsts = part(mapped.Bytes(s.hubs)), part(mapped.Bytes(s.firsts))
	memory, err := o.device.Alloc(len(image))
	o.check(err)
	p.memory = memory
	for _, at := range []*device.Ptr{&p.begin, &p.end, &p.order, &p.line, &p.hubs, &p.firsts} {
		*at += memory
	}
	o.check(o.stream.CopyIn(memory, image))
	return p
}

// sketchPlan makes a plan with the maximum memory, workspace included, of any plan for these
// rows with edges among cols. No edge is in two matrices with the same cols, so that the first
// one is counted with the pieces of all. A hub has at least two whole pieces and a partial
// one.
func (o *Ops) sketchPlan(m matrix, cols kernels.Vector[uint32]) *plan {
	pieces := cols.Len() / pieceEdges
	p := &plan{rows: m.rows, cut: min(pieces, mostPieces) / 2}
	p.pieces = min(pieces, mostPieces) + p.cut
	bytes := 4*m.rows + 4
	if o.sketch.first(vectorPtr(cols)) {
		hubs := pieces / 2
		bytes += (pieces+hubs)*(8+8+4) + hubs*(4+4)
	}
	memory, err := o.device.Alloc(bytes)
	o.check(err)
	p.memory = memory
	o.mu.Lock()
	defer o.mu.Unlock()
	o.plans[m] = p
	return p
}

// mostPieces bounds the whole pieces of a matrix: if there would be more than maxPieces,
// pieces are longer by whole edges.
const mostPieces = maxPieces + maxPieces/pieceEdges

// forgetAt drops the plans of matrices whose bounds are in the given memory.
func (r *rank) forgetAt(at device.Ptr, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := at + device.Ptr(bytes)
	for m := range r.plans {
		size := device.Ptr(8 * m.rows)
		if m.begin < end && at < m.begin+size || m.end < end && at < m.end+size {
			r.forget(m)
		}
	}
}

// forget drops a plan. The lock must be held.
func (r *rank) forget(m matrix) {
	r.releasePlan(r.plans[m])
	delete(r.plans, m)
}

// releasePlan frees a plan's memory.
func (r *rank) releasePlan(p *plan) {
	if p.memory != 0 {
		_ = r.device.Free(p.memory) // a device that fails here fails the next call too
	}
}
