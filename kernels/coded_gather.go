package kernels

import "siafu/kernels/internal/avx"

// Gathers along coded columns. A worker decodes the columns of some rows, and gathers along them as along
// plain ones: additions have the same order, and sums the same bits.

// codedBatch is the number of edges that a worker decodes at once, at least: their columns stay in the
// second-level cache, and few of them are the last ones, which are not prefetched.
const codedBatch = 1 << 13

// codedBlocks has the position of each row in the current block of sources: the group with the first
// column that no block has processed, and the column before this group. They are undefined if no column
// has been processed.
type codedBlocks struct {
	at       []int64
	previous []uint32
}

// codedChunk implements chunk for coded columns.
func (k *spmmTask) codedChunk(lo, hi int) {
	kept := keptPool.Get().(*keptEdges)
	defer keptPool.Put(kept)
	var cursor codedCursor
	for from := lo; from < hi; {
		to, edges := from, 0
		for to < hi && edges < codedBatch && !k.isCodedHub(kept, &cursor, to) {
			if k.last == nil {
				edges += int(k.End[to] - k.Begin[to])
			}
			to++
		}
		switch {
		case to == from:
			k.hubs.leave(from)
			to++
		case k.last != nil:
			to = k.codedBlockRows(kept, &cursor, from, to)
		default:
			k.codedRows(kept, &cursor, from, to, edges)
		}
		from = to
	}
}

// codedRows computes rows [lo, hi), which have the given number of edges into rows that are not masked.
func (k *spmmTask) codedRows(to *keptEdges, cursor *codedCursor, lo, hi, edges int) {
	part, n := k.part(lo, hi), hi-lo
	part.Begin, part.End, part.Cols = scratch(&to.begin, n), scratch(&to.end, n), scratch(&to.cols, edges+codedGroup)
	if k.Weights != nil {
		part.Weights = scratch(&to.weights, edges)
	}
	k.decodeUnmasked(part.Cols, cursor, lo, hi)
	from, at := 0, 0 // of decoded columns, and of those that the column mask keeps
	for r := range n {
		length := int(k.End[lo+r] - k.Begin[lo+r])
		part.Begin[r] = int64(at)
		switch {
		case k.Weights != nil: // weighted edges are never masked by column
			copy(part.Weights[at:], k.Weights[k.Begin[lo+r]:k.End[lo+r]])
			at += length
		case k.columnMask != nil:
			at += k.columnMask.copy(k.set, part.Cols[at:][:length], part.Cols[from:][:length])
		default:
			at += length
		}
		part.End[r], from = int64(at), from+length
	}
	part.Cols, part.Coded = part.Cols[:at], nil
	part.rows(0, n)
}

// decodeUnmasked decodes the columns of rows [lo, hi), except of masked rows, one row after another.
func (k *spmmTask) decodeUnmasked(dst []uint32, cursor *codedCursor, lo, hi int) {
	c := k.Coded
	for r := lo; r < hi; r++ {
		first, edges := r, 0
		for ; r < hi && k.End[r]-k.Begin[r] == c.end[k.CodedFirst+r]-c.begin[k.CodedFirst+r]; r++ {
			edges += int(k.End[r] - k.Begin[r])
		}
		if edges > 0 {
			c.seek(cursor, k.CodedFirst+first)
			c.decode(k.set, dst, cursor, r-first)
			dst = dst[edges:]
		}
	}
}

// codedBlockRows computes the rows from lo on in the current block of sources, until they have a batch of
// edges, and at most up to hi. None is a hub. It returns the row after them.
func (k *spmmTask) codedBlockRows(to *keptEdges, cursor *codedCursor, lo, hi int) int {
	part := k.part(lo, hi)
	part.Begin, part.End = scratch(&to.begin, hi-lo), scratch(&to.end, hi-lo)
	part.Cols = scratch(&to.cols, codedBatch+hubEdges+codedGroup)
	if k.Weights != nil {
		part.Weights = scratch(&to.weights, codedBatch+hubEdges)
	}
	at, n := 0, 0
	for ; lo+n < hi && at < codedBatch; n++ {
		r := lo + n
		found := k.codedBlock(part.Cols[at:], cursor, r, min(r+fetchAhead, hi-1), true)
		k.End[r] = k.Begin[r] + int64(found)
		part.Begin[n] = int64(at)
		switch {
		case k.Weights != nil:
			copy(part.Weights[at:], k.Weights[k.Begin[r]:k.End[r]])
			at += found
		case k.columnMask != nil:
			at += k.columnMask.copy(k.set, part.Cols[at:][:found], part.Cols[at:][:found])
		default:
			at += found
		}
		part.End[n] = int64(at)
	}
	part.Begin, part.Cols, part.Coded = part.Begin[:n], part.Cols[:at], nil
	part.rows(0, n)
	return lo + n
}

