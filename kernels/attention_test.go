package kernels_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

func TestAttention(t *testing.T) { best.Attention(t) }

// layer is a layer of attention on the whole of a graph, or on a rank.
type layer struct {
	kernels.Attention
	ids                        []uint32 // of own vertices and ghosts
	own                        int
	in, ghosts, out, ghostsOut kernels.Gather
	x, r, up                   []float32
	result, lse, dots, dr, dx  []float32
	along                      []float32
}

// newLayer makes the part of a symmetric graph around the vertices in own. Values are
// functions of dataset ids.
func newLayer(edges [][]uint32, own []uint32, a kernels.Attention, x, r, up []float32) *layer {
	l := &layer{Attention: a, ids: slices.Clone(own), own: len(own)}
	local := make(map[uint32]uint32)
	for i, v := range own {
		local[v] = uint32(i)
	}
	var ghostIn, ghostOut [][]uint32
	for i, v := range own {
		var mine, others []uint32
		for _, u := range edges[v] {
			if _, ok := local[u]; !ok {
				local[u] = uint32(len(l.ids))
				l.ids, ghostOut = append(l.ids, u), append(ghostOut, nil)
			}
			if c := local[u]; int(c) < l.own {
				mine = append(mine, c)
			} else {
				others = append(others, c)
				ghostOut[int(c)-l.own] = append(ghostOut[int(c)-l.own], uint32(i))
			}
		}
		appendRow(&l.in, mine)
		ghostIn = append(ghostIn, others)
	}
	for _, row := range ghostIn {
		appendRow(&l.ghosts, row)
	}
	for _, row := range ghostOut {
		appendRow(&l.ghostsOut, row)
	}
	l.in.SelfLoops, l.ghosts.Base = true, uint32(l.own)
	l.out = l.in
	for _, id := range l.ids {
		l.x = append(l.x, x[int(id)*a.Emitted():][:a.Emitted()]...)
	}
	for _, id := range own {
		l.r = append(l.r, r[int(id)*a.ScoreWidth():][:a.ScoreWidth()]...)
		l.up = append(l.up, up[int(id)*a.Columns():][:a.Columns()]...)
	}
	drop := *a.Drop
	drop.IDs = kernels.HostVector(l.ids)
	l.Drop = &drop
	l.result, l.dx = make([]float32, l.own*a.Columns()), make([]float32, len(l.x))
	l.lse, l.dots = make([]float32, l.own*a.Heads), make([]float32, l.own*a.Heads)
	l.dr, l.along = make([]float32, len(l.r)), make([]float32, l.own*a.AlongWidth())
	return l
}

func appendRow(g *kernels.Gather, cols []uint32) {
	g.Begin = append(g.Begin, int64(len(g.Cols)))
	g.Cols = append(g.Cols, cols...)
	g.End = append(g.End, int64(len(g.Cols)))
}

// run runs the forward and backward pass, own vertices before ghosts.
func (l *layer) run(team *kernels.Team, stats []float32) {
	n := l.own * l.Emitted()
	flat.AttentionGather(team, l.Attention, l.result, stats, l.in, flat.AttentionRows{X: l.x[:n]}, l.r, false)
	flat.AttentionGather(team, l.Attention, l.result, stats, l.ghosts, flat.AttentionRows{X: l.x[n:]}, l.r, true)
	flat.AttentionFinish(team, l.Attention, l.result, l.lse, l.own, stats)
	flat.RowDots(team, l.dots, l.own, l.Heads, l.Width, l.up, l.result)
	back := flat.AttentionGrad{R: l.r, LSE: l.lse, Grad: l.up, Dots: l.dots}
	flat.AttentionGradDst(team, l.Attention, l.dr, l.along, l.in, flat.AttentionRows{X: l.x[:n]}, back, false)
	flat.AttentionGradDst(team, l.Attention, l.dr, l.along, l.ghosts, flat.AttentionRows{X: l.x[n:]}, back, true)
	flat.AttentionGradSrc(team, l.Attention, l.dx[:n], l.out, 0, l.own, l.x[:n], back)
	flat.AttentionGradSrc(team, l.Attention, l.dx[n:], l.ghostsOut, l.own, l.own, l.x[n:], back)
}

// symmetric returns a random graph with every edge in both directions.
func symmetric(vertices, degree int) [][]uint32 {
	rng := rand.New(rand.NewPCG(1, 2))
	edges := make([][]uint32, vertices)
	for v := range uint32(vertices) {
		for range degree / 2 {
			u := rng.Uint32N(uint32(vertices))
			if u != v {
				edges[v], edges[u] = append(edges[v], u), append(edges[u], v)
			}
		}
	}
	return edges
}

// attentionInputs makes a graph and the inputs of its vertices.
func attentionInputs(vertices, heads, width int) (edges [][]uint32, all []uint32, a kernels.Attention, x, r, up []float32) {
	for v := range uint32(vertices) {
		all = append(all, v)
	}
	a = kernels.Attention{Heads: heads, Width: width, Slope: 0.2, Drop: &kernels.Dropout{Seed: 3, Epoch: 2, Layer: 1, P: 0.5}}
	return symmetric(vertices, 12), all, a,
		kerneltest.Values(vertices*a.Emitted(), 1), kerneltest.Values(vertices*heads, 2), kerneltest.Values(vertices*a.Columns(), 3)
}

