package order

import (
	"math"
	"runtime"

	"siafu/graph"
	"siafu/internal/workers"
)

// Sizes of the communities that lp looks for, one inside the other, in
// vertices: from a few times what a core's cache holds of feature rows down to
// a small part of it. Others between 64 and 32768 do as well to 3 %.
var communitySizes = []int{1 << 13, 1 << 10, 1 << 7}

const (
	// labelPasses over the vertices for each size. Two more gain 2 % of the
	// misses on a social network and take half as long again.
	labelPasses = 3
	// strides is how many groups of vertices change their labels in turn. All
	// at once, neighbours would swap labels for ever; one by one, nothing
	// could be done at the same time.
	strides = 8
	block   = 1024 // vertices that a worker takes at a time
)

// labels is label propagation with a price on large communities (Raghavan,
// Albert and Kumara, Phys. Rev. E 2007; for orders, layered: Boldi, Rosa,
// Santini and Vigna, WWW 2011). A vertex of degree d takes the label l that
// maximises
//
//	neighbours labelled l − d · vertices labelled l / 2·size
//
// so that it pays half of its neighbours to join a community of the wanted
// size, whatever its degree.
//
// Design note: the layered form of the paper prices vertices without regard to
// degree; those of low degree then can't afford any large community, and the
// estimated misses are 4 to 8 % higher. A hard limit on sizes gives 7 to 12 % more.
type labels struct {
	g      graph.CSR
	outer  []uint32 // the larger community, within which labels are taken
	label  []uint32
	next   []uint32 // labels of the stride at work, before they count
	count  []int32  // vertices that bear a label
	price  float64  // 1 / 2·size
	worker []tally  // one a worker
}

// tally counts labels: zero between two vertices, but for those in used.
type tally struct {
	count []int32
	used  []uint32
}

// byLabels lays the vertices of a community side by side, those of a community
// inside it too, and so on. Communities come in the order of their first
// vertices, and so do the vertices of the innermost.
func byLabels(g graph.CSR) []uint32 {
	n := g.Rows()
	l := &labels{
		g: g, outer: make([]uint32, n), label: make([]uint32, n), next: make([]uint32, n),
		count: make([]int32, n),
	}
	// Tallies must not take more memory than the graph, however many
	// processors there are.
	l.worker = make([]tally, min(runtime.GOMAXPROCS(0), 1+len(g.Cols)/max(n, 1)))
	for i := range l.worker {
		l.worker[i].count = make([]int32, n)
	}
	p := identity(n)
	for _, size := range communitySizes {
		l.find(size)
		p = l.refine(p)
	}
	return p
}

// find gives each vertex the label of its community of about the given size.
func (l *labels) find(size int) {
	l.price = 0.5 / float64(size)
	for v := range l.label {
		l.label[v], l.count[v] = uint32(v), 1
	}
	for range labelPasses {
		for s := range strides {
			l.choose(s)
			for v := s; v < len(l.label); v += strides {
				l.count[l.label[v]]--
				l.label[v] = l.next[v]
				l.count[l.label[v]]++
			}
		}
	}
}

// choose finds the next labels of the vertices s, s+strides, …; nothing that
// it reads changes meanwhile.
func (l *labels) choose(s int) {
	workers.Blocks(len(l.worker), len(l.label), block, func(worker, lo, hi int) {
		for v := lo + s; v < hi; v += strides {
			l.next[v] = l.best(v, &l.worker[worker])
		}
	})
}

// best is the label that v should bear; of equals the lowest, but rather its
// own.
func (l *labels) best(v int, t *tally) uint32 {
	row := l.g.Row(v)
	l.tally(t, row, l.outer[v])
	price := l.price * float64(len(row))
	own := l.label[v]
	best, high := own, float64(t.count[own])-price*float64(l.count[own]-1)
	for _, label := range t.used {
		score := float64(t.count[label]) - price*float64(l.count[label])
		t.count[label] = 0
		if label != own && (score > high || score == high && best != own && label < best) {
			best, high = label, score
		}
	}
	return best
}

// tally counts the labels of those vertices that are in the community outer.
func (l *labels) tally(t *tally, vertices []uint32, outer uint32) {
	t.used = t.used[:0]
	for _, u := range vertices {
		if l.outer[u] != outer {
			continue
		}
		label := l.label[u]
		if t.count[label] == 0 {
			t.used = append(t.used, label)
		}
		t.count[label]++
	}
}

// refine sorts p, in which the vertices of an outer community are side by
// side, by label, and makes the labels the outer communities. Labels are taken
// in the order in which they come in p.
func (l *labels) refine(p []uint32) []uint32 {
	const unseen = math.MaxUint32
	n := len(p)
	number := l.next // of a label
	for i := range number {
		number[i] = unseen
	}
	start, k := make([]int64, n+1), uint32(0)
	for _, v := range p {
		label := l.label[v]
		if number[label] == unseen {
			number[label] = k
			k++
			start[k] = start[k-1] + int64(l.count[label])
		}
	}
	sorted := make([]uint32, n)
	for _, v := range p {
		c := number[l.label[v]]
		l.outer[v] = c
		sorted[start[c]] = v
		start[c]++
	}
	return sorted
}
