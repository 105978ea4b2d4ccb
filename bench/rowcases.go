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
	return append([]kernelCase{
		epilogueCase(shape, rows, nil),
		epilogueCase(shape+" dropout", rows, drop),
		epilogueGradCase(shape, rows, nil),
		epilogueGradCase(shape+" dropout", rows, drop),
		{
			kernel: "ColumnSums", shape: shape, bytes: matrix,
			prepare: func(b *fixture) (prepared, error) {
				g, dst := b.mat(rows, hiddenWidth, 1), b.zeros(1, hiddenWidth)
				return prepared{call: func() { b.team.ColumnSums(dst, g, false) }}, nil
			},
		},
		lossCase(rows),
		adamCase(inputWidth * hiddenWidth),
	}, sparseCases(rows)...)
}

func epilogueCase(shape string, rows int, drop *kernels.Dropout) kernelCase {
	return kernelCase{
		kernel: "BiasReLUDropout", shape: shape, bytes: 2 * 4 * float64(rows) * hiddenWidth,
		prepare: func(b *fixture) (prepared, error) {
			z, bias, dst := b.mat(rows, hiddenWidth, 1), b.mat(1, hiddenWidth, 2), b.zeros(rows, hiddenWidth)
			return prepared{call: func() { b.team.BiasReLUDropout(dst, z, bias, true, drop) }}, nil
		},
	}
}

func epilogueGradCase(shape string, rows int, drop *kernels.Dropout) kernelCase {
	return kernelCase{
		kernel: "BiasReLUDropoutGrad", shape: shape, bytes: 3 * 4 * float64(rows) * hiddenWidth,
		prepare: func(b *fixture) (prepared, error) {
			g, h := b.mat(rows, hiddenWidth, 1), b.mat(rows, hiddenWidth, 2)
			dst, bias := b.zeros(rows, hiddenWidth), b.zeros(1, hiddenWidth)
			return prepared{call: func() { b.team.BiasReLUDropoutGrad(dst, bias, g, h, true, drop) }}, nil
		},
	}
}

// lossCase is the loss over all rows with its gradient.
func lossCase(rows int) kernelCase {
	return kernelCase{
		kernel: "SoftmaxCrossEntropy", shape: fmt.Sprintf("[%d x %d]", rows, classWidth),
		bytes: float64(rows) * (2*4*classWidth + 4 + 1),
		prepare: func(b *fixture) (prepared, error) {
			logits, grad := b.mat(rows, classWidth, 1), b.zeros(rows, classWidth)
			labels, split := mapped.Make[int32](b.arena, rows), mapped.Make[uint8](b.arena, rows)
			for i := range labels {
				labels[i], split[i] = int32(i%classWidth), graph.SplitTrain
			}
			return prepared{call: func() {
				b.team.SoftmaxCrossEntropy(grad, logits, kernels.HostVector(labels), kernels.HostVector(split), graph.SplitTrain, 1/float32(rows))
			}}, nil
		},
	}
}

// adamCase reads parameter, gradient and two moments and writes all but the
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
	line := kernelCase{
		shape: fmt.Sprintf("[%d x %d] 1 %% full, %d", rows, sparseCols, sparseWidth),
		edges: nnz, flops: 2 * nnz * sparseWidth,
	}
	product, gradient := line, line
	product.kernel, product.bytes = "SparseMatMul", 8*nnz+8*float64(rows)+dense
	product.prepare = func(b *fixture) (prepared, error) {
		x := sparseFeatures(b, rows)
		w, dst := b.mat(sparseCols, sparseWidth, 2), b.zeros(rows, sparseWidth)
		return prepared{call: func() { b.team.SparseMatMul(dst, x, w, nil) }}, nil
	}
	gradient.kernel, gradient.bytes = "SparseMatMulTransA", 8*nnz+8*sparseCols+dense
	gradient.prepare = func(b *fixture) (prepared, error) {
		x := sparseFeatures(b, rows)
		xt := kernels.NewTransposed(b.team, b.arena, x, sparseCols)
		xt.Fill(b.team, x)
		g, dst := b.mat(rows, sparseWidth, 2), b.zeros(sparseCols, sparseWidth)
		return prepared{call: func() { b.team.SparseMatMulTransA(dst, xt, g, nil) }}, nil
	}
	return []kernelCase{product, gradient}
}

func sparseFeatures(b *fixture, rows int) kernels.Sparse {
	offsets := mapped.Make[int64](b.arena, rows+1)
	for r := range offsets {
		offsets[r] = int64(r) * sparsePerRow
	}
	n := rows * sparsePerRow
	return kernels.PlaceSparse(b.team, b.arena, graph.SparseRows{Offsets: offsets, Cols: b.ids(n, sparseCols, 6), Vals: b.floats(n, 7)})
}
