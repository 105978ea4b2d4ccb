package multilevel

// entry is an entry of a heap: vertex v may be moved with the given gain.
type entry struct {
	gain int64
	v    uint32
}

// heap is a binary heap. The first entry has the highest gain and, among equal gains, the lowest
// vertex.
type heap []entry

func (e entry) before(f entry) bool { return e.gain > f.gain || e.gain == f.gain && e.v < f.v }

func (h *heap) push(e entry) {
	s := append(*h, e)
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(s[up]) {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = e
	*h = s
}

// order makes a heap of entries in any order.
func (h heap) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(h[i], i)
	}
}

func (h *heap) pop() entry {
	s := *h
	top, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) > 0 {
		s.sink(last, 0)
	}
	return top
}

// sink replaces entry i by e and restores the order below it.
func (h heap) sink(e entry, i int) {
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].before(h[down]) {
			down++
		}
		if !h[down].before(e) {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = e
}