// codedBlock decodes the columns of row r in the current block of sources and returns their number. If
// move is set, it moves the row's position behind them. The code of row next is prefetched.
func (k *spmmTask) codedBlock(dst []uint32, cursor *codedCursor, r, next int, move bool) (n int) {
	c, row := k.Coded, k.CodedFirst+r
	left, done := int(k.last[r]-k.Begin[r]), int(k.Begin[r]-c.begin[row])
	if left == 0 {
		return 0
	}
	at, previous, lane := k.coded.at[r], k.coded.previous[r], 0
	if done > 0 {
		lane = (done - 1) % codedGroup
	} else {
		c.seek(cursor, row)
		col, used := decodeHead(c.data[cursor.at:], c.near(row))
		if col >= k.bound {
			return 0
		}
		dst[0], n = col, 1
		at, previous, left = cursor.at+int64(used), col, left-1
	}
	if left > 0 {
		count, used := k.decodeBelow(dst[n:], c.data[at:], &previous, lane, left+lane, k.coded.at[next])
		n, at = n+count, at+int64(used)
	}
	if move {
		k.coded.at[r], k.coded.previous[r] = at, previous
	}
	return n
}

// decodeBelow decodes the columns of a block among n gaps, which start at code after the column previous,
// except the first lane columns. It returns their number. previous and used are moved to the group with
// the first column of another block. The code at next is prefetched.
func (k *spmmTask) decodeBelow(dst []uint32, code []byte, previous *uint32, lane, n int, next int64) (count, used int) {
	if k.set != avx.None {
		return k.set.DecodeBelow(dst, code, previous, lane, n, k.bound, &k.Coded.data[next])
	}
	var group [codedGroup]uint32
	for {
		length := decodeGroup(&group, code[used:], *previous)
		have := min(n, codedGroup)
		found := copyBelow(dst, group[lane:have], k.bound)
		count += found
		if lane+found < have || n <= codedGroup {
			return count, used
		}
		dst, used, n = dst[found:], used+length, n-codedGroup
		*previous, lane = group[codedGroup-1], 0
	}
}

// isCodedHub implements isHub for coded columns.
func (k *spmmTask) isCodedHub(to *keptEdges, cursor *codedCursor, r int) bool {
	if k.last == nil {
		return k.End[r]-k.Begin[r] > hubEdges
	}
	left := int(k.last[r] - k.Begin[r])
	if left <= hubEdges {
		return false
	}
	found := k.codedBlock(scratch(&to.hub, left+codedGroup), cursor, r, r, false)
	k.End[r] = k.Begin[r] + int64(found)
	return found > hubEdges
}

// decodeHub makes row r, a hub, the only plain row of k, in memory of t.
func (k *spmmTask) decodeHub(t *Team, r int) (from, end int64) {
	begin, n := k.Begin[r], int(k.End[r]-k.Begin[r])
	var cursor codedCursor
	if k.last != nil {
		k.Cols = scratch(&t.hubs.cols, int(k.last[r]-begin)+codedGroup)
		k.codedBlock(k.Cols, &cursor, r, r, true)
	} else {
		k.Cols = scratch(&t.hubs.cols, n+codedGroup)
		k.Coded.seek(&cursor, k.CodedFirst+r)
		k.Coded.decode(k.set, k.Cols, &cursor, 1)
	}
	k.Cols, k.Coded = k.Cols[:n], nil
	if k.Weights != nil {
		k.Weights = k.Weights[begin:]
	}
	return 0, int64(n)
}

// columnsOf returns the columns of row r, decoded in buffer if they are coded. Rows must ascend.
func (k *spmmTask) columnsOf(r int, buffer *[]uint32, cursor *codedCursor) []uint32 {
	if k.Coded == nil {
		return k.Cols[k.Begin[r]:k.End[r]]
	}
	n := int(k.End[r] - k.Begin[r])
	if n == 0 { // masked rows have columns
		return nil
	}
	cols := scratch(buffer, n+codedGroup)
	k.Coded.seek(cursor, k.CodedFirst+r)
	k.Coded.decode(k.set, cols, cursor, 1)
	return cols[:n]
}
