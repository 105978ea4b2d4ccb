package kerneltest

import (
	"testing"

	"siafu/graph"
	"siafu/kernels"
)

// Ops tests an implementation of kernels.Ops on the cases of all kernels, and on cases that only
// an Ops has. open returns an Ops for one call and may return the same one each time. The Ops
// may compute with team, which has one of the tested sizes and is closed afterwards.
func Ops(t *testing.T, open func(team *kernels.Team) kernels.Ops) {
	s := suite{func(team *kernels.Team) *lab { return newLab(open(team)) }}
	for name, run := range map[string]func(*testing.T){
		"products": s.products, "elements": s.elements, "norms": s.norms, "slopes": s.slopes, "largers": s.largers, "features": s.features, "gathers": s.gathers, "losses": s.losses,
		"attention": func(t *testing.T) { attention(t, func(*kernels.Team) {}, elsewhere(s)) },
		"memory":    s.memory, "rows": s.rows, "columns": s.columns, "optional": s.optional, "halves": s.halves, "scores": s.scores, "steps": s.steps,
	} {
		t.Run(name, run)
	}
}

// Products tests only the dense products of an Ops and their epilogues.
func Products(t *testing.T, open func(team *kernels.Team) kernels.Ops) {
	suite{func(team *kernels.Team) *lab { return newLab(open(team)) }}.products(t)
}

// suite contains the tests of kernels on the Ops that lab opens.
type suite struct {
	lab func(team *kernels.Team) *lab
}

func (s suite) products(t *testing.T) {
	MatMul(t, func(team *kernels.Team, dst []float32, m, n, k int, a, b []float32, add bool) {
		l := s.lab(team)
		defer l.done()
		l.MatMul(l.out(m, n, dst), l.in(m, k, a), l.in(k, n, b), add)
	})
	MatMulTransA(t, func(team *kernels.Team, dst []float32, m, n, k int, a, b []float32, add bool) {
		l := s.lab(team)
		defer l.done()
		l.MatMulTransA(l.out(m, n, dst), l.in(k, m, a), l.in(k, n, b), add)
	})
	MatMulTransB(t, func(team *kernels.Team, dst []float32, m, n, k int, a, b []float32, add bool) {
		l := s.lab(team)
		defer l.done()
		l.MatMulTransB(l.out(m, n, dst), l.in(m, k, a), l.in(n, k, b), add)
	})
	MatMulBiasReLUDropout(t, func(team *kernels.Team, dst []float32, m, n, k int, a, b, bias []float32, relu bool, d *kernels.Dropout) {
		l := s.lab(team)
		defer l.done()
		l.MatMulBiasReLUDropout(l.out(m, n, dst), l.in(m, k, a), l.in(k, n, b), l.in(1, n, bias), relu, l.drop(d))
	})
	BiasReLUDropout(t, func(team *kernels.Team, dst []float32, rows, cols int, z, bias []float32, relu bool, d *kernels.Dropout) {
		l := s.lab(team)
		defer l.done()
		l.BiasReLUDropout(l.out(rows, cols, dst), l.in(rows, cols, z), l.in(1, cols, bias), relu, l.drop(d))
	})
	BiasReLUDropoutGrad(t, func(team *kernels.Team, dst, bias []float32, rows, cols int, g, h []float32, relu bool, d *kernels.Dropout) {
		l := s.lab(team)
		defer l.done()
		to, sums := l.out(rows, cols, dst), l.out(1, cols, bias)
		l.BiasReLUDropoutGrad(to, sums, l.in(rows, cols, g), l.in(rows, cols, h), relu, l.drop(d))
	})
	BiasELUDropout(t, func(team *kernels.Team, dst []float32, rows, cols int, z, bias []float32, d *kernels.Dropout) {
		l := s.lab(team)
		defer l.done()
		l.BiasELUDropout(l.out(rows, cols, dst), l.in(rows, cols, z), l.in(1, cols, bias), l.drop(d))
	})
	BiasELUDropoutGrad(t, func(team *kernels.Team, dst, bias []float32, rows, cols int, g, h []float32, d *kernels.Dropout) {
		l := s.lab(team)
		defer l.done()
		to, sums := l.out(rows, cols, dst), l.out(1, cols, bias)
		l.BiasELUDropoutGrad(to, sums, l.in(rows, cols, g), l.in(rows, cols, h), l.drop(d))
	})
	ColumnSums(t, func(team *kernels.Team, dst []float32, rows, cols int, g []float32, add bool) {
		l := s.lab(team)
		defer l.done()
		l.ColumnSums(l.out(1, cols, dst), l.in(rows, cols, g), add)
	})
	Add(t, func(team *kernels.Team, dst, x []float32) {
		l := s.lab(team)
		defer l.done()
		l.Add(l.out(len(dst), 1, dst), l.in(len(dst), 1, x))
	})
	MeanHeads(t, func(team *kernels.Team, dst []float32, rows, heads, width int, x, bias []float32) {
		l := s.lab(team)
		defer l.done()
		l.MeanHeads(l.out(rows, width, dst), heads, l.in(rows, heads*width, x), l.in(1, width, bias))
	})
	MeanHeadsGrad(t, func(team *kernels.Team, dst []float32, rows, heads, width int, g []float32) {
		l := s.lab(team)
		defer l.done()
		l.MeanHeadsGrad(l.out(rows, heads*width, dst), heads, l.in(rows, width, g))
	})
}

