package kernels_test

import (
	"testing"

	"siafu/kernels"
	"siafu/kernels/kerneltest"
	"siafu/kernels/kerneltest/flat"
)

func TestSpMM(t *testing.T)         { kerneltest.SpMM(t, false, flat.SpMM) }
func TestSpMMHalf(t *testing.T)     { kerneltest.SpMMHalf(t, false, flat.SpMMHalf) }
func TestNarrowRows(t *testing.T)   { kerneltest.NarrowRows(t, flat.NarrowRows) }
func TestMatMul(t *testing.T)       { kerneltest.MatMul(t, flat.MatMul) }
func TestMatMulTransA(t *testing.T) { kerneltest.MatMulTransA(t, flat.MatMulTransA) }
func TestMatMulTransB(t *testing.T) { kerneltest.MatMulTransB(t, flat.MatMulTransB) }
func TestSparseMatMul(t *testing.T) { kerneltest.SparseMatMul(t, flat.SparseMatMul) }
func TestSparseMatMulTransA(t *testing.T) {
	kerneltest.SparseMatMulTransA(t, flat.SparseMatMulTransA)
}
func TestSparseToDense(t *testing.T)   { kerneltest.SparseToDense(t, flat.SparseToDense) }
func TestAdd(t *testing.T)             { kerneltest.Add(t, flat.Add) }
func TestColumnSums(t *testing.T)      { kerneltest.ColumnSums(t, flat.ColumnSums) }
func TestDropoutRows(t *testing.T)     { kerneltest.DropoutRows(t, flat.DropoutRows) }
func TestBiasReLUDropout(t *testing.T) { kerneltest.BiasReLUDropout(t, flat.BiasReLUDropout) }
func TestMatMulBiasReLUDropout(t *testing.T) {
	kerneltest.MatMulBiasReLUDropout(t, flat.MatMulBiasReLUDropout)
}
func TestBiasReLUDropoutGrad(t *testing.T) {
	kerneltest.BiasReLUDropoutGrad(t, flat.BiasReLUDropoutGrad)
}
func TestSoftmaxCrossEntropy(t *testing.T) {
	kerneltest.SoftmaxCrossEntropy(t, flat.SoftmaxCrossEntropy)
}
func TestSoftmax(t *testing.T)  { kerneltest.Softmax(t, flat.Softmax) }
func TestAccuracy(t *testing.T) { kerneltest.Accuracy(t, flat.Accuracy) }
func TestArgmax(t *testing.T)   { kerneltest.Argmax(t, flat.Argmax) }

func TestOps(t *testing.T) {
	kerneltest.Ops(t, func(team *kernels.Team) kernels.Ops { return team })
}
