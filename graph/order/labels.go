package order

import (
	"math"
	"runtime"

	"siafu/graph"
	"siafu/internal/workers"
)

// communitySizes are the sizes of nested communities, in vertices. A core's cache has room for about
// 3072 feature rows: fewer than the largest size, and more than the smallest. Other sizes from 64
// to 32768 change the misses by less than 3 %.
var communitySizes = []int{1 << 13, 1 << 10, 1 << 7}

const (
	// labelPasses is the number of passes per size. Two more save 2 % of the misses on a social
	// network and take 50 % longer.
	labelPasses = 3
	// strides is the number of groups of vertices. The vertices of a group change their labels at
	// the same time, the groups one after another. With one group, two neighbours could swap
	// labels forever. With one vertex per group, there would be no parallelism.
	strides = 8
	block   = 1024 // number of vertices in a worker's task
)

// labels finds communities by label propagation (Raghavan, Albert and Kumara, Phys. Rev. E 2007)
// with a penalty on the size of communities. Its use for vertex orders, in layers of different
// sizes, is from Boldi, Rosa, Santini and Vigna (WWW 2011). A vertex of degree d gets the label l
// that maximises
//
//	(neighbours with label l) − d · (vertices with label l) / (2 · size)
//
// The penalty of a community of the requested size is d/2.
//
// Design note: the penalty of Boldi et al. does not depend on the degree. Vertices of low degree
// then never join large communities, and the estimated misses are 4 to 8 % higher. A hard limit on
// the size of communities causes 7 to 12 % more misses.
type labels struct {
	g      graph.CSR
	outer  []uint32 // [n] enclosing community; a vertex only gets labels of vertices in the same one
	label  []uint32 // [n]
	next   []uint32 // [n] new labels of the current stride, not yet applied
	count  []int32  // number of vertices with each label
	price  float64  // 1 / (2 · size)
	worker []tally  // one per worker
}

// tally counts labels. used lists the labels whose count is not zero. All counts are zero between
// two vertices.
type tally struct {
	count []int32
	used  []uint32
}

// byLabels returns an order in which the vertices of each community are consecutive, on each level
// of nesting. Communities are ordered by their first vertices. Vertices of an innermost community
// are ordered by id.
func byLabels(g graph.CSR) []uint32 {
	n := g.Rows()
	l := &labels{
		g: g, outer: make([]uint32, n), label: make([]uint32, n), next: make([]uint32, n),
		count: make([]int32, n),
	}
	// The number of workers is limited, so that tallies do not use more memory than the graph.
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

// find sets the label of each vertex to its community. Communities have about the given size.
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

// choose sets next for the vertices s, s+strides, s+2·strides, … in parallel. Labels and counts do
// not change during the call, so the result does not depend on the number of workers.
func (l *labels) choose(s int) {
	workers.Blocks(len(l.worker), len(l.label), block, func(worker, lo, hi int) {
		for v := lo + s; v < hi; v += strides {
			l.next[v] = l.best(v, &l.worker[worker])
		}
	})
}

// best returns the label with the highest score for v. Among equal scores, it returns the current
// label of v if possible, and otherwise the lowest label.
func (l *labels) best(v int, t *tally) uint32 {
	row := l.g.Row(v)
	l.tally(t, row, l.outer[v])
	price := l.price * float64(len(row))
	own := l.label[v]
	best, high := own, float64(t.count[own])-float64(price*float64(l.count[own]-1))
	for _, label := range t.used {
		score := float64(t.count[label]) - float64(price*float64(l.count[label]))
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

// refine returns the vertices of p, sorted by label within each outer community. Labels are in the
// order of their first occurrence. The vertices of an outer community must be consecutive in p. The
// labels become the new outer communities.
func (l *labels) refine(p []uint32) []uint32 {
	const unseen = math.MaxUint32
	n := len(p)
	number := l.next // the new number of each label; the memory of next is reused
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
