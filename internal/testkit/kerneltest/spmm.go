package kerneltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/kernels"
)

// spmmFunc gathers rows of x along g to dst, or adds them.
type spmmFunc func(l *fixture, dst []float32, width int, g kernels.Gather, x []float32, add bool)

// SpMM tests kernels.Ops.SpMM on weighted or unweighted edges.
func (s Suite) SpMM(t *testing.T, weighted bool) {
	s.eachSpMM(t, weighted, func([]float32) {}, func(l *fixture, dst []float32, width int, g kernels.Gather, x []float32, add bool) {
		l.SpMM(l.out(g.Rows(), width, dst), l.edges(g), l.in(rowsOf(x, width), width, x), add)
	})
}

// eachSpMM runs all cases; prepare receives the x of each case.
func (s Suite) eachSpMM(t *testing.T, weighted bool, prepare func(x []float32), spmm spmmFunc) {
	sizes{"own", []int{0, 1, 7, size(300, 40), size(3000, 130)}, "width", []int{0, 1, 3, 16, 37}}.run(t,
		func(t *testing.T, own, width int) {
			c := newSpMMCase(own, width)
			prepare(c.x)
			c.weigh(weighted)
			c.run(t, s, spmm)
			insertNonFinite(c.x)
			c.loops = true
			c.run(t, s, spmm)
			c.unscaled().run(t, s, spmm)
		})
	for _, width := range []int{101, 128, 130} { // more columns than a GPU reads at a time
		t.Run(fmt.Sprint("width=", width), func(t *testing.T) {
			c := newSpMMCase(20, width)
			prepare(c.x)
			c.weigh(weighted)
			c.loops = true
			c.run(t, s, spmm)
		})
	}
	t.Run("hub", func(t *testing.T) {
		c := newSpMMCase(40, 21)
		prepare(c.x)
		c.swell(size(70000, 2500))
		c.weigh(weighted)
		c.loops = true
		c.run(t, s, spmm)
	})
}

// SpMMHalf tests kernels.Ops.SpMM on rows of bfloat16 that represents their values exactly. The
// NaNs after the rows must have no effect.
func (s Suite) SpMMHalf(t *testing.T, weighted bool) {
	round := func(x []float32) {
		for i, v := range x {
			x[i] = kernels.Narrow(v).Float32()
		}
	}
	s.eachSpMM(t, weighted, round, func(l *fixture, dst []float32, width int, g kernels.Gather, x []float32, add bool) {
		half := make([]kernels.BF16, len(x)+kernels.HalfSlack)
		for i := range half {
			half[i] = 0x7fff
		}
		for i, v := range x {
			half[i] = kernels.Narrow(v)
		}
		l.SpMM(l.out(g.Rows(), width, dst), l.edges(g), l.half(rowsOf(x, width), width, half), add)
	})
}

// NarrowRows runs an implementation of flat.NarrowRows.
func NarrowRows(t *testing.T, narrow func(team *kernels.Team, dst []kernels.BF16, stride, rows, cols int, x, scale []float32)) {
	sizes{"rows", []int{0, 1, 5, 701}, "cols", []int{0, 1, 16, 37}}.run(t, func(t *testing.T, rows, cols int) {
		x := Values(rows*cols, 1)
		insertNonFinite(x)
		for _, scale := range [][]float32{nil, Values(rows, 2)} {
			stride := cols
			if scale == nil {
				stride += rows % 3
			}
			half := slices.Repeat([]kernels.BF16{0x1234}, rows*stride+8)
			team := kernels.NewTeam(3)
			narrow(team, half, stride, rows, cols, x, scale)
			team.Close()
			for i, h := range half {
				if r, c := i/max(stride, 1), i%max(stride, 1); r < rows && c < cols {
					checkNarrow(t, i, h, float32(scaleOf(scale, r))*x[r*cols+c])
				} else if h != 0x1234 {
					t.Fatalf("element %d written, which is in no row", i)
				}
			}
		}
	})
}

// checkNarrow fails if another bfloat16 is nearer to v.
func checkNarrow(t *testing.T, i int, got kernels.BF16, v float32) {
	t.Helper()
	far := func(h kernels.BF16) float64 { return math.Abs(float64(h.Float32()) - float64(v)) }
	g := got.Float32()
	switch {
	case v != v || math.IsInf(float64(v), 0):
		compare(t, i, float64(g), float64(v), 0)
	case far(got) > far(got+1) || far(got) > far(got-1) || g*v < 0:
		t.Fatalf("element %d, %v, is %v in bfloat16", i, v, g)
	}
}

// swell adds n edges from own vertices to the last row, many of them duplicates.
func (c *spmmCase) swell(n int) {
	last := c.own - 1
	ghosts := slices.Clone(c.cols[c.middle[last]:])
	c.cols = c.cols[:c.middle[last]]
	for i := range n {
		c.cols = append(c.cols, uint32(i*i%c.own))
	}
	c.middle[last] += int64(n)
	c.cols = append(c.cols, ghosts...)
	c.end[last] += int64(n)
}

