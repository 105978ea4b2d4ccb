package engine

import (
	"slices"

	"siafu/graph"
	"siafu/internal/elementary"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/objective"
)

// Inference is the output of a network for the own vertices of a rank.
type Inference struct {
	t     *trainer
	found findings // of all ranks
}

// Infer applies the network with the given weights to every vertex. Collective over the
// graph ranks.
func (e *Engine) Infer(weights []float32) (*Inference, error) {
	t, err := e.trainer(nil, nil, model.Forward) // no training
	if err != nil {
		return nil, err
	}
	copy(t.flat, weights)
	t.loadWeights()
	if err := t.forward(model.Pass{}, true); err != nil {
		return nil, err
	}
	found, _, err := t.sumResults(0, t.localFindings(t.intervals), requests{})
	return &Inference{t, found}, err
}

// Accuracies returns the accuracies over the vertices of all ranks, 0 for an empty split.
func (i *Inference) Accuracies() (train, val, test float64) {
	return i.found.accuracy(0), i.found.accuracy(1), i.found.accuracy(2)
}

// Metrics returns the metrics over the vertices of all ranks by split, on rank 0. Call it
// before Classes. Collective over the graph ranks.
func (i *Inference) Metrics() ([]objective.Metrics, error) {
	return i.t.computeMetrics(allMetrics, graph.SplitTrain, graph.SplitVal, graph.SplitTest)
}

// Classes returns the most probable class of each own vertex [own], and the probabilities
// of all classes [own x classes]. The probabilities overwrite the logits: call Classes
// once.
func (i *Inference) Classes() (class []int32, probabilities []float32) {
	ops, logits := i.t.workers.teams[0], i.t.logits()
	columns := kernels.NewVector[int32](ops, i.t.engine.Arena, i.t.store.Rows)
	ops.Argmax(columns, logits)
	ops.Softmax(logits, logits)
	return kernels.FetchVector(ops, columns), kernels.Fetch(ops, logits, new([]float32))
}

// Labels returns the predicted labels of each own vertex, 1 or 0, and the probabilities of the
// labels. Both are [own x labels].
func (i *Inference) Labels() (labels []uint8, probabilities []float32) {
	probabilities = i.Logits()
	labels = make([]uint8, len(probabilities))
	for k, z := range probabilities {
		if objective.Says(z) {
			labels[k] = 1
		}
		probabilities[k] = float32(1 / (1 + elementary.Exp(-float64(z))))
	}
	return labels, probabilities
}

// Logits returns the output of each own vertex [own x classes]. Call it before Classes.
func (i *Inference) Logits() []float32 {
	return slices.Clone(kernels.Fetch(i.t.workers.teams[0], i.t.logits(), new([]float32)))
}

// Values returns the predicted numbers of each own vertex [own x columns] in the targets' units.
func (i *Inference) Values() []float32 {
	return graph.UnscaleTargets(i.Logits(), i.t.engine.Meta.TargetScaling)
}

// Embeddings returns the input of the output layer [own x its width].
func (i *Inference) Embeddings() []float32 { return i.t.embeddings() }

// logits returns the output of the last forward pass [own x classes].
func (t *trainer) logits() kernels.Mat { return t.store.Forward(t.net.Layers()-1, model.Output) }

// embeddings returns the input of the last layer [own x its width] in the last forward pass.
func (t *trainer) embeddings() []float32 {
	if top := t.net.Top(); top > 0 {
		return kernels.Fetch(t.adder, t.store.Forward(top, model.Input), new([]float32))
	}
	rows := kernels.NewMat(t.adder, t.engine.Arena, t.store.Rows, t.net.Dims[0])
	for _, i := range t.intervals {
		i.frame.InputColumns(i.part(rows), 0, t.adder)
	}
	return kernels.Fetch(t.adder, rows, new([]float32))
}
