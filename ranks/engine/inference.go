package engine

import (
	"siafu/graph/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// Inference is what a network says of the own vertices of a rank.
type Inference struct {
	t     *trainer
	found findings // of all ranks
}

// Infer runs the network with these weights once over every vertex. Collective
// over the graph ranks.
func (e *Engine) Infer(weights []float32) (*Inference, error) {
	t := e.trainer(nil, nil) // nothing is trained
	copy(t.flat, weights)
	if err := t.forward(model.Pass{}, true); err != nil {
		return nil, err
	}
	found, err := t.score()
	return &Inference{t, found}, err
}

// Accuracies are those on the vertices of all ranks, 0 where a split is empty.
func (i *Inference) Accuracies() (train, val, test float64) {
	return i.found.accuracy(0), i.found.accuracy(1), i.found.accuracy(2)
}

// Classes are the likeliest class of each own vertex [own], and the
// probabilities of all [own x classes], which take the place of the logits:
// Classes is called once.
func (i *Inference) Classes() (class []int32, probabilities []float32) {
	t, logits := i.t.workers.teams[0], i.t.logits()
	own, classes := i.t.own, i.t.shard.Classes
	class = make([]int32, own)
	kernels.Argmax(t, class, own, classes, logits)
	kernels.Softmax(t, logits, own, classes, logits)
	return class, logits
}

// Embeddings are the input of the last layer [own x its width].
func (i *Inference) Embeddings() []float32 { return i.t.embeddings() }

// logits are what the last forward pass has made [own x classes].
func (t *trainer) logits() []float32 { return t.intervals[0].logits[:t.own*t.shard.Classes] }

// embeddings are the input of the last layer [own x its width] in the last
// forward pass.
func (t *trainer) embeddings() []float32 {
	if first := t.intervals[0].last; first != nil {
		return first[:t.own*t.net.Dims[t.net.Layers()-1]]
	}
	width := t.net.Dims[0]
	rows := mapped.Make[float32](t.arena, t.own*width)
	for _, i := range t.intervals {
		copy(i.part(rows, width), i.net.InputRows(t.arena))
	}
	return rows
}
