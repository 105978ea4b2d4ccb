package pytorch

import (
	"slices"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/safetensors"
	"siafu/kernels/model"
)

// suits returns a fault if the layers of PyTorch Geometric with these weights compute other logits than
// the network s, on the graph m or at all: tensors have the same names and shapes for other formulas.
func suits(path string, list []safetensors.Tensor, s model.Spec, m *graph.Meta) error {
	k := model.KindOf(s.Kind)
	refuse := func(format string, args ...any) *fault.Error {
		return fault.New(fault.Data, "init", path, format, args...)
	}
	const own = "or give the tensors siafu's names if the network was trained with siafu's formula (docs/weights.md)"
	normalised := k.SelfLoops() && !k.PlainSum // by gcn_norm
	combined := slices.ContainsFunc(list, func(t safetensors.Tensor) bool { return strings.HasSuffix("."+t.Name, ".comp") })
	switch {
	case k.Relational && combined && s.Design.Bases == 0:
		return refuse("its matrices of relations are sums of bases, but the network has independent ones").
			Then("train with --model bases=N")
	case k.PlainSum && slices.ContainsFunc(list, isBasicGNN) &&
		(s.Design.Activation != "" && s.Design.Activation != "relu" || s.Design.Norm != ""):
		return refuse("PyTorch Geometric's GIN repeats the activation and the normalisation inside each " +
			"perceptron, siafu's has ReLU alone").
			Then("train a GIN with relu and without normalisation")
	case m == nil || !k.Propagates():
	case m.Repeated > 0 && !k.Maximum && !(normalised && m.Weighted): // gcn_norm adds up the weights, too
		return refuse("%d repeated edges of %s were merged, which PyTorch Geometric's layers gather again: the logits differ",
			m.Repeated, m.Name).
			Then("coalesce the edges before training in PyTorch, " + own)
	case k.Attends:
	case normalised && m.Directed:
		return refuse("on the directed graph %s PyTorch Geometric's gcn_norm divides by in-degrees at both ends of an edge, siafu's %s by "+
			"the out-degree of the source: the logits differ", m.Name, s.Kind).
			Then("import the graph with --symmetrise, " + own)
	case normalised && m.Weighted && m.SelfLoops > 0:
		return refuse("%d self loops of %s were dropped, which keep their weights in PyTorch Geometric's gcn_norm and have weight 1 in "+
			"siafu: the logits differ", m.SelfLoops, m.Name).
			Then("remove the self loops before training in PyTorch, " + own)
	case !normalised && m.SelfLoops > 0:
		return refuse("%d self loops of %s were dropped, which PyTorch Geometric's layers gather like other edges: the logits differ",
			m.SelfLoops, m.Name).
			Then("remove the self loops before training in PyTorch, " + own)
	case !normalised && m.Weighted && s.Weighs():
		return refuse("PyTorch Geometric's layers ignore the edge weights of %s, siafu's %s uses them: the logits differ", m.Name, s.Kind).
			Then("import the graph with --drop-weights, " + own)
	}
	return nil
}

// isBasicGNN reports whether a tensor is of a perceptron of PyTorch Geometric's class GIN.
func isBasicGNN(t safetensors.Tensor) bool { return strings.Contains("."+t.Name, ".nn.lins.") }
