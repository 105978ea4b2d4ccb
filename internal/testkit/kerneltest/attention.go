package kerneltest

import (
	"fmt"
	"math"
	"testing"

	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// Attention tests the forward pass and both backward passes of attention, with static and with
// dynamic scores.
func (s Suite) Attention(t *testing.T) {
	s.attention(t)
	s.dynamicAttention(t)
}

func (s Suite) attention(t *testing.T) {
	for n, shape := range []struct{ own, heads, width int }{
		{0, 2, 5}, {1, 1, 1}, {1, 8, 8}, {7, 1, 5}, {7, 2, 16}, {7, 3, 40}, {7, 9, 3}, {40, 8, 1}, {size(40, 15), 2, 128},
		{size(40, 12), 12, 40}, {size(40, 20), 5, 33}, {size(300, 30), 1, 128}, {size(300, 90), 8, 8},
		{size(300, 50), 4, 16}, {size(3000, 300), 2, 3},
	} {
		for i, drop := range dropouts(shape.own + shape.own/3 + 1)[:4] {
			if !hosttest.Sampled(4, n, i) {
				continue
			}
			t.Run(fmt.Sprintf("own=%d/heads=%d/width=%d/dropout=%d", shape.own, shape.heads, shape.width, i), func(t *testing.T) {
				c := s.newAttentionCase(static, shape.own, shape.heads, shape.width, drop)
				c.check(t)
			})
		}
	}
	t.Run("differences", func(t *testing.T) {
		s.newAttentionCase(static, 7, 2, 3, dropouts(10)[2]).checkDifferences(t)
	})
	for _, heads := range []int{1, 8} {
		t.Run(fmt.Sprintf("hub of %d heads", heads), func(t *testing.T) {
			c := s.newAttentionCase(static, 40, heads, 5, dropouts(54)[3])
			c.swell(size(20000, 5600))
			c.list()
			c.check(t)
		})
	}
	t.Run("any scores", func(t *testing.T) {
		c := s.newAttentionCase(static, 40, 2, 5, nil)
		for v := range c.x {
			if v%c.Emitted() >= c.Columns() {
				c.x[v] *= 1e4
			}
		}
		c.checkForward(t)
		insertNonFinite(c.x)
		c.checkForward(t)
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			c.x[3*c.Emitted()+c.Columns()] = float32(v)
			c.checkForward(t)
		}
	})
}

// attentionCase contains the edges of a shard, own sources before ghosts in each row, and the
// emitted rows of its vertices.
type attentionCase struct {
	kernels.Attention
	*spmmCase
	r, grad  []float32
	weights  []float64 // Vector and Edge, if present
	suite    Suite
	edges    []attentionEdge
	terms    int       // of the longest sum over edges
	out, lse []float32 // of the forward pass, for the backward pass; nil: not computed yet
}

// attentionEdge is an edge in the definition of attention.
type attentionEdge struct {
	source, target int
}

func (s Suite) newAttentionCase(scores scoring, own, heads, width int, drop *kernels.Dropout) *attentionCase {
	c := &attentionCase{
		Attention: kernels.Attention{Heads: heads, Width: width, Slope: 0.2, Drop: drop},
		suite:     s,
	}
	if scores != static {
		c.makeDynamic(int(scores))
	}
	c.spmmCase = newSpMMCase(own, c.Emitted())
	c.r, c.grad = Values(own*c.ScoreWidth(), 5), Values(own*c.Columns(), 6)
	c.list()
	return c
}

// list fills the list of edges.
func (c *attentionCase) list() {
	c.edges = nil
	for v := range c.own {
		c.edges = append(c.edges, attentionEdge{v, v})
		for _, u := range c.cols[c.begin[v]:c.end[v]] {
			c.edges = append(c.edges, attentionEdge{int(u), v})
		}
		c.terms = max(c.terms, int(c.end[v]-c.begin[v]))
	}
}

func (c *attentionCase) locals() int { return c.own + c.ghosts }

