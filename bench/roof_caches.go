package bench

import (
	"slices"

	"siafu/bench/machine"
)

// rowCache is a cache of rows, or of lines of rows that are shorter than a line. It has sets of cacheWays rows, the
// most recently used one first.
type rowCache []uint64

const cacheWays, lineBytes = 16, 64

func newRowCache(bytes, unit int) rowCache {
	return make(rowCache, cacheWays*max(bytes/unit/cacheWays, 1))
}

// hit reports whether the row is in the cache, and puts it there.
func (c rowCache) hit(row uint64) bool {
	at := row % uint64(len(c)/cacheWays) * cacheWays
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

// caches simulates the caches of one or of all threads. It overestimates what they have, so that the time for
// bytes that miss them is a lower bound: rows of different widths, and rows and other operands, do not displace
// each other.
type caches struct {
	rows     map[int]rowCache // by bytes of a unit and level
	operands map[uintptr]int64
	read     int64 // bytes of operands so far
}

func newCaches() *caches { return &caches{rows: map[int]rowCache{}, operands: map[uintptr]int64{}} }

// since returns the bytes of operands from the last use of the operand at an address to the end of this use, and
// whether there was one.
func (c *caches) since(address uintptr, bytes int) (distance int64, used bool) {
	last, used := c.operands[address]
	c.read += int64(bytes)
	c.operands[address] = c.read
	return c.read - last, used
}

// operandLevel returns the level from which a thread reads an operand.
func operandLevel(own, all *caches, sizes [machine.Levels]int, address uintptr, bytes int) int {
	near, used := own.since(address, bytes)
	far, usedByAny := all.since(address, bytes)
	for level, size := range sizes[:machine.Levels-1] {
		distance, known := near, used
		if level == machine.Levels-2 {
			distance, known = far, usedByAny
		}
		if known && distance <= int64(size) {
			return level
		}
	}
	return machine.Levels - 1
}

// rowLevel returns the level from which a thread reads a row of an operand.
func rowLevel(own, all *caches, sizes [machine.Levels]int, address uintptr, bytes int) int {
	unit := max(bytes, lineBytes)
	for level, size := range sizes[:machine.Levels-1] {
		c := own
		if level == machine.Levels-2 {
			c = all
		}
		key := unit*machine.Levels + level
		if c.rows[key] == nil {
			c.rows[key] = newRowCache(size, unit)
		}
		if c.rows[key].hit(uint64(address)/uint64(unit) + 1) {
			return level
		}
	}
	return machine.Levels - 1
}
