package bench

import (
	"context"
	"fmt"

	"siafu/bench/yardstick"
	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// kernelCase is a line of the table of kernels. Bytes is the minimum traffic of a call: every
// operand and every result once.
type kernelCase struct {
	work
	prepare func(b *fixture) (prepared, error)
	product product // of dense products
}

// product is dst [m x n] of sums of k terms.
type product struct {
	form    yardstick.Form
	m, n, k int
}

// prepared is a kernel with its operands.
type prepared struct {
	call   func()
	result []float32
	// references starts the references; nil without a yardstick.
	references func(ctx context.Context, runner *yardstick.Runner) ([]*yardstick.Reference, error)
	// terms is the number of products in an element of the result, for the tolerance of a
	// comparison.
	terms int
}

// The shapes of layers on citation graphs and on Reddit (Hamilton et al. 2017):
// 602 features, 41 classes, 128 hidden units.
const (
	inputWidth, hiddenWidth, classWidth = 602, 128, 41
	randomDegree                        = 25
)

func gatherWidths() []int { return []int{16, classWidth, 64, hiddenWidth} }

// kernelCases returns the lines of the table at the given number of vertices, and gathers on
// the given datasets.
func kernelCases(vertices int, data []*graph.Dataset) []kernelCase {
	var cases []kernelCase
	for _, w := range gatherWidths() {
		cases = append(cases, gatherCase("uniform", vertices, vertices*randomDegree, w, func(b *fixture) kernels.Gather {
			return gatherOf(b, b.regular(vertices, randomDegree), b.ids(vertices*randomDegree, vertices, 1))
		}))
	}
	for _, d := range data {
		for _, w := range gatherWidths() {
			cases = append(cases, gatherCase(d.Meta.Name, d.In.Rows(), len(d.In.Cols), w, func(b *fixture) kernels.Gather {
				return datasetGraph(b, d)
			}))
		}
	}
	cases = append(cases, productCases(vertices)...)
	return append(cases, rowCases(vertices)...)
}

// gatherCase returns a gather with a scale for every row and column, as in GCN.
func gatherCase(name string, vertices, edges, width int, build func(b *fixture) kernels.Gather) kernelCase {
	return kernelCase{
		work: work{kernel: "SpMM", shape: fmt.Sprintf("%s %d x %d", name, vertices, width),
			edges: float64(edges), flops: 2 * float64(edges*width), bytes: 4*float64(edges) + float64(vertices)*(8+8+8*float64(width))},
		prepare: func(b *fixture) (prepared, error) {
			g := build(b)
			x, dst := b.floats(vertices*width, 3), b.zeros(vertices, width)
			rows := kernels.HostMat(vertices, width, x)
			return prepared{
				call:   func() { b.team.SpMM(dst, g.Edges(), rows, false) },
				result: dst.Host(), terms: maxDegree(g),
				references: func(ctx context.Context, runner *yardstick.Runner) ([]*yardstick.Reference, error) {
					return runner.SpMM(ctx, g, x, width, b.team.Workers())
				},
			}, nil
		},
	}
}

// datasetGraph copies the in-edges of d into the same kind of memory as other operands.
func datasetGraph(b *fixture, d *graph.Dataset) kernels.Gather {
	offsets := mapped.Make[int64](b.arena, len(d.In.Offsets))
	cols := mapped.Make[uint32](b.arena, len(d.In.Cols))
	copy(offsets, d.In.Offsets)
	copy(cols, d.In.Cols)
	return gatherOf(b, offsets, cols)
}

func gatherOf(b *fixture, offsets []int64, cols []uint32) kernels.Gather {
	n := len(offsets) - 1
	return kernels.Gather{
		Begin: offsets[:n], End: offsets[1:], Cols: cols,
		RowScale: b.floats(n, 4), ColScale: b.floats(n, 5),
	}
}

// maxDegree returns the length of the longest row.
func maxDegree(g kernels.Gather) int {
	longest := int64(0)
	for r, begin := range g.Begin {
		longest = max(longest, g.End[r]-begin)
	}
	return int(longest)
}

// productCases returns the dense products of a layer H [rows x in] W [in x out] and its two
// gradients.
func productCases(rows int) []kernelCase {
	var cases []kernelCase
	for _, s := range [][2]int{{inputWidth, hiddenWidth}, {hiddenWidth, hiddenWidth}, {hiddenWidth, classWidth}} {
		in, out := s[0], s[1]
		cases = append(cases,
			productCase("MatMul", yardstick.Plain, rows, out, in),
			productCase("MatMulTransB", yardstick.TransB, rows, in, out),
			productCase("MatMulTransA", yardstick.TransA, in, out, rows))
	}
	return cases
}

// productCase returns the product dst[m x n] with sums over k.
func productCase(kernel string, form yardstick.Form, m, n, k int) kernelCase {
	return kernelCase{
		work: work{kernel: kernel, shape: productShape(form, m, n, k), flops: 2 * float64(m) * float64(n) * float64(k),
			bytes: 4 * (float64(m)*float64(k) + float64(k)*float64(n) + float64(m)*float64(n))},
		product: product{form, m, n, k},
		prepare: func(b *fixture) (prepared, error) {
			x, y, dst := b.floats(m*k, 1), b.floats(k*n, 2), b.zeros(m, n)
			mat := kernels.HostMat
			return prepared{
				call: map[yardstick.Form]func(){
					yardstick.Plain:  func() { b.team.MatMul(dst, mat(m, k, x), mat(k, n, y), false) },
					yardstick.TransB: func() { b.team.MatMulTransB(dst, mat(m, k, x), mat(n, k, y), false) },
					yardstick.TransA: func() { b.team.MatMulTransA(dst, mat(k, m, x), mat(k, n, y), false) },
				}[form],
				result: dst.Host(), terms: k,
				references: func(ctx context.Context, runner *yardstick.Runner) ([]*yardstick.Reference, error) {
					return runner.SGEMM(ctx, form, m, n, k, x, y, b.team.Workers())
				},
			}, nil
		},
	}
}

func productShape(form yardstick.Form, m, n, k int) string {
	switch form {
	case yardstick.TransB:
		return fmt.Sprintf("[%d x %d] [%d x %d]ᵀ", m, k, n, k)
	case yardstick.TransA:
		return fmt.Sprintf("[%d x %d]ᵀ [%d x %d]", k, m, k, n)
	}
	return fmt.Sprintf("[%d x %d] [%d x %d]", m, k, k, n)
}

// rowCases returns the kernels with one pass over the rows of a layer, the optimiser, and the
// products with sparse features.
func rowCases(rows int) []kernelCase {
	matrix := 4 * float64(rows) * hiddenWidth
	shape := fmt.Sprintf("[%d x %d]", rows, hiddenWidth)
	drop := &kernels.Dropout{Seed: 1, P: 0.5}
	cases := []kernelCase{
		epilogueCase(shape, rows, nil),
		epilogueCase(shape+" dropout", rows, drop),
		epilogueGradCase(shape, rows, nil),
		epilogueGradCase(shape+" dropout", rows, drop),
		pass("ColumnSums", shape, matrix, func(b *fixture) func() {
			g, dst := b.mat(rows, hiddenWidth, 1), b.zeros(1, hiddenWidth)
			return func() { b.team.ColumnSums(dst, g, false) }
		}),
		lossCase(rows),
		adamCase(inputWidth * hiddenWidth),
	}
	return append(cases, sparseCases(rows)...)
}

// pass returns a case without gathers and yardsticks. prepare allocates its operands and returns
// the call to measure.
func pass(kernel, shape string, bytes float64, prepare func(b *fixture) func()) kernelCase {
	return kernelCase{work: work{kernel: kernel, shape: shape, bytes: bytes}, prepare: func(b *fixture) (prepared, error) {
		return prepared{call: prepare(b)}, nil
	}}
}

func epilogueCase(shape string, rows int, drop *kernels.Dropout) kernelCase {
	return pass("BiasReLUDropout", shape, 2*4*float64(rows)*hiddenWidth, func(b *fixture) func() {
		z, bias, dst := b.mat(rows, hiddenWidth, 1), b.mat(1, hiddenWidth, 2), b.zeros(rows, hiddenWidth)
		return func() { b.team.BiasReLUDropout(dst, z, bias, true, drop) }
	})
}

func epilogueGradCase(shape string, rows int, drop *kernels.Dropout) kernelCase {
	return pass("BiasReLUDropoutGrad", shape, 3*4*float64(rows)*hiddenWidth, func(b *fixture) func() {
		g, h := b.mat(rows, hiddenWidth, 1), b.mat(rows, hiddenWidth, 2)
		dst, bias := b.zeros(rows, hiddenWidth), b.zeros(1, hiddenWidth)
		return func() { b.team.BiasReLUDropoutGrad(dst, bias, g, h, true, drop) }
	})
}

// lossCase returns the loss over all rows with its gradient.
func lossCase(rows int) kernelCase {
	return pass("SoftmaxCrossEntropy", fmt.Sprintf("[%d x %d]", rows, classWidth),
		float64(rows)*(2*4*classWidth+4+1), func(b *fixture) func() {
			logits, grad := b.mat(rows, classWidth, 1), b.zeros(rows, classWidth)
			labels, split := mapped.Make[int32](b.arena, rows), mapped.Make[uint8](b.arena, rows)
			for i := range labels {
				labels[i], split[i] = int32(i%classWidth), graph.SplitTrain
			}
			return func() {
				b.team.SoftmaxCrossEntropy(grad, logits, kernels.HostVector(labels), kernels.HostVector(split),
					graph.SplitTrain, 1/float32(rows))
			}
		})
}

// adamCase reads the parameter, the gradient and two moments. It writes all of them except the
// gradient.
func adamCase(weights int) kernelCase {
	return kernelCase{
		work: work{kernel: "Adam", shape: fmt.Sprintf("%d weights", weights), bytes: 7 * 4 * float64(weights)},
		prepare: func(b *fixture) (prepared, error) {
			adam, err := kernels.NewOptimizer(kernels.OptimizerConfig{Name: "adam", LR: 0.01, WeightDecay: 5e-4})
			if err != nil {
				return prepared{}, err
			}
			w, g := b.floats(weights, 1), b.floats(weights, 2)
			state := [][]float32{mapped.Make[float32](b.arena, weights), mapped.Make[float32](b.arena, weights)}
			step := 0
			return prepared{call: func() { step++; adam.Step(step, w, g, state, true) }}, nil
		},
	}
}

// Bag-of-words features like coauthor-cs's: 1 % non-zeros.
const (
	sparseCols, sparsePerRow = 1400, 14
	sparseWidth              = 64
)

// sparseCases returns the products with sparse features X, and with Xᵀ.
func sparseCases(rows int) []kernelCase {
	nnz := float64(rows * sparsePerRow)
	dense := 4 * sparseWidth * float64(rows+sparseCols)
	shape := fmt.Sprintf("[%d x %d] 1 %% full, %d", rows, sparseCols, sparseWidth)
	cases := []kernelCase{
		pass("SparseMatMul", shape, 8*nnz+8*float64(rows)+dense, func(b *fixture) func() {
			x := sparseFeatures(b, rows)
			w, dst := b.mat(sparseCols, sparseWidth, 2), b.zeros(rows, sparseWidth)
			return func() { b.team.SparseMatMul(dst, x, w, nil) }
		}),
		pass("SparseMatMulTransA", shape, 8*nnz+8*sparseCols+dense, func(b *fixture) func() {
			x := sparseFeatures(b, rows)
			xt := kernels.NewTransposed(b.team, b.arena, x, sparseCols)
			xt.Fill(b.team, x)
			g, dst := b.mat(rows, sparseWidth, 2), b.zeros(sparseCols, sparseWidth)
			return func() { b.team.SparseMatMulTransA(dst, xt, g, nil) }
		}),
	}
	for i := range cases {
		cases[i].edges, cases[i].flops = nnz, 2*nnz*sparseWidth
	}
	return cases
}

func sparseFeatures(b *fixture, rows int) kernels.Sparse {
	n := rows * sparsePerRow
	return kernels.PlaceSparse(b.team, b.arena,
		graph.SparseRows{Offsets: b.regular(rows, sparsePerRow), Cols: b.ids(n, sparseCols, 6), Vals: b.floats(n, 7)})
}