// parts returns the edges from own vertices and from ghosts, with the emitted rows of both.
func (c *attentionCase) parts() (own, ghost kernels.Gather, ownRows, ghostRows []float32) {
	own = c.targets(kernels.Gather{Begin: c.begin, End: c.middle, Cols: c.cols, SelfLoops: true})
	ghost = c.targets(kernels.Gather{Begin: c.middle, End: c.end, Cols: c.cols, Base: uint32(c.own)})
	n := c.own * c.Emitted()
	return own, ghost, guarded(c.x[:n]), guarded(c.x[n:])
}

// scores returns the scores of emitted rows, packed in two calls.
func (c *attentionCase) scores(team *kernels.Team, rows []float32) []float32 {
	if c.Dynamic {
		return nil
	}
	n := len(rows) / c.Emitted()
	dst, half := guarded(poison(n*c.Heads)), n/2*c.Emitted()
	c.suite.packScores(team, c.Attention, dst, n, n/2, rows[half:])
	c.suite.packScores(team, c.Attention, dst, n, 0, rows[:half])
	return dst
}

// forward computes the forward pass, in two parts or at once.
func (c *attentionCase) forward(team *kernels.Team, out, lse []float32, split bool) {
	stats := guarded(poison(c.own * 2 * c.Heads))
	if split {
		own, ghost, ownRows, ghostRows := c.parts()
		c.suite.gather(team, c.Attention, out, stats, own, flat.AttentionRows{X: ownRows, Scores: c.scores(team, ownRows)}, c.r, false)
		c.suite.gather(team, c.Attention, out, stats, ghost, flat.AttentionRows{X: ghostRows, Scores: c.scores(team, ghostRows)}, c.r, true)
	} else {
		all := c.targets(kernels.Gather{Begin: c.begin, End: c.end, Cols: c.cols, SelfLoops: true})
		c.suite.gather(team, c.Attention, out, stats, all, flat.AttentionRows{X: c.x}, c.r, false)
	}
	c.suite.finish(team, c.Attention, out, lse, c.own, stats)
}

// check checks the forward and the backward pass.
func (c *attentionCase) check(t *testing.T) {
	t.Helper()
	c.checkBackward(t, c.checkForward(t))
}

// checkForward checks the forward pass and returns its definition.
func (c *attentionCase) checkForward(t *testing.T) defined {
	t.Helper()
	want := c.define(wide(c.x), wide(c.r))
	for _, split := range []bool{false, true} {
		lse := guarded(poison(c.own * c.Heads))
		out := outcome(t, poison(c.own*c.Columns()), func(team *kernels.Team, dst []float32) { c.forward(team, dst, lse, split) })
		checkGuards(t, lse)
		c.compare(t, out, want.out, want.outSize)
		c.compare(t, lse, want.lse, want.lseSize)
	}
	return want
}

// compare checks that errors are within rounding.
func (c *attentionCase) compare(t *testing.T, got []float32, want, size []float64) {
	t.Helper()
	for i := range got {
		compare(t, i, float64(got[i]), want[i], float64(c.terms+c.own+c.Width+40)*unit*size[i]+1e-30)
	}
}

// back returns the inputs of the backward pass. The forward pass has the same bits with each
// team (checkForward), so that it runs only with the first one.
func (c *attentionCase) back(team *kernels.Team) flat.AttentionGrad {
	if c.out == nil {
		c.out, c.lse = make([]float32, len(c.grad)), guarded(poison(c.own*c.Heads))
		c.forward(team, c.out, c.lse, false)
	}
	dots := guarded(poison(c.own * c.Heads))
	c.suite.rowDots(team, dots, c.own, c.Heads, c.Width, c.grad, c.out)
	return flat.AttentionGrad{R: c.r, LSE: c.lse, Grad: c.grad, Dots: dots}
}

// gradTargets computes dr, followed by along.
func (c *attentionCase) gradTargets(team *kernels.Team, dst []float32) {
	dr, along := dst[:len(c.r)], dst[len(c.r):]
	back := c.back(team)
	own, ghost, ownRows, ghostRows := c.parts()
	c.suite.gradDst(team, c.Attention, dr, along, own, flat.AttentionRows{X: ownRows}, back, false)
	c.suite.gradDst(team, c.Attention, dr, along, ghost, flat.AttentionRows{X: ghostRows, Scores: c.scores(team, ghostRows)}, back, true)
}

