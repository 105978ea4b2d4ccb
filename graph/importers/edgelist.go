package importers

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
)

// edgeList is an edge list whose ids are any numbers of 64 bits.
type edgeList struct {
	keep       *keeper // of narrow or wide
	op, path   string
	narrow     *chunks[uint32] // all ids fit into uint32
	wide       *chunks[int64]  // otherwise
	edges      int64
	least, top int64 // of the ids
}

// readEdgeList reads lines of source, destination and other fields, separated by blanks or
// commas. Lines that start with # or % are comments, and so is the first line of a .csv file
// if it has words.
func readEdgeList(k *keeper, op, path string) (*edgeList, error) {
	l := &edgeList{
		keep: k, op: op, path: path, least: math.MaxInt64, top: math.MinInt64,
		narrow: &chunks[uint32]{keep: k, op: op, path: path},
	}
	heading := strings.HasSuffix(strings.TrimSuffix(path, ".gz"), ".csv")
	parse := func(b block) ([]int64, error) { return parseEdges(op, path, b, heading) }
	if err := parseFile(op, path, parse, l.take); err != nil {
		return nil, err
	}
	return l, nil
}

// parseEdges reads one block of an edge list into source, destination pairs.
func parseEdges(op, path string, b block, heading bool) ([]int64, error) {
	pairs := make([]int64, 0, 2*(bytes.Count(b.text, []byte{'\n'})+1))
	for line, text := b.line, b.text; len(text) > 0; line++ {
		var row []byte
		row, text = nextLine(text)
		src, rest := nextWord(row)
		if len(src) == 0 || src[0] == '#' || src[0] == '%' {
			continue
		}
		dst, _ := nextWord(rest)
		u, ok1 := parseInt(src)
		v, ok2 := parseInt(dst)
		if !ok1 && !ok2 && line == 1 && heading {
			continue
		}
		if !ok1 || !ok2 {
			return nil, fault.New(fault.Data, op, path, "line %d: %.60q does not start with two ids", line, row).
				Then("write an edge as SOURCE DESTINATION, a comment behind #")
		}
		pairs = append(pairs, u, v)
	}
	return pairs, nil
}

// nextWord splits the first word from a line; blanks and commas separate words.
func nextWord(line []byte) (word, rest []byte) {
	start := 0
	for start < len(line) && parts(line[start]) {
		start++
	}
	end := start
	for end < len(line) && !parts(line[end]) {
		end++
	}
	return line[start:end], line[end:]
}

func parts(c byte) bool { return c == ' ' || c == '\t' || c == ',' || c == ';' || c == '\r' }

// take appends the pairs of one block, in narrow form as long as they fit.
func (l *edgeList) take(pairs []int64) error {
	for _, id := range pairs {
		l.least, l.top = min(l.least, id), max(l.top, id)
	}
	l.edges += int64(len(pairs) / 2)
	if l.wide == nil && len(pairs) > 0 && (l.least < 0 || l.top > math.MaxUint32) {
		if err := l.widen(); err != nil {
			return err
		}
	}
	if l.wide != nil {
		return l.wide.add(pairs)
	}
	small := make([]uint32, len(pairs))
	for i, id := range pairs {
		small[i] = uint32(id)
	}
	return l.narrow.add(small)
}

// widen turns the pairs read so far into wide ones.
func (l *edgeList) widen() error {
	l.wide = &chunks[int64]{keep: l.keep, op: l.op, path: l.path}
	var big []int64
	for i := range l.narrow.list {
		big = big[:0]
		for _, id := range l.narrow.filled(i) {
			big = append(big, int64(id))
		}
		if err := l.wide.add(big); err != nil {
			return err
		}
	}
	l.narrow = nil
	return nil
}

// each calls f for all ids, in the order of the file, concurrently.
func (l *edgeList) each(f func(id int64)) {
	if l.wide != nil {
		for i := range l.wide.list {
			for _, id := range l.wide.filled(i) {
				f(id)
			}
		}
		return
	}
	for i := range l.narrow.list {
		for _, id := range l.narrow.filled(i) {
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

// rank numbers the ids of the list.
func (l *edgeList) rank() (*ranking, error) {
	r := &ranking{least: l.least}
	if l.edges == 0 {
		return r, nil
	}
	// Sorting takes 8 bytes for each end of an edge; bits take one for 8 ids.
	if span := uint64(l.top) - uint64(l.least); span/8 < 16*uint64(l.edges)+1<<16 {
		if err := r.useBits(l, int(span/64)+1); err != nil {
			return nil, err
		}
	} else {
		r.sorted = make([]int64, 0, 2*l.edges)
		l.each(func(id int64) { r.sorted = append(r.sorted, id) })
		slices.Sort(r.sorted)
		r.sorted = slices.Compact(r.sorted)
		r.n = int64(len(r.sorted))
	}
	return r, checkVertices(l.op, l.path, r.n)
}

func (r *ranking) useBits(l *edgeList, words int) (err error) {
	if r.bits, err = reserve[uint64](l.keep, l.op, l.path, words); err != nil {
		return err
	}
	if r.before, err = reserve[uint32](l.keep, l.op, l.path, words); err != nil {
		return err
	}
	l.each(func(id int64) {
		at := uint64(id) - uint64(r.least)
		r.bits[at/64] |= 1 << (at % 64)
	})
	for w, b := range r.bits {
		r.before[w] = uint32(r.n)
		r.n += int64(bits.OnesCount64(b))
	}
	return nil
}

// of returns the rank of an id in the list.
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
func (l *edgeList) renumber(k *keeper, to func(id int64) uint32) (graph.EdgeSource, error) {
	if l.wide == nil {
		for i := range l.narrow.list {
			ids := l.narrow.filled(i)
			for j, id := range ids {
				ids[j] = to(int64(id))
			}
		}
		return edgeBuffer{l.narrow}, nil
	}
	out := &chunks[uint32]{keep: k, op: l.op, path: l.path}
	var small []uint32
	for i := range l.wide.list {
		small = small[:0]
		for _, id := range l.wide.filled(i) {
			small = append(small, to(id))
		}
		if err := out.add(small); err != nil {
			return nil, err
		}
	}
	return edgeBuffer{out}, nil
}
