package kernels

import "sort"

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

// block is how many sources a block has, 0 where there are none.
func (k *spmmTask) block() int {
	element := bytesOfFloat
	if k.x == nil {
		element = 2
	}
	step := blockBytes / (k.width * element)
	blocks, rows := k.sources/max(step, 1), int64(k.Rows())
	if step == 0 || blocks < leastBlocks || (k.End[rows-1]-k.Begin[0])/rows < int64(blocks*edgesOfRow) {
		return 0
	}
	return step
}

// gatherBlocks computes all rows, a block of so many sources after the other.
func (t *Team) gatherBlocks(k spmmTask, step int) {
	room, rows := &t.blocks, k.Rows()
	begin, end := scratch(&room.begin, rows), scratch(&room.end, rows)
	copy(begin, k.Begin)
	k.last, k.Begin, k.End = k.End, begin, end
	for first := 0; first < k.sources; first += step {
		k.bound = k.Base + uint32(min(first+step, k.sources))
		end[rows-1] = k.last[rows-1] // the weight of all rows
		t.gatherRows(k)
		copy(begin, end)
		k.add, k.SelfLoops = true, false
	}
}

// toCome is the columns of row r that no block has met, or all.
func (k *spmmTask) toCome(r int) []uint32 {
	if k.last == nil {
		return k.Cols[k.Begin[r]:k.End[r]]
	}
	return k.Cols[k.Begin[r]:k.last[r]]
}

// isHub tells whether row r is one, and finds where its edges in the block end if it may be.
func (k *spmmTask) isHub(r int) bool {
	cols := k.toCome(r)
	if k.last != nil && len(cols) > hubEdges {
		end := sort.Search(len(cols), func(i int) bool { return cols[i] >= k.bound })
		k.End[r] = k.Begin[r] + int64(end)
		cols = cols[:end]
	}
	return len(cols) > hubEdges
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
