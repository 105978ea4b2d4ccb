// Package flat calls the kernels of a kernels.Team on slices, for tests. A matrix is a slice of
// consecutive rows, and a nil slice is an absent matrix. Shapes and sums are as in the methods
// of kernels.Team.
package flat

import (
	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// mat returns x as a matrix, absent if x is nil.
func mat(rows, cols int, x []float32) kernels.Mat {
	if x == nil && rows*cols > 0 {
		return kernels.Mat{}
	}
	return kernels.HostMat(rows, cols, x)
}

// wide returns x as a matrix of cols columns.
func wide(cols int, x []float32) kernels.Mat { return mat(len(x)/max(cols, 1), cols, x) }

func vector[T mapped.Elem](x []T) kernels.Vector[T] { return kernels.HostVector(x) }

func MatMul(t *kernels.Team, dst []float32, m, n, k int, a, b []float32, add bool) {
	t.MatMul(mat(m, n, dst), mat(m, k, a), mat(k, n, b), add)
}

func MatMulHalf(t *kernels.Team, dst []float32, m, n, k int, a []kernels.BF16, b []float32, add bool) {
	t.MatMul(mat(m, n, dst), kernels.HostHalf(m, k, a), mat(k, n, b), add)
}

func MatMulTransB(t *kernels.Team, dst []float32, m, n, k int, a, b []float32, add bool) {
	t.MatMulTransB(mat(m, n, dst), mat(m, k, a), mat(n, k, b), add)
}

func MatMulTransA(t *kernels.Team, dst []float32, m, n, k int, a, b []float32, add bool) {
	t.MatMulTransA(mat(m, n, dst), mat(k, m, a), mat(k, n, b), add)
}

func MatMulTransAHalf(t *kernels.Team, dst []float32, m, n, k int, a []kernels.BF16, b []float32, add bool) {
	t.MatMulTransA(mat(m, n, dst), kernels.HostHalf(k, m, a), mat(k, n, b), add)
}

func MatMulBiasReLUDropout(t *kernels.Team, dst []float32, m, n, k int, a, b, bias []float32, relu bool, d *kernels.Dropout) {
	t.MatMulBiasReLUDropout(mat(m, n, dst), mat(m, k, a), mat(k, n, b), row(n, bias), relu, d)
}

func MatMulBiasReLUDropoutHalf(t *kernels.Team, dst []float32, m, n, k int, a []kernels.BF16, b, bias []float32,
	relu bool, d *kernels.Dropout) {
	t.MatMulBiasReLUDropout(mat(m, n, dst), kernels.HostHalf(m, k, a), mat(k, n, b), row(n, bias), relu, d)
}

// row returns x as a matrix of one row, absent if x is nil.
func row(cols int, x []float32) kernels.Mat {
	if x == nil {
		return kernels.Mat{}
	}
	return kernels.HostMat(1, cols, x)
}

func BiasReLUDropout(t *kernels.Team, dst []float32, rows, cols int, z, bias []float32, relu bool, d *kernels.Dropout) {
	t.BiasReLUDropout(mat(rows, cols, dst), mat(rows, cols, z), row(cols, bias), relu, d)
}

func BiasReLUDropoutGrad(t *kernels.Team, dst, bias []float32, rows, cols int, g, h []float32, relu bool, d *kernels.Dropout) {
	t.BiasReLUDropoutGrad(mat(rows, cols, dst), row(cols, bias), mat(rows, cols, g), mat(rows, cols, h), relu, d)
}

func BiasELUDropout(t *kernels.Team, dst []float32, rows, cols int, z, bias []float32, d *kernels.Dropout) {
	t.BiasELUDropout(mat(rows, cols, dst), mat(rows, cols, z), row(cols, bias), d)
}

func BiasELUDropoutGrad(t *kernels.Team, dst, bias []float32, rows, cols int, g, h []float32, d *kernels.Dropout) {
	t.BiasELUDropoutGrad(mat(rows, cols, dst), row(cols, bias), mat(rows, cols, g), mat(rows, cols, h), d)
}

func MeanHeads(t *kernels.Team, dst []float32, rows, heads, width int, x, bias []float32) {
	t.MeanHeads(mat(rows, width, dst), heads, mat(rows, heads*width, x), row(width, bias))
}

func MeanHeadsGrad(t *kernels.Team, dst []float32, rows, heads, width int, g []float32) {
	t.MeanHeadsGrad(mat(rows, heads*width, dst), heads, mat(rows, width, g))
}

func ColumnSums(t *kernels.Team, dst []float32, rows, cols int, g []float32, add bool) {
	t.ColumnSums(mat(1, cols, dst), mat(rows, cols, g), add)
}

func DropoutRows(t *kernels.Team, dst []float32, rows, cols int, x []float32, d *kernels.Dropout) {
	t.DropoutRows(mat(rows, cols, dst), mat(rows, cols, x), d)
}

func sparse(xs graph.SparseRows) kernels.Sparse {
	return kernels.Sparse{Offsets: vector(xs.Offsets), Cols: vector(xs.Cols), Vals: vector(xs.Vals), Source: xs}
}

func rowsOf(xs graph.SparseRows) int { return max(len(xs.Offsets)-1, 0) }

func SparseMatMul(t *kernels.Team, dst []float32, n int, xs graph.SparseRows, w []float32, d *kernels.Dropout) {
	t.SparseMatMul(mat(rowsOf(xs), n, dst), sparse(xs), wide(n, w), d)
}

// TransposeSparse returns the transpose of xs in memory of a.
func TransposeSparse(xs graph.SparseRows, cols int, a *mapped.Arena) *kernels.Transposed {
	team := kernels.NewTeam(1)
	defer team.Close()
	x := kernels.NewTransposed(team, a, sparse(xs), cols)
	x.Fill(team, sparse(xs))
	return x
}

func SparseMatMulTransA(t *kernels.Team, dst []float32, n int, xt *kernels.Transposed, g []float32, d *kernels.Dropout) {
	t.SparseMatMulTransA(mat(xt.Offsets.Len()-1, n, dst), xt, mat(xt.Count, n, g), d)
}

func SpMM(t *kernels.Team, dst []float32, width int, g kernels.Gather, x []float32, add bool) {
	t.SpMM(mat(g.Rows(), width, dst), g.Edges(), wide(width, x), add)
}

// SpMMHalf calls SpMM on an x that ends with kernels.HalfSlack extra elements.
func SpMMHalf(t *kernels.Team, dst []float32, width int, g kernels.Gather, x []kernels.BF16, add bool) {
	rows := max(len(x)-kernels.HalfSlack, 0) / max(width, 1)
	t.SpMM(mat(g.Rows(), width, dst), g.Edges(), kernels.HostHalf(rows, width, x), add)
}

func SoftmaxCrossEntropy(t *kernels.Team, grad []float32, rows, classes int, logits []float32, labels []int32, split []uint8, want uint8,
	scale float32) (float64, int64) {
	return t.SoftmaxCrossEntropy(mat(rows, classes, grad), mat(rows, classes, logits), vector(labels), vector(split), want, scale)
}

func Accuracy(t *kernels.Team, rows, classes int, logits []float32, labels []int32, split []uint8) (correct, total [4]int64) {
	return t.Accuracy(mat(rows, classes, logits), vector(labels), vector(split))
}

func Argmax(t *kernels.Team, dst []int32, rows, cols int, x []float32) {
	t.Argmax(vector(dst), mat(rows, cols, x))
}

func Softmax(t *kernels.Team, dst []float32, rows, cols int, x []float32) {
	t.Softmax(mat(rows, cols, dst), mat(rows, cols, x))
}

// AttentionRows contains emitted rows as slices.
type AttentionRows struct{ X, Scores []float32 }

func (x AttentionRows) emitted(a kernels.Attention) kernels.Emitted {
	return kernels.Emitted{X: wide(a.Emitted(), x.X), Scores: wide(a.Heads, x.Scores)}
}

// AttentionGrad contains the inputs of the backward pass for own vertices as slices.
type AttentionGrad struct{ R, LSE, Grad, Dots, Packed []float32 }

func (b AttentionGrad) attended(a kernels.Attention) kernels.Attended {
	return kernels.Attended{
		R: wide(a.ScoreWidth(), b.R), LSE: wide(a.Heads, b.LSE), Grad: wide(a.Columns(), b.Grad), Dots: wide(a.Heads, b.Dots),
		Packed: wide(3*a.Heads, b.Packed),
	}
}

func AttentionGather(t *kernels.Team, a kernels.Attention, dst, stats []float32, g kernels.Gather,
	x AttentionRows, r []float32, merge bool) {
	t.AttentionGather(a, wide(a.Columns(), dst), kernels.Mat{}, wide(2*a.Heads, stats), g.Edges(), x.emitted(a),
		wide(a.ScoreWidth(), r), merge)
}

func AttentionFinish(t *kernels.Team, a kernels.Attention, dst, lse []float32, rows int, stats []float32) {
	t.AttentionFinish(a, mat(rows, a.Columns(), dst), kernels.Mat{}, mat(rows, a.Heads, lse), mat(rows, 2*a.Heads, stats))
}

func RowDots(t *kernels.Team, dst []float32, rows, heads, width int, x, y []float32) {
	t.RowDots(mat(rows, heads, dst), mat(rows, heads*width, x), mat(rows, heads*width, y))
}

func AttentionGradDst(t *kernels.Team, a kernels.Attention, dr, along []float32, g kernels.Gather, x AttentionRows,
	back AttentionGrad, add bool) {
	t.AttentionGradDst(a, wide(a.ScoreWidth(), dr), wide(a.AlongWidth(), along), g.Edges(), x.emitted(a), back.attended(a), add)
}

// Signed contains the results of attention with signed sums as slices.
type Signed struct{ Out, Rows, LSE, Stats, Dots, DR []float32 }

// AttentionSigned computes the forward pass along two sets of edges, and the gradient of r.
func AttentionSigned(t *kernels.Team, a kernels.Attention, s Signed, g [2]kernels.Gather, x [2]AttentionRows, r, grad []float32) {
	out, rows, stats := wide(a.Columns(), s.Out), wide(a.Emitted(), s.Rows), wide(2*a.Heads, s.Stats)
	for i := range g {
		t.AttentionGather(a, out, rows, stats, g[i].Edges(), x[i].emitted(a), wide(a.Heads, r), i > 0)
	}
	t.AttentionFinish(a, out, rows, wide(a.Heads, s.LSE), stats)
	dots, up := wide(a.Heads, s.Dots), wide(a.Columns(), grad)
	t.RowDots(dots, up, out)
	t.AttentionGradSigned(a, wide(a.Heads, s.DR), rows, up, dots)
}

func AttentionGradSrc(t *kernels.Team, a kernels.Attention, dst []float32, g kernels.Gather, first, own int,
	x []float32, back AttentionGrad) {
	t.AttentionGradSrc(a, wide(a.Emitted(), dst), g.Edges(), first, own, wide(a.Emitted(), x), back.attended(a))
}

// NarrowRows rounds the rows of x [rows x cols], each times its scale, to the first columns of
// dst. Rows of dst are stride elements apart; with scales, stride must be cols.
func NarrowRows(t *kernels.Team, dst []kernels.BF16, stride, rows, cols int, x, scale []float32) {
	if scale == nil {
		t.PutColumns(kernels.HostHalf(rows, stride, dst), 0, mat(rows, cols, x))
		return
	}
	t.Narrow(kernels.HostHalf(rows, stride, dst), mat(rows, cols, x), vector(scale))
}