// Several ranks drop the same edges and get the same output and gradients as one rank with the
// whole graph.
func TestAttentionOfRanks(t *testing.T) {
	const vertices, ranks = 300, 3
	edges, all, a, x, r, up := attentionInputs(vertices, 3, 5)
	team := kernels.NewTeam(2)
	defer team.Close()
	stats := make([]float32, vertices*2*a.Heads)
	one := newLayer(edges, all, a, x, r, up)
	one.run(team, stats)
	dx := make([]float32, len(x))
	for rank := range ranks {
		var own []uint32
		for v := rank; v < vertices; v += ranks {
			own = append(own, uint32(v))
		}
		l := newLayer(edges, own, a, x, r, up)
		l.run(team, stats)
		for i, v := range own {
			near(t, l.result[i*a.Columns():][:a.Columns()], one.result[int(v)*a.Columns():])
			near(t, l.dr[i*a.Heads:][:a.Heads], one.dr[int(v)*a.Heads:])
		}
		for i, id := range l.ids {
			for j := range a.Emitted() {
				dx[int(id)*a.Emitted()+j] += l.dx[i*a.Emitted()+j]
			}
		}
	}
	near(t, dx, one.dx)
}

// near compares numbers up to rounding.
func near(t *testing.T, got, want []float32) {
	t.Helper()
	for i, v := range got {
		if !(math.Abs(float64(v-want[i])) < 2e-5) {
			t.Fatalf("element %d is %v, with one rank %v", i, v, want[i])
		}
	}
}

// AVX-512 and AVX2 do the same operations in the same order: the same bits.
func TestAttentionOfInstructionSets(t *testing.T) {
	const vertices = 200
	team := kernels.NewTeam(2)
	defer team.Close()
	use(t, team, "avx512")
	for i, s := range [][2]int{{1, 128}, {1, 5}, {2, 17}, {8, 8}, {5, 40}, {9, 3}, {1, 128}, {1, 5}, {2, 17}, {8, 8}, {5, 40}, {9, 3}} {
		edges, all, a, x, r, up := attentionInputs(vertices, s[0], s[1])
		if a.Dynamic = i > 5; a.Dynamic {
			a.Vector = kernels.HostMat(a.Heads, a.Width, kerneltest.Values(a.Columns(), 4))
			r = kerneltest.Values(vertices*a.ScoreWidth(), 2)
		}
		stats := make([]float32, vertices*2*a.Heads)
		var results [2]*layer
		for i, set := range []string{"avx512", "avx2"} {
			use(t, team, set)
			results[i] = newLayer(edges, all, a, x, r, up)
			results[i].run(team, stats)
		}
		p, q := results[0], results[1]
		for name, v := range map[string][2][]float32{
			"out": {p.result, q.result}, "lse": {p.lse, q.lse}, "dots": {p.dots, q.dots}, "dr": {p.dr, q.dr},
			"dx": {p.dx, q.dx}, "along": {p.along, q.along},
		} {
			if !slices.Equal(mapped.Bytes(v[0]), mapped.Bytes(v[1])) {
				t.Errorf("%s of %v differs between avx512 and avx2", name, s)
			}
		}
	}
}

func TestAttentionAllocatesNothing(t *testing.T) {
	const vertices = 3000
	team := kernels.NewTeam(2)
	defer team.Close()
	for _, heads := range []int{1, 8, 9} {
		edges, all, a, x, r, up := attentionInputs(vertices, heads, 8)
		l, stats := newLayer(edges, all, a, x, r, up), make([]float32, vertices*2*heads)
		if n := kerneltest.Allocs(func() { l.run(team, stats) }); n != 0 {
			t.Errorf("%d heads: %v allocations a call", heads, n)
		}
	}
}

// Invalid attention panics.
func TestAttentionRefuses(t *testing.T) {
	team := kernels.NewTeam(1)
	defer team.Close()
	edges, all, good, x, r, up := attentionInputs(10, 2, 3)
	for name, spoil := range map[string]func(l *layer){
		"slope":     func(l *layer) { l.Slope = 1.5 },
		"no heads":  func(l *layer) { l.Heads = 0 },
		"dst":       func(l *layer) { l.result = l.result[1:] },
		"few ids":   func(l *layer) { l.Drop.IDs = l.Drop.IDs.From(1) },
		"layer":     func(l *layer) { l.Drop.Layer = 1 << 16 },
		"always":    func(l *layer) { l.Drop.P = 1 },
		"r":         func(l *layer) { l.r = nil },
		"gradients": func(l *layer) { l.up = nil },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLayer(edges, all, good, x, r, up)
			spoil(l)
			defer func() {
				if _, ok := recover().(string); !ok {
					t.Error("no panic with a constant string")
				}
			}()
			l.run(team, make([]float32, 40))
		})
	}
}
