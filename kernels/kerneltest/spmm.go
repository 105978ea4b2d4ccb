package kerneltest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/kernels"
)

// SpMM runs an implementation of kernels.SpMM.
func SpMM(t *testing.T, spmm func(team *kernels.Team, dst []float32, width int, g kernels.Gather, x []float32, add bool)) {
	for _, own := range []int{0, 1, 7, 300, 3000} {
		for _, width := range []int{0, 1, 3, 16, 37} {
			t.Run(fmt.Sprintf("own=%d/width=%d", own, width), func(t *testing.T) {
				c := newSpMMCase(own, width)
				c.run(t, spmm)
				spoil(c.x)
				c.loops = true
				c.run(t, spmm)
				c.unscaled().run(t, spmm)
			})
		}
	}
	t.Run("hub", func(t *testing.T) {
		c := newSpMMCase(40, 21)
		c.swell(70000)
		c.loops = true
		c.run(t, spmm)
	})
}

// swell gives the last row n edges more to own vertices, many to the same.
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

// spmmCase is a shard's matrix: own columns first in each row, then ghosts.
type spmmCase struct {
	own, ghosts, width    int
	begin, middle, end    []int64
	loops                 bool
	cols                  []uint32
	rowScale, colScale, x []float32
}

// newSpMMCase makes rows of about 0 to 20 edges and one hub with an edge to
// every vertex; the largest case is several chunks.
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

// run gathers everything at once, and then own and ghost columns one after
// the other from matrices of their own.
func (c *spmmCase) run(t *testing.T, spmm func(*kernels.Team, []float32, int, kernels.Gather, []float32, bool)) {
	t.Helper()
	n := c.own * c.width
	want := c.verify(make([]float32, n))
	all := kernels.Gather{Begin: c.begin, End: c.end, Cols: c.cols, RowScale: c.rowScale, ColScale: c.colScale, SelfLoops: c.loops}
	compareSums(t, outcome(t, poison(n), func(team *kernels.Team, dst []float32) {
		spmm(team, dst, c.width, all, c.x, false)
	}), want)

	ownPart, ghostPart := all, all
	ownPart.End = c.middle
	ghostPart.Begin, ghostPart.Base, ghostPart.SelfLoops = c.middle, uint32(c.own), false
	ghostRows := guarded(c.x[n:])
	compareSums(t, outcome(t, poison(n), func(team *kernels.Team, dst []float32) {
		spmm(team, dst, c.width, ownPart, c.x[:n], false)
		spmm(team, dst, c.width, ghostPart, ghostRows, true)
	}), want)

	start := Values(n, 4)
	compareSums(t, outcome(t, start, func(team *kernels.Team, dst []float32) {
		spmm(team, dst, c.width, all, c.x, true)
	}), c.verify(start))
}

// verify pushes: it goes through the vertices and adds each to the rows that
// gather from it, where the kernel goes through the rows.
func (c *spmmCase) verify(start []float32) []sum {
	readers := make([][]int, c.own+c.ghosts)
	for r := range c.own {
		for _, v := range c.cols[c.begin[r]:c.end[r]] {
			readers[v] = append(readers[v], r)
		}
		if c.loops {
			readers[r] = append(readers[r], r)
		}
	}
	dst := make([]sum, c.own*c.width)
	for i := range dst {
		dst[i].add(float64(start[i]))
	}
	for v, rows := range readers {
		for _, r := range rows {
			scale := scaleOf(c.rowScale, r) * scaleOf(c.colScale, v)
			for j := range c.width {
				dst[r*c.width+j].add(scale * float64(c.x[v*c.width+j]))
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
