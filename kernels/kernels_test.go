package kernels_test

import (
	"testing"

	"siafu/kernels"
	"siafu/kernels/kerneltest"
)

func TestSpMM(t *testing.T)         { kerneltest.SpMM(t, kernels.SpMM) }
func TestSpMMHalf(t *testing.T)     { kerneltest.SpMMHalf(t, kernels.SpMMHalf) }
func TestNarrowRows(t *testing.T)   { kerneltest.NarrowRows(t, kernels.NarrowRows) }
func TestMatMul(t *testing.T)       { kerneltest.MatMul(t, kernels.MatMul) }
func TestMatMulTransA(t *testing.T) { kerneltest.MatMulTransA(t, kernels.MatMulTransA) }
func TestMatMulTransB(t *testing.T) { kerneltest.MatMulTransB(t, kernels.MatMulTransB) }
func TestSparseMatMul(t *testing.T) { kerneltest.SparseMatMul(t, kernels.SparseMatMul) }
func TestSparseMatMulTransA(t *testing.T) {
	kerneltest.SparseMatMulTransA(t, kernels.SparseMatMulTransA)
}
func TestSparseToDense(t *testing.T)   { kerneltest.SparseToDense(t, kernels.SparseToDense) }
func TestAdd(t *testing.T)             { kerneltest.Add(t, kernels.Add) }
func TestColumnSums(t *testing.T)      { kerneltest.ColumnSums(t, kernels.ColumnSums) }
func TestDropoutRows(t *testing.T)     { kerneltest.DropoutRows(t, kernels.DropoutRows) }
func TestBiasReLUDropout(t *testing.T) { kerneltest.BiasReLUDropout(t, kernels.BiasReLUDropout) }
func TestMatMulBiasReLUDropout(t *testing.T) {
	kerneltest.MatMulBiasReLUDropout(t, kernels.MatMulBiasReLUDropout)
}
func TestBiasReLUDropoutGrad(t *testing.T) {
	kerneltest.BiasReLUDropoutGrad(t, kernels.BiasReLUDropoutGrad)
}
func TestSoftmaxCrossEntropy(t *testing.T) {
	kerneltest.SoftmaxCrossEntropy(t, kernels.SoftmaxCrossEntropy)
}
func TestSoftmax(t *testing.T)  { kerneltest.Softmax(t, kernels.Softmax) }
func TestAccuracy(t *testing.T) { kerneltest.Accuracy(t, kernels.Accuracy) }
func TestArgmax(t *testing.T)   { kerneltest.Argmax(t, kernels.Argmax) }

func TestOps(t *testing.T) {
	kerneltest.Ops(t, func(team *kernels.Team) kernels.Ops { return team })
}
