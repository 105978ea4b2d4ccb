package kernels

import (
	"sort"

	"siafu/kernels/internal/avx"
)

// Gathers with sources divided into blocks: a block stays in the third-level cache while all
// rows read it, and is fetched from memory once.

// A block has blockBytes of x, a quarter of a common third-level cache, which several workers
// share. Blocks are used if x is at least leastBlocks times as large and a row has edgesOfRow
// edges in each; for smaller graphs a good vertex order is better. The rule must not depend on
// the machine, because each block has its own sum.
const (
	blockBytes  = 8 << 20
	leastBlocks = 8
	edgesOfRow  = 16
)

// Blocks are not used if the vertex order already reuses sources: if a run of rows, with
// runBlocks times as many edges as a block has sources, reads each of its sources reuses
// times. Caches then hold these sources, and blocks would only add cost. This, too, depends
// only on the graph.
const (
	runBlocks = 4
	reuses    = 2
)

// blockBuffers has the start and end of a block's edges in each row, and a bit per source.
type blockBuffers struct {
	begin, end []int64
	read       []uint64
	cols       []uint32 // decoded columns of a row
	coded      codedBlocks
}

// BlockBytes is the recommended size of the sums of a gather by blocks: as large as a block,
// so that both stay in the cache.
const BlockBytes = blockBytes

// InBlocks reports whether a gather with this many rows, edges and sources of this width uses
// blocks, unless the vertex order reuses sources.
func InBlocks(rows, width int, edges int64) bool {
	return rows > 0 && blockOf(width*bytesOfFloat, rows, rows, edges) > 0
}

// block returns the number of sources per block, 0 without blocks.
func (k *spmmTask) block(buffers *blockBuffers) int {
	element := bytesOfFloat
	if k.x == nil {
		element = 2
	}
	rows := k.Rows()
	step := blockOf(max(k.whole, k.width)*element, k.sources, rows, k.End[rows-1]-k.Begin[0])
	if step == 0 || k.reusesRows(runBlocks*step, buffers) {
		return 0
	}
	return step
}

// reusesRows reports whether a run of rows from the middle on, with the given number of edges,
// reads its sources reuses times on average. It counts masked edges too, because the bits
// must be the same.
func (k *spmmTask) reusesRows(edges int, buffers *blockBuffers) bool {
	read := scratch(&buffers.read, (k.sources+63)/64)
	clear(read)
	var cursor codedCursor
	seen, sources := 0, 0
	for r := k.Rows() / 2; r < k.Rows() && seen < edges; r++ {
		cols := k.columnsOf(r, &buffers.cols, &cursor)
		seen += len(cols)
		for _, c := range cols {
			word, bit := (c-k.Base)/64, uint64(1)<<((c-k.Base)%64)
			if read[word]&bit == 0 {
				sources++
			}
			read[word] |= bit
		}
	}
	return seen >= reuses*sources
}

// blockOf returns the block for sources of the given bytes, ignoring the vertex order.
func blockOf(bytes, sources, rows int, edges int64) int {
	step := blockBytes / bytes
	blocks := sources / max(step, 1)
	if step == 0 || blocks < leastBlocks || edges/int64(rows) < int64(blocks*edgesOfRow) {
		return 0
	}
	return step
}

// gatherBlocks computes all rows, block by block of step sources. Chunks are long, because
// prefetching stays within a chunk.
func (t *Team) gatherBlocks(k spmmTask, step int) {
	buffer, rows := &t.blocks, k.Rows()
	begin, end := scratch(&buffer.begin, rows), scratch(&buffer.end, rows)
	copy(begin, k.Begin)
	if k.Coded != nil {
		k.coded = codedBlocks{scratch(&buffer.coded.at, rows), scratch(&buffer.coded.previous, rows)}
		clear(k.coded.at) // prefetched before they are set
	}
	blocks := int64((k.sources + step - 1) / step)
	grain := int(chunkWeight * blocks * int64(rows) / max(k.End[rows-1]-begin[0], 1))
	k.last, k.Begin, k.End = k.End, begin, end
	for first := 0; first < k.sources; first += step {
		k.bound = k.Base + uint32(min(first+step, k.sources))
		t.hubs.rows = t.hubs.rows[:0]
		do(t, k, rows, max(grain, 1))
		t.gatherHubs(k)
		copy(begin, end)
		k.add, k.SelfLoops = true, false
	}
}

// remainingEdges returns the columns of row r that no block has processed, or all.
func (k *spmmTask) remainingEdges(r int) []uint32 {
	if k.last == nil {
		return k.Cols[k.Begin[r]:k.End[r]]
	}
	return k.Cols[k.Begin[r]:k.last[r]]
}

// isHub reports whether row r is a hub. If it may be, it finds the end of its edges in the
// block.
func (k *spmmTask) isHub(r int) bool {
	cols := k.remainingEdges(r)
	if k.last != nil && len(cols) > hubEdges {
		end := sort.Search(len(cols), func(i int) bool { return cols[i] >= k.bound })
		k.End[r] = k.Begin[r] + int64(end)
		cols = cols[:end]
	}
	return len(cols) > hubEdges
}

// fetchAhead is the prefetch distance, in rows, of edges that no block has processed: the part
// of a row is short, and the next one is far away in memory.
const fetchAhead = 16

// blockEdges copies the edges of row r in the block, and sets their end.
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
