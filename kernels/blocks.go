package kernels

import (
	"sort"

	"siafu/kernels/internal/avx"
)

// Gathers whose sources are taken block by block: a block stays in the third-level cache
// while all rows meet it, and is fetched from memory once for all of them.

// A block has blockBytes of x, a quarter of a common third-level cache, which several
// workers share. There are blocks where x is leastBlocks times as large, since an order of
// vertices serves smaller graphs better, and a row has edgesOfRow edges in each. These are
// properties of the graph and not of the machine, as each block has a sum of its own.
const (
	blockBytes  = 8 << 20
	leastBlocks = 8
	edgesOfRow  = 16
)

// There are none where an order of vertices serves: where a run of rows with blocksMet times as
// many edges as a block has sources meets each of its sources metAgain times. Caches hold those
// then, and blocks cost what they cost. That is a property of the graph too.
const (
	blocksMet = 4
	metAgain  = 2
)

// blockRoom is room for where a block's edges begin and end in each row, and for a bit a source.
type blockRoom struct {
	begin, end []int64
	met        []uint64
}

// BlockBytes is how much of its sums a gather by blocks should have at a time: as much as a
// block, beside which it stays in the cache.
const BlockBytes = blockBytes

// InBlocks reports whether so many rows that many edges lead to are gathered block by block from
// as many sources of this width, unless their order serves.
func InBlocks(rows, width int, edges int64) bool {
	return rows > 0 && blockOf(width*bytesOfFloat, rows, rows, edges) > 0
}

// block is how many sources a block has, 0 where there are none. It finds out with room for a
// bit a source.
func (k *spmmTask) block(room *[]uint64) int {
	element := bytesOfFloat
	if k.x == nil {
		element = 2
	}
	rows := k.Rows()
	step := blockOf(k.width*element, k.sources, rows, k.End[rows-1]-k.Begin[0])
	if step == 0 || k.reusesRows(blocksMet*step, scratch(room, (k.sources+63)/64)) {
		return 0
	}
	return step
}

// reusesRows reports whether a run of rows from the middle on, with N edges, meets its
// sources metAgain times on average. All edges count, chosen or not: the bits must be the same.
func (k *spmmTask) reusesRows(edges int, met []uint64) bool {
	clear(met)
	seen, sources := 0, 0
	for r := k.Rows() / 2; r < k.Rows() && seen < edges; r++ {
		cols := k.Cols[k.Begin[r]:k.End[r]]
		seen += len(cols)
		for _, c := range cols {
			word, bit := (c-k.Base)/64, uint64(1)<<((c-k.Base)%64)
			if met[word]&bit == 0 {
				sources++
			}
			met[word] |= bit
		}
	}
	return seen >= metAgain*sources
}

// blockOf is block for sources of N bytes each, wherever rows lead.
func blockOf(bytes, sources, rows int, edges int64) int {
	step := blockBytes / bytes
	blocks := sources / max(step, 1)
	if step == 0 || blocks < leastBlocks || edges/int64(rows) < int64(blocks*edgesOfRow) {
		return 0
	}
	return step
}

// gatherBlocks computes all rows, a block of N sources after the other. Chunks are long,
// as what is prefetched is of the chunk in hand.
func (t *Team) gatherBlocks(k spmmTask, step int) {
	room, rows := &t.blocks, k.Rows()
	begin, end := scratch(&room.begin, rows), scratch(&room.end, rows)
	copy(begin, k.Begin)
	blocks := int64((k.sources + step - 1) / step)
	grain := int(chunkWeight * blocks * int64(rows) / max(k.End[rows-1]-begin[0], 1))
	k.last, k.Begin, k.End = k.End, begin, end
	for first := 0; first < k.sources; first += step {
		k.bound = k.Base + uint32(min(first+step, k.sources))
		t.hubs.rows = t.hubs.rows[:0]
		do(t, &t.slots.spmm, k, rows, max(grain, 1))
		t.gatherHubs(k)
		copy(begin, end)
		k.add, k.SelfLoops = true, false
	}
}

// remainingEdges is the columns of row r that no block has met, or all.
func (k *spmmTask) remainingEdges(r int) []uint32 {
	if k.last == nil {
		return k.Cols[k.Begin[r]:k.End[r]]
	}
	return k.Cols[k.Begin[r]:k.last[r]]
}

// isHub reports whether row r is one, and finds where its edges in the block end if it may be.
func (k *spmmTask) isHub(r int) bool {
	cols := k.remainingEdges(r)
	if k.last != nil && len(cols) > hubEdges {
		end := sort.Search(len(cols), func(i int) bool { return cols[i] >= k.bound })
		k.End[r] = k.Begin[r] + int64(end)
		cols = cols[:end]
	}
	return len(cols) > hubEdges
}

// fetchAhead is how many rows before they are met those edges are prefetched that no block has
// met: a part of a row is short, and the next one far away.
const fetchAhead = 16

// blockEdges copies those edges of row r that are of the block, and sets their end.
func (k *spmmTask) blockEdges(dst []uint32, r int) []uint32 {
	cols, n := k.remainingEdges(r), 0
	if k.set != avx.None && len(cols) > 0 {
		next := k.Begin[min(r+fetchAhead, len(k.Begin)-1)]
		n = k.set.Below(dst, cols, k.bound, &k.Cols[min(next, int64(len(k.Cols)-1))])
	} else {
		n = copyBelow(dst, cols, k.bound)
	}
	k.End[r] = k.Begin[r] + int64(n)
	return dst[:n]
}

// copyBelow copies ascending columns below a bound.
func copyBelow(dst, cols []uint32, bound uint32) int {
	dst = dst[:len(cols)]
	for i, c := range cols {
		if c >= bound {
			return i
		}
		dst[i] = c
	}
	return len(cols)
}
