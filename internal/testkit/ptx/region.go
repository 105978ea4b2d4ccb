package ptx

import "fmt"

// region is an allocation or a variable, with the state of each of its bytes.
//
// Invariants: cells has one cell for every 1<<grain bytes of data; len(data) is size rounded
// up to 8, times the lanes of a warp in local memory.
type region struct {
	name  string
	base  uint64
	size  uint64 // 0 if freed
	lane  uint64 // bytes of data between the copies of two lanes; 0 if shared
	data  []byte
	cells []cell
	grain uint8 // 2 until an access of less than 4 bytes, or not at a multiple of 4
	fixed bool  // must not be written by kernels
	// floor is the stamp of the last write that is no longer valid: shared and local memory is
	// undefined at the start of a block.
	floor stamp
}

// cell is the history of a few bytes: the last write and reads of them.
type cell struct {
	write, read stamp
}

// stamp is the thread and the time of an access. Later segments have larger stamps. From the
// highest bit down:
//
//	34 bits  segment: a block's way from one barrier to the next; blocks run one
//	         after another, so that launches and blocks are ranges of segments
//	16 bits  how many synchronisations of its warp the thread had behind it
//	10 bits  thread of the block
//	 4 bits  flags
type stamp uint64

const (
	// atomic: all of the accesses were atomic.
	atomic stamp = 1 << iota
	// many: other threads accessed the bytes in the same segment.
	many
	// manyWarps: some of them of other warps.
	manyWarps
	// foreign: another block accessed them in the same launch.
	foreign

	flags       = 15
	threadShift = 4
	syncShift   = 14
	segShift    = 30
	maxSyncs    = 1<<16 - 1

	// host is the stamp of a write by a copy: older than all launches.
	host stamp = 1 << segShift
)

func (s stamp) thread() int { return int(s >> threadShift & 1023) }
func (s stamp) syncs() int  { return int(s >> syncShift & maxSyncs) }

// newRegion makes a region of size bytes.
func newRegion(name string, base uint64, size, copies int) *region {
	bytes := (size + 7) &^ 7
	r := &region{name: name, base: base, size: uint64(size), grain: 2}
	if copies > 1 {
		r.lane = uint64(bytes)
	}
	r.data = make([]byte, bytes*copies)
	r.cells = make([]cell, len(r.data)>>2)
	return r
}

// refine makes cells small enough for an access of n bytes at offset o.
func (r *region) refine(o uint64, n int) {
	for r.grain > 0 && (o|uint64(n))&(1<<r.grain-1) != 0 {
		finer := make([]cell, 2*len(r.cells))
		for i, c := range r.cells {
			finer[2*i], finer[2*i+1] = c, c
		}
		r.cells = finer
		r.grain--
	}
}

// at returns the cells of n bytes at offset o.
func (r *region) at(o uint64, n int) []cell {
	if (o|uint64(n))&(1<<r.grain-1) != 0 {
		r.refine(o, n)
	}
	return r.cells[o>>r.grain : (o+uint64(n))>>r.grain]
}

// written records that the host, or a copy, has set n bytes at offset o.
func (r *region) written(o uint64, n int) {
	cells := r.at(o, n)
	for i := range cells {
		cells[i] = cell{write: host}
	}
}

// unwritten returns the offset of the first unwritten byte of n bytes at o, or -1.
func (r *region) unwritten(o uint64, n int) int {
	for i, c := range r.at(o, n) {
		if c.write <= r.floor {
			return int(o) + i<<r.grain
		}
	}
	return -1
}

// beside returns where an address is relative to the last region that starts before it, or at it.
func (r *region) beside(addr uint64) string {
	switch {
	case r == nil:
		return "where nothing was ever allocated"
	case r.data == nil:
		return "in or after " + r.name + ", which has been freed"
	}
	return fmt.Sprintf("%d bytes after the beginning of %v", addr-r.base, r)
}

// String returns the name of the region in findings.
func (r *region) String() string {
	return fmt.Sprintf("%s of %d bytes at %#x", r.name, r.size, r.base)
}
