package graphwork

import (
	"slices"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// relationEdges are the edges of a mesh by relation.
type relationEdges struct {
	fromOwn, fromGhosts         shard.Edges // of the shard
	ownCount, ghostCount        int
	own, ghost                  *relationRuns // into own vertices, from own vertices and from ghosts
	ownBySource, ghostsBySource *relationRuns // the same by source
}

// relationRuns are edges grouped by relation and then by row: run i has the columns begin[i] to end[i]-1
// of row rows[i]. Runs first[r] to first[r+1]-1 belong to relation r, with ascending rows.
type relationRuns struct {
	first      []int
	rows       []uint32
	begin, end kernels.Vector[int64]
	cols       kernels.Vector[uint32]
	scale      kernels.Vector[float32] // of runs
	weights    kernels.Vector[float32] // of columns
	base       uint32
}

// relationEdgesOf returns the edges of a mesh by relation, which its layers share.
func (w *Work) relationEdgesOf(m *mesh, relations int) *relationEdges {
	if m.byRelation != nil {
		return m.byRelation
	}
	a := w.arena.For(RelationArrays)
	e := &relationEdges{fromOwn: m.shard.OwnEdges(), fromGhosts: m.halo.In}
	e.ownCount = e.fromOwn.Len()
	if m.Plan.Ghosts > 0 {
		e.ghostCount = e.fromGhosts.Len()
	}
	e.own = newRuns(a, e.fromOwn, m.shard.Runs(e.ownCount, relations), m.shard.Relations, relations)
	e.ghost = newRuns(a, e.fromGhosts, m.shard.Runs(e.ghostCount, relations), m.shard.Relations, relations)
	a.Fill(func() { setMeans(e.own, e.ghost) })
	m.byRelation = e
	return e
}

// reverse makes the edges by source, if the backward pass needs them.
func (e *relationEdges) reverse(w *Work, relations int, o Options) {
	if o.Forward || e.ownBySource != nil {
		return
	}
	a := w.arena.For(RelationArrays)
	e.ownBySource = e.own.bySource(a, e.fromOwn, e.ownCount, relations)
	if !o.OneWay {
		e.ghostsBySource = e.ghost.bySource(a, e.fromGhosts, e.ghostCount, relations)
	}
}

// idle reports for each relation whether none of its edges leads to a training vertex.
func (e *relationEdges) idle(split []uint8) (list []bool) {
	for r := range len(e.own.first) - 1 {
		trained := false
		for _, runs := range []*relationRuns{e.own, e.ghost} {
			trained = trained || slices.ContainsFunc(runs.rows[runs.first[r]:runs.first[r+1]], func(v uint32) bool {
				return split[v] == graph.SplitTrain
			})
		}
		list = append(list, !trained)
	}
	return list
}

// newRuns groups edges by relation. of are the relations of e.Cols, nil if all edges have relation 0.
// n is the number of runs of a sketch.
func newRuns(a *mapped.Arena, e shard.Edges, n int, of []uint16, relations int) *relationRuns {
	runs := &relationRuns{first: make([]int, relations+1), cols: kernels.HostVector(e.Cols), base: uint32(e.Base)}
	a.Fill(func() {
		eachRun(e, of, func(r, _ int, _, _ int64) { runs.first[r+1]++ })
		for r := range relations {
			runs.first[r+1] += runs.first[r]
		}
		n = runs.first[relations]
	})
	begin, end := mapped.Make[int64](a, n), mapped.Make[int64](a, n)
	runs.rows, runs.begin, runs.end = mapped.Make[uint32](a, n), kernels.HostVector(begin), kernels.HostVector(end)
	a.Fill(func() {
		next := slices.Clone(runs.first)
		eachRun(e, of, func(r, v int, from, to int64) {
			runs.rows[next[r]], begin[next[r]], end[next[r]] = uint32(v), from, to
			next[r]++
		})
	})
	return runs
}

// eachRun calls visit for the edges of each relation of each row.
func eachRun(e shard.Edges, of []uint16, visit func(r, row int, from, to int64)) {
	for v, from := range e.Begin {
		for end := e.End[v]; from < end; {
			r, to := 0, end
			if of != nil {
				r, to = int(of[from]), from+1
				for to < end && int(of[to]) == r {
					to++
				}
			}
			visit(r, v, from, to)
			from = to
		}
	}
}

// setMeans sets the scales of runs to 1/c, with c the number of edges of a row and relation in both groups.
func setMeans(own, ghost *relationRuns) {
	of := func(e *relationRuns) []float32 { return make([]float32, len(e.rows)) }
	scales := [2][]float32{of(own), of(ghost)}
	length := func(e *relationRuns, i int) float32 { return float32(e.end.Host()[i] - e.begin.Host()[i]) }
	for r := range len(own.first) - 1 {
		i, k := own.first[r], ghost.first[r]
		for i < own.first[r+1] || k < ghost.first[r+1] {
			hasOwn := i < own.first[r+1] && (k == ghost.first[r+1] || own.rows[i] <= ghost.rows[k])
			hasGhost := k < ghost.first[r+1] && (i == own.first[r+1] || ghost.rows[k] <= own.rows[i])
			count := float32(0)
			if hasOwn {
				count += length(own, i)
			}
			if hasGhost {
				count += length(ghost, k)
			}
			if hasOwn {
				scales[0][i] = 1 / count
				i++
			}
			if hasGhost {
				scales[1][k] = 1 / count
				k++
			}
		}
	}
	own.scale, ghost.scale = kernels.HostVector(scales[0]), kernels.HostVector(scales[1])
}

// newGradProducts allocates the products of the gradients of a relational gather along n edges, which are grouped
// as runs.
func (w *Work) newGradProducts(g *relational, runs *relationRuns, edges shard.Edges, n int) *gradProducts {
	p := &gradProducts{runs: runs, first: make([]int, g.relations)}
	a, count := w.arena.For(RelationArrays), len(runs.rows)
	// each calls visit for all edges that are not idle.
	each := func(visit func(run, row int, source uint32)) {
		begin, end := runs.begin.Host(), runs.end.Host()
		for r, first := range p.first {
			for i := runs.first[r]; first >= 0 && i < runs.first[r+1]; i++ {
				for _, u := range edges.Cols[begin[i]:end[i]] {
					visit(i, first+i-runs.first[r], u-runs.base)
				}
			}
		}
	}
	a.Fill(func() {
		count, n = 0, 0
		for r := range p.first {
			if p.first[r] = -1; g.idle == nil || !g.idle[r] {
				p.first[r] = count
				count += runs.first[r+1] - runs.first[r]
			}
		}
		each(func(int, int, uint32) { n++ })
	})
	offsets, cols, scale := mapped.Make[int64](a, edges.Sources+1), mapped.Make[uint32](a, n), mapped.Make[float32](a, count)
	a.Fill(func() {
		each(func(run, row int, source uint32) {
			offsets[source+1]++
			scale[row] = runs.scale.Host()[run]
		})
		for u := range edges.Sources {
			offsets[u+1] += offsets[u]
		}
		next := slices.Clone(offsets)
		each(func(_, row int, source uint32) {
			cols[next[source]] = uint32(row)
			next[source]++
		})
	})
	p.rows, p.scale = w.newZeros(RelationArrays, count, g.inWidth), kernels.HostVector(scale)
	p.source = csr{offsets: kernels.HostVector(offsets), cols: kernels.HostVector(cols)}
	return p
}

// bySource returns the runs of the edges e by source, with the scales of e's runs as weights.
func (e *relationRuns) bySource(a *mapped.Arena, edges shard.Edges, n, relations int) *relationRuns {
	t := shard.Edges{Cols: mapped.Make[uint32](a, n)}
	weights := mapped.Make[float32](a, len(t.Cols))
	temporary := a.Temporary()
	defer temporary.Free()
	offsets, of := mapped.Make[int64](temporary, edges.Sources+1), mapped.Make[uint16](temporary, len(t.Cols))
	a.Fill(func() {
		each := func(visit func(r, run int, source uint32)) {
			begin, end := e.begin.Host(), e.end.Host()
			for r := range relations {
				for i := e.first[r]; i < e.first[r+1]; i++ {
					for _, u := range edges.Cols[begin[i]:end[i]] {
						visit(r, i, u-e.base)
					}
				}
			}
		}
		each(func(_, _ int, u uint32) { offsets[u+1]++ })
		for u := range edges.Sources {
			offsets[u+1] += offsets[u]
		}
		next, scale := slices.Clone(offsets), e.scale.Host()
		each(func(r, run int, u uint32) {
			at := next[u]
			t.Cols[at], weights[at], of[at] = e.rows[run], scale[run], uint16(r)
			next[u]++
		})
	})
	t.Begin, t.End = offsets[:edges.Sources], offsets[1:]
	runs := newRuns(a, t, len(e.rows), of, relations)
	runs.weights = kernels.HostVector(weights)
	return runs
}

// block are the runs lo to hi-1.
type block struct{ lo, hi int }

func (b block) len() int { return b.hi - b.lo }

// eachRelation calls do for the runs of the rows lo to hi-1 of each relation that has some.
func (e *relationRuns) eachRelation(lo, hi int, do func(r int, b block)) {
	for r := range len(e.first) - 1 {
		if b := (block{e.search(r, lo), e.search(r, hi)}); b.len() > 0 {
			do(r, b)
		}
	}
}

// eachBlock is eachRelation with at most blockRows runs at once.
func (e *relationRuns) eachBlock(lo, hi int, do func(r int, b block)) {
	e.eachRelation(lo, hi, func(r int, b block) {
		for from := b.lo; from < b.hi; from += blockRows {
			do(r, block{from, min(from+blockRows, b.hi)})
		}
	})
}

// span is a range of rows, counted from the first row of an interval.
type span struct{ lo, hi int }

// span returns the smallest range of rows with all rows of a block, counted from row lo.
func (e *relationRuns) span(b block, lo int) span {
	return span{int(e.rows[b.lo]) - lo, int(e.rows[b.hi-1]) - lo + 1}
}

// search returns the first run of relation r of a row from v on.
func (e *relationRuns) search(r, v int) int {
	lo, hi := e.first[r], e.first[r+1]
	for lo < hi {
		if mid := (lo + hi) / 2; int(e.rows[mid]) < v {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// edges returns the edges of a block.
func (e *relationRuns) edges(b block) kernels.Edges {
	return kernels.Edges{Begin: e.begin.Part(b.lo, b.hi), End: e.end.Part(b.lo, b.hi), Cols: e.cols, Weights: e.weights,
		RowScale: e.scale.Part(b.lo, b.hi), Base: e.base}
}