// gradSigned checks the team's dr without edges. Its forward pass must give the same output and lse as
// others.
func (c *attentionCase) gradSigned(t *testing.T, team *kernels.Team, dr []float32) {
	c.suite.open(team)
	s := flat.Signed{
		Out: guarded(poison(len(c.grad))), LSE: guarded(poison(len(c.r))), Stats: guarded(poison(2 * len(c.r))),
		Dots: guarded(poison(len(c.r))),
		Rows: guarded(poison(c.own * c.Emitted())), DR: dr,
	}
	own, ghost, ownRows, ghostRows := c.parts()
	x := [2]flat.AttentionRows{{X: ownRows, Scores: c.scores(team, ownRows)}, {X: ghostRows, Scores: c.scores(team, ghostRows)}}
	flat.AttentionSigned(team, c.Attention, s, [2]kernels.Gather{own, ghost}, x, c.r, c.grad)
	for _, v := range [][]float32{s.Out, s.LSE, s.Stats, s.Dots, s.Rows} {
		checkGuards(t, v)
	}
	out, lse := guarded(poison(len(c.grad))), guarded(poison(len(c.r)))
	c.forward(team, out, lse, true)
	same(t, s.Out, out)
	same(t, s.LSE, lse)
}

// gradSources computes the gradient of the emitted rows of own vertices and ghosts.
func (c *attentionCase) gradSources(team *kernels.Team, dx []float32) {
	back := c.back(team)
	for i, part := range [][2]int{{0, c.own}, {c.own, c.locals()}} {
		if i == 1 {
			back.Packed = guarded(poison(3 * len(back.LSE)))
			c.suite.packGrad(team, c.Attention, back.Packed, c.own, 0, back.R[:len(back.LSE)], back.LSE, back.Dots)
		}
		g := c.transposed(part[0], part[1])
		g.SelfLoops = i == 0
		c.sources(&g, part[0])
		from, to := part[0]*c.Emitted(), part[1]*c.Emitted()
		c.suite.gradSrc(team, c.Attention, dx[from:to], g, part[0], c.own, c.x[from:to], back)
	}
}

// transposed returns the edges by source, without self loops.
func (c *attentionCase) transposed(from, to int) kernels.Gather {
	var g kernels.Gather
	for u := from; u < to; u++ {
		g.Begin = append(g.Begin, int64(len(g.Cols)))
		for v := range c.own {
			for _, w := range c.cols[c.begin[v]:c.end[v]] {
				if int(w) == u {
					g.Cols = append(g.Cols, uint32(v))
				}
			}
		}
		g.End = append(g.End, int64(len(g.Cols)))
	}
	return g
}

func (c *attentionCase) checkBackward(t *testing.T, want defined) {
	t.Helper()
	if c.own > 1000 {
		return // the transpose is slow
	}
	c.defineGrad(&want)
	c.compare(t, outcome(t, poison(len(want.dr)), c.gradTargets), want.dr, want.drSize)
	c.compare(t, outcome(t, poison(len(c.x)), c.gradSources), want.dx, want.dxSize)
	if c.suite.direct && !c.Dynamic {
		signed := func(team *kernels.Team, dr []float32) { c.gradSigned(t, team, dr) }
		c.compare(t, outcome(t, poison(len(c.r)), signed), want.dr, want.drSize)
	}
}

// checkDifferences compares gradients with central differences of the definition.
func (c *attentionCase) checkDifferences(t *testing.T) {
	x, r := wide(c.x), wide(c.r)
	loss := func() (sum float64) {
		for i, o := range c.define(x, r).out {
			sum += o * float64(c.grad[i])
		}
		return sum
	}
	check := func(got []float32, at []float64) {
		t.Helper()
		for i := range at {
			const step = 1e-5
			was := at[i]
			at[i] = was + step
			up := loss()
			at[i] = was - step
			compare(t, i, float64(got[i]), (up-loss())/(2*step), 1e-5)
			at[i] = was
		}
	}
	targets := outcome(t, poison(len(c.r)+c.own*c.AlongWidth()), c.gradTargets)
	check(targets[:len(r)], r)
	check(c.summed(targets[len(r):]), c.weights)
	check(outcome(t, poison(len(c.x)), c.gradSources), x)
}
