package importers

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"strings"

	"siafu/graph"
	"siafu/internal/mapped"
)

// edgeList is an edge list with ids of 64 bits.
type edgeList struct {
	resources *resources // memory of narrow or wide
	input
	narrow     *chunks[uint32] // all ids fit into uint32
	wide       *chunks[int64]  // otherwise
	edges      int64
	least, top int64 // of the ids
}

// readEdgeList reads lines of source and destination, separated by blanks or commas. Other fields,
// such as weights and times, are refused unless ignoreOthers is set. Lines that start with # or %
// are comments, and so is the first line of a .csv file if it has words.
func readEdgeList(k *resources, at input, ignoreOthers bool) *edgeList {
	l := &edgeList{
		resources: k, input: at, least: math.MaxInt64, top: math.MinInt64,
		narrow: &chunks[uint32]{resources: k, input: at},
	}
	heading := strings.HasSuffix(strings.TrimSuffix(at.path, ".gz"), ".csv")
	parseFile(at, func(b block) ([]int64, error) { return parseEdges(at, b, heading, ignoreOthers) }, l.take)
	return l
}

// matrixMarket begins the first line of a file in the exchange format of MatrixMarket.
const matrixMarket = "%%MatrixMarket"

func parseEdges(at input, b block, heading, ignoreOthers bool) ([]int64, error) {
	pairs := make([]int64, 0, 2*(bytes.Count(b.text, []byte{'\n'})+1))
	for line, text := b.line, b.text; len(text) > 0; line++ {
		var row []byte
		row, text = nextLine(text)
		src, rest := nextWord(row)
		if bytes.HasPrefix(row, []byte(matrixMarket)) {
			return nil, at.bad("line %d: the list is a file of MatrixMarket, whose first numbers are sizes", line).
				Then("delete its lines up to the sizes, drop its values with --drop-weights, and set --symmetrise if it is symmetric")
		}
		if len(src) == 0 || src[0] == '#' || src[0] == '%' {
			continue
		}
		dst, rest := nextWord(rest)
		u, ok1 := parseInt(src)
		v, ok2 := parseInt(dst)
		if !ok1 && !ok2 && line == 1 && heading {
			continue
		}
		if !ok1 || !ok2 {
			return nil, at.bad("line %d: %.60q does not start with two ids", line, row).
				Then("write an edge as SOURCE DESTINATION, a comment behind #")
		}
		if third, _ := nextWord(rest); len(third) > 0 && third[0] != '#' && !ignoreOthers {
			return nil, at.bad("line %d: %.60q has a third column, which edges of this format cannot have", line, row).
				Then("drop it with --drop-weights, or import the edges as csv with --weight or --edge-features")
		}
		pairs = append(pairs, u, v)
	}
	return pairs, nil
}

// nextWord splits the first word from a line; blanks and commas separate words.
func nextWord(line []byte) (word, rest []byte) {
	start := 0
	for start < len(line) && isSeparator(line[start]) {
		start++
	}
	end := start
	for end < len(line) && !isSeparator(line[end]) {
		end++
	}
	return line[start:end], line[end:]
}

func isSeparator(c byte) bool { return c == ' ' || c == '\t' || c == ',' || c == ';' || c == '\r' }

// take appends the pairs of one block. They are narrow while all ids fit into uint32.
func (l *edgeList) take(pairs []int64) {
	for _, id := range pairs {
		l.least, l.top = min(l.least, id), max(l.top, id)
	}
	l.edges += int64(len(pairs) / 2)
	if l.wide == nil && len(pairs) > 0 && (l.least < 0 || l.top > math.MaxUint32) {
		l.widen()
	}
	if l.wide != nil {
		l.wide.add(pairs)
		return
	}
	small := make([]uint32, len(pairs))
	for i, id := range pairs {
		small[i] = uint32(id)
	}
	l.narrow.add(small)
}

// widen turns the pairs read so far into wide ones.
func (l *edgeList) widen() {
	l.wide = &chunks[int64]{resources: l.resources, input: l.input}
	convert(l.wide, l.narrow, func(id uint32) int64 { return int64(id) })
	l.narrow = nil
}

// convert appends the elements of a list to another, each converted by to.
func convert[S, D mapped.Elem](dst *chunks[D], src *chunks[S], to func(S) D) {
	var part []D
	for i := range src.list {
		part = part[:0]
		for _, x := range src.filled(i) {
			part = append(part, to(x))
		}
		dst.add(part)
	}
}

// each calls f for all ids, in the order of the file.
func (l *edgeList) each(f func(id int64)) {
	if l.wide != nil {
		eachID(l.wide, f)
		return
	}
	eachID(l.narrow, f)
}

func eachID[T uint32 | int64](c *chunks[T], f func(id int64)) {
	for i := range c.list {
		for _, id := range c.filled(i) {
			f(int64(id))
		}
	}
}

// ranking maps ids to their rank in ascending order. Exactly one of the forms is used: bits of
// a range that is dense enough, or the sorted ids.
type ranking struct {
	least  int64
	bits   []uint64
	before []uint32 // ids below each word of bits
	sorted []int64
	n      int64
}

func (l *edgeList) rank() *ranking {
	r := &ranking{least: l.least}
	if l.edges == 0 {
		return r
	}
	// Sorting takes 8 bytes for each end of an edge; bits take one for 8 ids.
	if span := uint64(l.top) - uint64(l.least); span/8 < 16*uint64(l.edges)+1<<16 {
		r.useBits(l, int(span/64)+1)
	} else {
		r.sorted = make([]int64, 0, 2*l.edges)
		l.each(func(id int64) { r.sorted = append(r.sorted, id) })
		slices.Sort(r.sorted)
		r.sorted = slices.Compact(r.sorted)
		r.n = int64(len(r.sorted))
	}
	checkVertices(l.input, r.n)
	return r
}

func (r *ranking) useBits(l *edgeList, words int) {
	r.bits = reserve[uint64](l.resources, l.input, words)
	r.before = reserve[uint32](l.resources, l.input, words)
	l.each(func(id int64) {
		at := uint64(id) - uint64(r.least)
		r.bits[at/64] |= 1 << (at % 64)
	})
	for w, b := range r.bits {
		r.before[w] = uint32(r.n)
		r.n += int64(bits.OnesCount64(b))
	}
}

func (r *ranking) of(id int64) uint32 {
	if r.bits == nil {
		at, _ := slices.BinarySearch(r.sorted, id)
		return uint32(at)
	}
	at := uint64(id) - uint64(r.least)
	below := r.bits[at/64] & (1<<(at%64) - 1)
	return r.before[at/64] + uint32(bits.OnesCount64(below))
}

// ids returns the ids in ascending order.
func (r *ranking) ids() []int64 {
	if r.bits == nil {
		return r.sorted
	}
	ids := make([]int64, 0, r.n)
	for w, b := range r.bits {
		for ; b != 0; b &= b - 1 {
			ids = append(ids, r.least+int64(w*64+bits.TrailingZeros64(b)))
		}
	}
	return ids
}

// renumber returns the list with every id mapped by to, as pairs in the arena of k.
func (l *edgeList) renumber(k *resources, to func(id int64) uint32) graph.EdgeSource {
	if l.wide == nil {
		for i := range l.narrow.list {
			ids := l.narrow.filled(i)
			for j, id := range ids {
				ids[j] = to(int64(id))
			}
		}
		return edgeBuffer{l.narrow}
	}
	out := newEdgeBuffer(k, l.input)
	convert(out.chunks, l.wide, to)
	return out
}
