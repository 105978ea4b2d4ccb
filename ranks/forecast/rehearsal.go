package forecast

import (
	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// rehearsal returns a function that runs the tensor work of an epoch, with the loss, on the first n
// vertices of a dataset or shard, to be timed. Memory comes from a.
func rehearsal(net model.Spec, x graph.Features, labels []int32, split []uint8, n int, team *kernels.Team, a *mapped.Arena) func() {
	ids := mapped.Make[uint32](a, n)
	for i := range ids {
		ids[i] = uint32(i)
	}
	first := graph.Features{Rows: n, Dim: x.Dim}
	switch s := x.Sparse; {
	case x.Half != nil:
		first.Half = x.Half[:n*x.Dim]
	case s != nil:
		first.Sparse = &graph.SparseRows{Offsets: s.Offsets[:n+1], Cols: s.Cols, Vals: s.Vals}
	default:
		first.Dense = x.Dense[:n*x.Dim]
	}
	r := model.NewRehearsal(net, model.Place(team, a, first, ids, ids), team, a)
	net.Initialize(r.Weights.Host(), "xavier", 1)
	classes, splits := kernels.HostVector(labels[:n]), kernels.HostVector(split[:n])
	return func() {
		r.Epoch(func() {
			team.SoftmaxCrossEntropy(r.LogitsGrad(), r.Logits(), classes, splits, graph.SplitTrain, 1)
			team.Accuracy(r.Logits(), classes, splits)
		})
	}
}
