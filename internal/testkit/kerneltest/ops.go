package kerneltest

import (
	"testing"

	"siafu/kernels"
)

// Suite is the conformance suite of the kernels on an Ops. Each method tests one kernel.
type Suite struct {
	open   func(team *kernels.Team) kernels.Ops
	direct bool // kernels use the slices of a case themselves
}

// Ops returns the suite for the Ops that open returns for each call. open may return the same one
// each time. The Ops may compute with team, which has one of the tested sizes and is closed
// afterwards.
func Ops(open func(team *kernels.Team) kernels.Ops) Suite { return Suite{open: open} }

// Teams returns the suite for teams that prepare configures. They compute on the slices of a case,
// which are aligned to 4 bytes only.
func Teams(prepare func(team *kernels.Team)) Suite {
	return Suite{direct: true, open: func(team *kernels.Team) kernels.Ops {
		prepare(team)
		return team
	}}
}

func (s Suite) newFixture(team *kernels.Team) *fixture {
	l := newFixture(s.open(team))
	l.direct = s.direct
	return l
}

// All tests all kernels of an Ops, and the functions that only an Ops has.
func (s Suite) All(t *testing.T) {
	for name, run := range map[string]func(*testing.T){
		"products": s.Products, "elements": s.elements, "norms": s.norms, "slopes": s.slopes, "largers": s.largers, "features": s.features,
		"gathers": s.gathers, "losses": s.losses,
		"attention": s.attention, "memory": s.memory, "rows": s.rows, "columns": s.columns, "optional": s.optional, "halves": s.halves,
		"scores": s.scores, "steps": s.steps,
	} {
		t.Run(name, run)
	}
}

// Products tests only dense products and their epilogues.
func (s Suite) Products(t *testing.T) {
	s.MatMul(t)
	s.MatMulTransA(t)
	s.MatMulTransB(t)
	s.MatMulBiasReLUDropout(t)
	s.BiasReLUDropout(t)
	s.BiasReLUDropoutGrad(t)
	s.BiasELUDropout(t)
	s.BiasELUDropoutGrad(t)
	s.ColumnSums(t)
	s.Add(t)
	s.MeanHeads(t)
	s.MeanHeadsGrad(t)
}

func (s Suite) features(t *testing.T) {
	s.DropoutRows(t)
	s.SparseMatMul(t)
	s.SparseToDense(t)
	s.SparseMatMulTransA(t)
}

func (s Suite) gathers(t *testing.T) {
	s.SpMM(t, false)
	s.SpMMHalf(t, false)
}

func (s Suite) losses(t *testing.T) {
	s.SoftmaxCrossEntropy(t)
	s.Accuracy(t)
	s.Argmax(t)
	s.Softmax(t)
}