// weigh gives the edges weights if weighted is true.
func (c *spmmCase) weigh(weighted bool) {
	if !weighted {
		return
	}
	c.weights = Values(len(c.cols), 5)
	for i, w := range c.weights {
		c.weights[i] = 0.1 + w*w
	}
}

// spmmCase contains a shard's matrix: own columns first in each row, then ghosts.
type spmmCase struct {
	own, ghosts, width    int
	begin, middle, end    []int64
	loops                 bool
	cols                  []uint32
	weights               []float32 // nil: none
	rowScale, colScale, x []float32
}

// newSpMMCase returns rows of about 0 to 20 edges and one hub with an edge to every vertex. The
// largest case has several chunks.
func newSpMMCase(own, width int) *spmmCase {
	rng := rand.New(rand.NewPCG(uint64(own), uint64(width)))
	c := &spmmCase{own: own, ghosts: own/3 + 1, width: width}
	for r := range own {
		c.begin = append(c.begin, int64(len(c.cols)))
		gap := 1
		if r != own/2 {
			gap = own/(r%7+1) + 1
		}
		for v := rng.IntN(gap); v < own; v += 1 + rng.IntN(gap) {
			c.cols = append(c.cols, uint32(v))
		}
		c.middle = append(c.middle, int64(len(c.cols)))
		for range r % 6 {
			c.cols = append(c.cols, uint32(own+rng.IntN(c.ghosts)))
		}
		c.end = append(c.end, int64(len(c.cols)))
	}
	c.rowScale, c.colScale = Values(own, 1), Values(own+c.ghosts, 2)
	c.x = Values((own+c.ghosts)*width, 3)
	return c
}

func (c *spmmCase) unscaled() *spmmCase {
	u := *c
	u.rowScale, u.colScale = nil, nil
	return &u
}

// run gathers all columns at once, then own and ghost columns separately, from two matrices.
func (c *spmmCase) run(t *testing.T, s Suite, spmm spmmFunc) {
	t.Helper()
	n := c.own * c.width
	want := c.verify(make([]float32, n))
	all := kernels.Gather{Begin: c.begin, End: c.end, Cols: c.cols, Weights: c.weights, RowScale: c.rowScale,
		ColScale: c.colScale, SelfLoops: c.loops}
	compareSums(t, s.outcome(t, poison(n), func(l *fixture, dst []float32) {
		spmm(l, dst, c.width, all, c.x, false)
	}), want)

	// The second half of the rows, separately.
	if half := c.own / 2; half > 0 {
		tail := all
		tail.Begin, tail.End, tail.First = c.begin[half:], c.end[half:], uint32(half)
		if c.rowScale != nil {
			tail.RowScale = c.rowScale[half:]
		}
		compareSums(t, s.outcome(t, poison(n-half*c.width), func(l *fixture, dst []float32) {
			spmm(l, dst, c.width, tail, c.x, false)
		}), want[half*c.width:])
	}

	ownPart, ghostPart := all, all
	ownPart.End = c.middle
	ghostPart.Begin, ghostPart.Base, ghostPart.SelfLoops = c.middle, uint32(c.own), false
	ghostRows := guarded(c.x[n:])
	compareSums(t, s.outcome(t, poison(n), func(l *fixture, dst []float32) {
		spmm(l, dst, c.width, ownPart, c.x[:n], false)
		l.flush()
		spmm(l, dst, c.width, ghostPart, ghostRows, true)
	}), want)

	start := Values(n, 4)
	compareSums(t, s.outcome(t, start, func(l *fixture, dst []float32) {
		spmm(l, dst, c.width, all, c.x, true)
	}), c.verify(start))
}

// verify computes by source: it adds each vertex to the rows that gather it. The kernel goes
// through the rows.
func (c *spmmCase) verify(start []float32) []sum {
	type reader struct {
		row    int
		weight float64
	}
	readers := make([][]reader, c.own+c.ghosts)
	for r := range c.own {
		for e := c.begin[r]; e < c.end[r]; e++ {
			readers[c.cols[e]] = append(readers[c.cols[e]], reader{r, scaleOf(c.weights, int(e))})
		}
		if c.loops {
			readers[r] = append(readers[r], reader{r, 1})
		}
	}
	dst := make([]sum, c.own*c.width)
	for i := range dst {
		dst[i].add(float64(start[i]))
	}
	for v, rows := range readers {
		for _, r := range rows {
			scale := r.weight * scaleOf(c.rowScale, r.row) * scaleOf(c.colScale, v)
			for j := range c.width {
				dst[r.row*c.width+j].add(scale * float64(c.x[v*c.width+j]))
			}
		}
	}
	return dst
}

func scaleOf(scale []float32, i int) float64 {
	if scale == nil {
		return 1
	}
	return float64(scale[i])
}
