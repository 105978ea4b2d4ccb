package pipeline

// Done counts, by operation, the microbatches for which a stage has completed it in a step. Microbatches are
// completed in ascending order. Reduce and Apply count 1. The zero Done is the begin of a step.
type Done [operations]int

// Protected returns what the rank of a shadow has of a lost successor: its redundant passes and the
// gradients that they received. The lost rank's own gradients are lost with it.
func (d Done) Protected() (lost Done) {
	lost[Forward], lost[Backward], lost[ReceiveGradients] = d[RedundantForward], d[RedundantBackward], d[ReceiveRedundantGradients]
	return lost
}
