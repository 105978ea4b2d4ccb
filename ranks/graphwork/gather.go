package graphwork

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// Gather computes a layer's gathers and their gradients: sums, attention or maxima.
type Gather interface {
	// Begin begins a pass, before the first Publish. weights are the weights of its GhostGrads, unless
	// intervals publish their own.
	Begin(p model.Pass, weights kernels.Mat)
	// Publish prepares an interval's emitted rows [n x Width] for gathering. Layer.Rows contains them
	// now or later, unless the layer gathers lists.
	Publish(i Interval, rows kernels.Mat)
	// PublishGhosts prepares the rows in Layer.Ghosts of count ghosts for gathering.
	PublishGhosts(o kernels.Ops, first, count int)
	// PublishGrads prepares the gradients of an interval's gathered rows [n x GradWidth] for the
	// backward pass. Layer.Grads contains them now or later.
	PublishGrads(i Interval, grads kernels.Mat)
	// GatherOwn computes the interval's rows of Â times Layer.Rows and Layer.Ghosts, first along the
	// edges from own vertices and self loops.
	GatherOwn(i Interval, p model.Pass)
	// GatherGhosts completes the rows of GatherOwn along the edges from ghosts.
	GatherGhosts(i Interval, p model.Pass)
	// GhostGrads sets dst [n x Width] to the gradients of ghosts, from first on, along edges into own
	// vertices.
	GhostGrads(o kernels.Ops, first int, dst kernels.Mat)
	// GatherBackward computes the interval's rows of Âᵀ times Layer.Grads along own edges and self
	// loops. Layer.AddSums adds the contributions of other ranks.
	GatherBackward(i Interval, p model.Pass)
}
