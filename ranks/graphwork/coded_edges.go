package graphwork

import (
	"unsafe"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// CodedEdges is the purpose of the columns of edges in coded form.
const CodedEdges = "coded edges"

// Codes has the columns of a rank's edges in coded form. All Works of the rank share it.
type Codes struct {
	team  *kernels.Team // that encodes
	arena *mapped.Arena
	bits  float64 // per edge of a sketch
	coded map[codedRows]*kernels.CodedColumns
}

// codedRows identifies the rows of a sparse matrix in memory.
type codedRows struct{ begin, end, cols unsafe.Pointer }

// NewCodes returns Codes without columns, which will be valid as long as a. bits is the number of bits per
// edge if a is a sketch; team may then be nil.
func NewCodes(team *kernels.Team, a *mapped.Arena, bits float64) *Codes {
	return &Codes{team: team, arena: a.For(CodedEdges), bits: bits, coded: map[codedRows]*kernels.CodedColumns{}}
}

// code returns the columns of edges. count is the number of edges of a sketch.
func (c *Codes) code(e kernels.Edges, count int, forget func(cols []uint32)) *kernels.CodedColumns {
	name := codedRows{e.Begin.Address(), e.End.Address(), e.Cols.Address()}
	if c.coded[name] == nil {
		c.coded[name] = c.team.CodeColumns(c.arena, e, kernels.CodeOptions{Edges: count, Bits: c.bits, Forget: forget})
	}
	return c.coded[name]
}

// EstimateCodedBits returns the bits per edge of the coded columns of a shard, from a sample.
func EstimateCodedBits(s *shard.Shard) float64 {
	bits := 0.0
	for _, e := range []shard.Edges{s.OwnEdges(), s.GhostEdges()} {
		rows := kernels.Edges{Begin: kernels.HostVector(e.Begin), End: kernels.HostVector(e.End),
			Cols: kernels.HostVector(e.Cols), Base: uint32(e.Base)}
		bits += kernels.EstimateCodedBits(rows) * float64(e.Len())
	}
	s.ForgetColumns(s.In.Cols)
	return bits / float64(max(len(s.In.Cols), 1))
}

// codesColumns reports whether gathers may use coded columns: gathers of sums, without features of edges.
func (w *Work) codesColumns() bool {
	spec := &w.store.Network.Spec
	return w.codes != nil && spec.Adds() && spec.EdgeDim() == 0 && !w.ops.Remote()
}

// codeEdges replaces the columns of edges m, which are the columns e of a shard, by their code. Other
// columns, such as those of sums, and empty edges stay plain.
func (w *Work) codeEdges(s *shard.Shard, e shard.Edges, m *kernels.Edges) {
	if !w.codesColumns() || unsafe.SliceData(e.Cols) != unsafe.SliceData(s.In.Cols) ||
		unsafe.SliceData(e.Begin) == unsafe.SliceData(e.End) {
		return
	}
	m.Coded, m.Cols = w.codes.code(*m, e.Len(), s.ForgetColumns), kernels.Vector[uint32]{}
}

// transpose returns the reverse edges that reverse makes in an arena. If columns are coded, their plain
// form is temporary.
func (w *Work) transpose(purpose string, reverse func(a *mapped.Arena) *shard.Transposed) *transposed {
	to := w.arena.For(purpose)
	if !w.codesColumns() {
		return w.placeTransposed(reverse(to))
	}
	temporary := w.arena.Temporary()
	defer temporary.Free()
	plain := reverse(temporary)
	t, s := *plain, w.shard
	t.Ghost, t.GhostWeights = graph.CSR{Offsets: cloned(to, plain.Ghost.Offsets)}, w.clonedWeights(to, plain.GhostWeights)
	own := unsafe.SliceData(plain.OwnCols) != unsafe.SliceData(s.In.Cols)
	if own { // not the edges of s
		n := len(plain.OwnBegin)
		offsets := cloned(to, plain.OwnBegin[:n+1])
		t.OwnBegin, t.OwnEnd, t.OwnWeights = offsets[:n], offsets[1:], w.clonedWeights(to, plain.OwnWeights)
	}
	placed := w.placeTransposed(&t)
	if own {
		placed.own.Cols = kernels.HostVector(plain.OwnCols)
		placed.own.Coded = w.codes.code(placed.own, len(plain.OwnCols), nil)
	} else {
		placed.own.Coded = w.codes.code(placed.own, s.OwnEdges().Len(), s.ForgetColumns)
	}
	placed.own.Cols = kernels.Vector[uint32]{}
	rows := placed.ghost.edges(0, len(plain.Ghost.Offsets)-1)
	rows.Cols = kernels.HostVector(plain.Ghost.Cols)
	placed.ghost.coded = w.codes.code(rows, len(plain.Ghost.Cols), nil)
	return placed
}

func cloned[T mapped.Elem](a *mapped.Arena, x []T) []T {
	if x == nil {
		return nil
	}
	y := mapped.Make[T](a, len(x))
	a.Fill(func() { copy(y, x) })
	return y
}

// clonedWeights copies edge weights, if the network uses them.
func (w *Work) clonedWeights(a *mapped.Arena, weights []float32) []float32 {
	if !w.store.Network.Spec.Weighs() {
		return nil
	}
	return cloned(a, weights)
}
