package kernels_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
)

// chosenAttention is a layer of attention in which only some vertices have a gradient.
type chosenAttention struct {
	kernels.Attention
	rows   int
	edges  kernels.Edges
	chosen kernels.VertexMask
	byEdge kernels.EdgeMask // bits of chosen, for the backward pass; nil: none
	x, r   kernels.Mat
	grad   kernels.Mat
}

func newChosenAttention(rows int, a kernels.Attention) *chosenAttention {
	g := packedEdges(rows, rows+1)
	g.RowScale, g.ColScale = nil, nil
	c := &chosenAttention{
		Attention: a, rows: rows, edges: g.Edges(), chosen: kernels.NewVertexMask(rows, chosenVertex),
		x:    kernels.HostMat(rows, a.Emitted(), kerneltest.Values(rows*a.Emitted(), 1)),
		r:    kernels.HostMat(rows, a.ScoreWidth(), kerneltest.Values(rows*a.ScoreWidth(), 2)),
		grad: kernels.HostMat(rows, a.Columns(), kerneltest.Values(rows*a.Columns(), 3)),
	}
	for v := range rows {
		if !chosenVertex(v) {
			clear(c.grad.Host()[v*a.Columns():][:a.Columns()])
		}
	}
	return c
}

// chosenVertex chooses the hub of packedEdges too.
func chosenVertex(v int) bool { return v%3 == 0 || v == 77 }

// nans returns a matrix of NaNs.
func (c *chosenAttention) nans(cols int) kernels.Mat {
	return kernels.HostMat(c.rows, cols, slices.Repeat([]float32{float32(math.NaN())}, c.rows*cols))
}

// forward returns the output and lse, only of wanted rows if any are given.
func (c *chosenAttention) forward(team *kernels.Team, wanted kernels.VertexMask) (out, lse kernels.Mat) {
	e, stats := c.edges, c.nans(2*c.Heads)
	e.RowMask = wanted
	out, lse = c.nans(c.Columns()), c.nans(c.Heads)
	team.AttentionGather(c.Attention, out, kernels.Mat{}, stats, e, kernels.Emitted{X: c.x}, c.r, false)
	team.AttentionFinish(c.Attention, out, kernels.Mat{}, lse, stats)
	return out, lse
}

// signed runs the forward pass of wanted rows for the gradient of r, and returns that.
func (c *chosenAttention) signed(team *kernels.Team, wanted kernels.VertexMask) (dr kernels.Mat) {
	e, stats, out, lse := c.edges, c.nans(2*c.Heads), c.nans(c.Columns()), c.nans(c.Heads)
	e.RowMask = wanted
	signed, dots := c.nans(c.Emitted()), c.nans(c.Heads)
	team.AttentionGather(c.Attention, out, signed, stats, e, kernels.Emitted{X: c.x}, c.r, false)
	team.AttentionFinish(c.Attention, out, signed, lse, stats)
	team.RowDots(dots, c.grad, out)
	dr = c.nans(c.Heads)
	team.AttentionGradSigned(c.Attention, dr, signed, c.grad, dots)
	return dr
}

// backward returns the gradient of all emitted rows.
func (c *chosenAttention) backward(team *kernels.Team, chosen kernels.VertexMask, out, lse kernels.Mat, first, last int) []float32 {
	e, dots := c.edges, c.nans(c.Heads)
	e.Begin, e.End, e.First, e.ColumnMask = e.Begin.Part(first, last), e.End.Part(first, last), uint32(first), chosen
	e.EdgeMask = c.byEdge
	team.RowDots(dots, c.grad, out)
	dx := c.nans(c.Emitted()).Part(first, last)
	team.AttentionGradSrc(c.Attention, dx, e, first, c.rows, c.x.Part(first, last),
		kernels.Attended{R: c.r, LSE: lse, Grad: c.grad, Dots: dots})
	return dx.Host()
}

// Attention along only the edges into wanted vertices gives them the bits of all edges. So do
// the backward passes along chosen edges if the others have no gradient.
func TestMaskedAttention(t *testing.T) {
	const rows = 200
	for _, s := range []struct {
		heads, width int
		dynamic      bool
	}{{8, 8, false}, {1, 40, false}, {2, 5, false}, {3, 5, false}, {9, 3, false}, {2, 5, true}} {
		a := kernels.Attention{Heads: s.heads, Width: s.width, Slope: 0.2, Drop: &kernels.Dropout{Seed: 3, P: 0.5}, Dynamic: s.dynamic}
		if s.dynamic {
			a.Vector = kernels.HostMat(a.Heads, a.Width, kerneltest.Values(a.Columns(), 4))
		}
		t.Run(fmt.Sprintf("heads=%d/width=%d/dynamic=%v", s.heads, s.width, s.dynamic), func(t *testing.T) {
			eachSet(t, func(t *testing.T, set string) {
				team := kernels.NewTeam(2)
				defer team.Close()
				use(t, team, set)
				c, arena := newChosenAttention(rows, a), mapped.NewArena()
				defer arena.Free()
				c.check(t, team)
				c.byEdge = kernels.NewEdgeMask(arena, c.edges.Cols, c.chosen)
				c.check(t, team)
			})
		})
	}
}

func (c *chosenAttention) check(t *testing.T, team *kernels.Team) {
	out, lse := c.forward(team, nil)
	someOut, someLSE := c.forward(team, c.chosen)
	for v := range c.rows {
		columns, heads := c.Columns(), c.Heads
		row, ends := someOut.Host()[v*columns:][:columns], someLSE.Host()[v*heads:][:heads]
		if !chosenVertex(v) {
			if slices.Max(row) != 0 || slices.Min(row) != 0 || !math.IsInf(float64(slices.Min(ends)), 1) {
				t.Fatalf("row %d, which nobody wants, is %v with lse %v", v, row, ends)
			}
			continue
		}
		if !slices.Equal(row, out.Host()[v*columns:][:columns]) || !slices.Equal(ends, lse.Host()[v*heads:][:heads]) {
			t.Fatalf("row %d: other bits than along all edges", v)
		}
	}
	for _, part := range [][2]int{{0, c.rows}, {60, 131}} {
		dx := c.backward(team, nil, out, lse, part[0], part[1])
		for name, some := range map[string][]float32{
			"chosen edges":                  c.backward(team, c.chosen, out, lse, part[0], part[1]),
			"chosen edges, of wanted rows":  c.backward(team, c.chosen, someOut, someLSE, part[0], part[1]),
			"all edges, but of wanted rows": c.backward(team, nil, someOut, someLSE, part[0], part[1]),
		} {
			if !slices.Equal(dx, some) {
				t.Errorf("rows %v along %s: other gradients", part, name)
			}
		}
	}
	if !c.Dynamic && !slices.Equal(mapped.Bytes(c.signed(team, nil).Host()), mapped.Bytes(c.signed(team, c.chosen).Host())) {
		t.Error("other gradients of targets' scores")
	}
}