func (s suite) features(t *testing.T) {
	DropoutRows(t, func(team *kernels.Team, dst []float32, rows, cols int, x []float32, d *kernels.Dropout) {
		l := s.lab(team)
		defer l.done()
		l.DropoutRows(l.out(rows, cols, dst), l.in(rows, cols, x), l.drop(d))
	})
	SparseMatMul(t, func(team *kernels.Team, dst []float32, n int, xs graph.SparseRows, w []float32, d *kernels.Dropout) {
		l := s.lab(team)
		defer l.done()
		l.SparseMatMul(l.out(len(xs.Offsets)-1, n, dst), l.sparse(xs), l.in(rowsOf(w, n), n, w), l.drop(d))
	})
	SparseToDense(t, func(team *kernels.Team, dst []float32, cols int, xs graph.SparseRows, d *kernels.Dropout) {
		l := s.lab(team)
		defer l.done()
		l.SparseToDense(l.out(len(xs.Offsets)-1, cols, dst), l.sparse(xs), l.drop(d))
	})
	sparseTransA(t, func(team *kernels.Team, dst []float32, c sparseCase, g []float32) {
		l := s.lab(team)
		defer l.done()
		x := l.sparse(c.xs)
		xt := kernels.NewTransposed(l, l.arena, x, c.m)
		xt.Fill(l, x)
		l.SparseMatMulTransA(l.out(c.m, c.n, dst), xt, l.in(c.rows, c.n, g), l.drop(c.d))
	})
}

func (s suite) gathers(t *testing.T) {
	SpMM(t, false, func(team *kernels.Team, dst []float32, width int, g kernels.Gather, x []float32, add bool) {
		l := s.lab(team)
		defer l.done()
		l.SpMM(l.out(g.Rows(), width, dst), l.edges(g), l.in(rowsOf(x, width), width, x), add)
	})
	SpMMHalf(t, false, func(team *kernels.Team, dst []float32, width int, g kernels.Gather, x []kernels.BF16, add bool) {
		l := s.lab(team)
		defer l.done()
		l.SpMM(l.out(g.Rows(), width, dst), l.edges(g), l.half(rowsOf(x[:len(x)-kernels.HalfSlack], width), width, x), add)
	})
}

func (s suite) losses(t *testing.T) {
	SoftmaxCrossEntropy(t, func(team *kernels.Team, grad []float32, rows, classes int, logits []float32,
		labels []int32, split []uint8, want uint8, scale float32) (float64, int64) {
		l := s.lab(team)
		defer l.done()
		to := l.out(rows, classes, grad)
		return l.SoftmaxCrossEntropy(to, l.in(rows, classes, logits), place(l, labels), place(l, split), want, scale)
	})
	Accuracy(t, func(team *kernels.Team, rows, classes int, logits []float32, labels []int32, split []uint8) (correct, total [4]int64) {
		l := s.lab(team)
		defer l.done()
		return l.Accuracy(l.in(rows, classes, logits), place(l, labels), place(l, split))
	})
	Argmax(t, func(team *kernels.Team, dst []int32, rows, cols int, x []float32) {
		l := s.lab(team)
		defer l.done()
		to := place(l, dst)
		l.Argmax(to.Part(0, rows), l.in(rows, cols, x))
		copy(dst, kernels.FetchVector(l, to))
	})
	Softmax(t, func(team *kernels.Team, dst []float32, rows, cols int, x []float32) {
		l := s.lab(team)
		defer l.done()
		l.Softmax(l.out(rows, cols, dst), l.in(rows, cols, x))
	})
}
