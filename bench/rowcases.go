package bench

import (
	"fmt"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
)

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
	return kernelCase{kernel: kernel, shape: shape, bytes: bytes, prepare: func(b *fixture) (prepared, error) {
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
	return pass("SoftmaxCrossEntropy", fmt.Sprintf("[%d x %d]", rows, classWidth), float64(rows)*(2*4*classWidth+4+1), func(b *fixture) func() {
		logits, grad := b.mat(rows, classWidth, 1), b.zeros(rows, classWidth)
		labels, split := mapped.Make[int32](b.arena, rows), mapped.Make[uint8](b.arena, rows)
		for i := range labels {
			labels[i], split[i] = int32(i%classWidth), graph.SplitTrain
		}
		return func() {
			b.team.SoftmaxCrossEntropy(grad, logits, kernels.HostVector(labels), kernels.HostVector(split), graph.SplitTrain, 1/float32(rows))
		}
	})
}

// adamCase reads the parameter, the gradient and two moments. It writes all of them except the
// gradient.
func adamCase(weights int) kernelCase {
	return kernelCase{
		kernel: "Adam", shape: fmt.Sprintf("%d weights", weights), bytes: 7 * 4 * float64(weights),
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
	offsets := mapped.Make[int64](b.arena, rows+1)
	for r := range offsets {
		offsets[r] = int64(r) * sparsePerRow
	}
	n := rows * sparsePerRow
	return kernels.PlaceSparse(b.team, b.arena, graph.SparseRows{Offsets: offsets, Cols: b.ids(n, sparseCols, 6), Vals: b.floats(n, 7)})
}
