package bench

import (
	"slices"
	"unsafe"

	"siafu/bench/machine"
)

// rowCache is a cache of rows. It has sets of cacheWays rows, the most recently used one first.
type rowCache []uintptr

const cacheWays, lineBytes, blockBytes = 16, 64, 1024

// hit reports whether the row is in the cache, and puts it there.
func (c rowCache) hit(row uintptr) bool {
	at := row % uintptr(len(c)/cacheWays) * cacheWays
	set := c[at : at+cacheWays]
	k := slices.Index(set, row)
	hit := k >= 0
	if !hit {
		k = cacheWays - 1
	}
	copy(set[1:k+1], set[:k])
	set[0] = row
	return hit
}

// caches are the simulated caches of one or of all threads, by bytes of a row and level. They overestimate what
// real ones hold, so that the time for bytes that miss them is a lower bound: rows of different widths do not
// displace each other.
type caches map[[2]int]rowCache

// level returns the level from which a worker reads a row, or a line of shorter ones. The last cache is shared. The
// watch must be locked.
func (w *watchedWorker) level(row uintptr, bytes int) int {
	unit := max(bytes, lineBytes)
	for level, size := range w.sizes[:machine.Levels-1] {
		c, key := w.own, [2]int{unit, level}
		if level == machine.Levels-2 {
			c = w.shared
		}
		if c[key] == nil {
			c[key] = make(rowCache, cacheWays*max(size/unit/cacheWays, 1))
		}
		if c[key].hit(row/uintptr(unit) + 1) {
			return level
		}
	}
	return machine.Levels - 1
}

// reads returns the bytes of gathered rows of a width, or of operands for 0, by level.
func (d *demand) reads(width int) *[machine.Levels]float64 {
	if d.bytes[width] == nil {
		d.bytes[width] = &[machine.Levels]float64{}
	}
	return d.bytes[width]
}

// operand counts the bytes of an operand, which is read in blocks. The watch must be locked.
func (w *watchedWorker) operand(d *demand, at unsafe.Pointer, bytes int) {
	for from := 0; from < bytes; from += blockBytes {
		d.reads(0)[w.level(uintptr(at)+uintptr(from), blockBytes)] += float64(min(bytes-from, blockBytes))
	}
}
