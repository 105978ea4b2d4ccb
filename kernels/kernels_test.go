package kernels_test

import (
	"testing"

	"siafu/internal/testkit/kerneltest"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// best is the suite on teams with the best instructions of this machine.
var best = kerneltest.Teams(func(*kernels.Team) {})

func TestSpMM(t *testing.T)                  { best.SpMM(t, false) }
func TestSpMMHalf(t *testing.T)              { best.SpMMHalf(t, false) }
func TestNarrowRows(t *testing.T)            { kerneltest.NarrowRows(t, flat.NarrowRows) }
func TestMatMul(t *testing.T)                { best.MatMul(t) }
func TestMatMulTransA(t *testing.T)          { best.MatMulTransA(t) }
func TestMatMulTransB(t *testing.T)          { best.MatMulTransB(t) }
func TestSparseMatMul(t *testing.T)          { best.SparseMatMul(t) }
func TestSparseMatMulTransA(t *testing.T)    { best.SparseMatMulTransA(t) }
func TestSparseToDense(t *testing.T)         { best.SparseToDense(t) }
func TestAdd(t *testing.T)                   { best.Add(t) }
func TestColumnSums(t *testing.T)            { best.ColumnSums(t) }
func TestDropoutRows(t *testing.T)           { best.DropoutRows(t) }
func TestBiasReLUDropout(t *testing.T)       { best.BiasReLUDropout(t) }
func TestMatMulBiasReLUDropout(t *testing.T) { best.MatMulBiasReLUDropout(t) }
func TestBiasReLUDropoutGrad(t *testing.T)   { best.BiasReLUDropoutGrad(t) }
func TestSoftmaxCrossEntropy(t *testing.T)   { best.SoftmaxCrossEntropy(t) }
func TestSoftmax(t *testing.T)               { best.Softmax(t) }
func TestAccuracy(t *testing.T)              { best.Accuracy(t) }
func TestArgmax(t *testing.T)                { best.Argmax(t) }

func TestOps(t *testing.T) {
	kerneltest.Ops(func(team *kernels.Team) kernels.Ops { return team }).All(t)
}
