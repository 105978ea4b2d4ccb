package kerneltest

import (
	"testing"

	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// The kernels of attention on slices. Each call copies its operands to the Ops and back.

func (s Suite) packScores(team *kernels.Team, a kernels.Attention, dst []float32, n, first int, rows []float32) {
	l := s.newFixture(team)
	defer l.done()
	l.PackScores(l.attention(a), l.out(n, a.Heads, dst), first, l.in(rowsOf(rows, a.Emitted()), a.Emitted(), rows))
}

func (s Suite) gather(team *kernels.Team, a kernels.Attention, dst, stats []float32, g kernels.Gather,
	x flat.AttentionRows, r []float32, merge bool) {
	l, n := s.newFixture(team), g.Rows()
	defer l.done()
	l.AttentionGather(l.attention(a), l.out(n, a.Columns(), dst), kernels.Mat{}, l.out(n, 2*a.Heads, stats), l.edges(g), l.emitted(a, x),
		l.in(n, a.ScoreWidth(), r), merge)
}

func (s Suite) finish(team *kernels.Team, a kernels.Attention, dst, lse []float32, rows int, stats []float32) {
	l := s.newFixture(team)
	defer l.done()
	l.AttentionFinish(l.attention(a), l.out(rows, a.Columns(), dst), kernels.Mat{}, l.out(rows, a.Heads, lse), l.in(rows, 2*a.Heads, stats))
}

func (s Suite) rowDots(team *kernels.Team, dst []float32, rows, heads, width int, x, y []float32) {
	l := s.newFixture(team)
	defer l.done()
	l.RowDots(l.out(rows, heads, dst), l.in(rows, heads*width, x), l.in(rows, heads*width, y))
}

func (s Suite) packGrad(team *kernels.Team, a kernels.Attention, dst []float32, n, first int, r, lse, dots []float32) {
	l, count := s.newFixture(team), rowsOf(r, a.Heads)
	defer l.done()
	l.PackGrad(l.attention(a), l.out(n, 3*a.Heads, dst), first, l.in(count, a.Heads, r),
		l.in(count, a.Heads, lse), l.in(count, a.Heads, dots))
}

func (s Suite) gradDst(team *kernels.Team, a kernels.Attention, dr, along []float32, g kernels.Gather, x flat.AttentionRows,
	back flat.AttentionGrad, add bool) {
	l := s.newFixture(team)
	defer l.done()
	l.AttentionGradDst(l.attention(a), l.out(g.Rows(), a.ScoreWidth(), dr), l.out(g.Rows(), a.AlongWidth(), along), l.edges(g),
		l.emitted(a, x), l.attended(a, g.Rows(), back), add)
}

func (s Suite) gradSrc(team *kernels.Team, a kernels.Attention, dst []float32, g kernels.Gather, first, own int,
	x []float32, back flat.AttentionGrad) {
	l, n := s.newFixture(team), g.Rows()
	defer l.done()
	l.AttentionGradSrc(l.attention(a), l.out(n, a.Emitted(), dst), l.edges(g), first, own,
		l.in(n, a.Emitted(), x), l.attended(a, own, back))
}

func (l *fixture) attention(a kernels.Attention) kernels.Attention {
	a.Drop = l.drop(a.Drop)
	return a
}

func (l *fixture) emitted(a kernels.Attention, x flat.AttentionRows) kernels.Emitted {
	n := rowsOf(x.X, a.Emitted())
	return kernels.Emitted{X: l.in(n, a.Emitted(), x.X), Scores: l.in(n, a.Heads, x.Scores)}
}

func (l *fixture) attended(a kernels.Attention, own int, b flat.AttentionGrad) kernels.Attended {
	heads := func(x []float32) kernels.Mat { return l.in(own, a.Heads, x) }
	return kernels.Attended{R: l.in(own, a.ScoreWidth(), b.R), LSE: heads(b.LSE), Dots: heads(b.Dots),
		Grad: l.in(own, a.Columns(), b.Grad), Packed: l.in(own, 3*a.Heads, b.Packed)}
}

// scores compares FoldScores and its gradient with their definition.
func (s Suite) scores(t *testing.T) {
	for _, c := range [][3]int{{0, 1, 1}, {1, 1, 1}, {5, 2, 3}, {33, 8, 7}} {
		in, heads, width := c[0], c[1], c[2]
		columns := heads * width
		w, source, target := Values(in*columns, 1), Values(columns, 2), Values(columns, 3)
		gwide, gnarrow := Values(in*(columns+heads), 4), Values(in*heads, 5)
		wide, narrow := make([]sum, in*(columns+heads)), make([]sum, in*heads)
		gw, gs, gt := make([]sum, in*columns), make([]sum, columns), make([]sum, columns)
		for i := range in {
			for c := range columns {
				h, v := c/width, float64(w[i*columns+c])
				left, right := float64(gwide[i*(columns+heads)+columns+h]), float64(gnarrow[i*heads+h])
				wide[i*(columns+heads)+c].add(v)
				wide[i*(columns+heads)+columns+h].add(v * float64(source[c]))
				narrow[i*heads+h].add(v * float64(target[c]))
				gw[i*columns+c].add(float64(gwide[i*(columns+heads)+c]))
				gw[i*columns+c].add(left * float64(source[c]))
				gw[i*columns+c].add(right * float64(target[c]))
				gs[c].add(left * v)
				gt[c].add(right * v)
			}
		}
		got := [5][]float32{poison(len(wide)), poison(len(narrow)), poison(len(gw)), poison(len(gs)), poison(len(gt))}
		team := kernels.NewTeam(1)
		l := s.newFixture(team)
		W, S, T := l.in(in, columns, w), l.in(heads, width, source), l.in(heads, width, target)
		l.FoldScores(l.out(in, columns+heads, got[0]), l.out(in, heads, got[1]), W, S, T)
		l.FoldScoresGrad(l.out(in, columns, got[2]), l.out(heads, width, got[3]), l.out(heads, width, got[4]),
			l.in(in, columns+heads, gwide), l.in(in, heads, gnarrow), W, S, T)
		l.done()
		for k, want := range [][]sum{wide, narrow, gw, gs, gt} {
			compareSums(t, got[k], want)
		}
	}
}
