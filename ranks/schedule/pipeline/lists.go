package pipeline

// Of returns the instructions of a stage for one step, in their order.
//
// A stage begins with InFlight-1 forward passes. Then each forward pass is followed by the backward pass of
// the oldest microbatch, and the remaining backward passes end the step. With GPipe, this is: all forward
// passes first.
func (s Settings) Of(stage int) []Instruction {
	l := &lister{Settings: s, stage: stage}
	l.redundant = s.Stages > 1 && s.Redundancy >= EagerForward
	early := s.InFlight(stage) - 1
	for k := range s.Microbatches {
		l.forward(k)
		if k >= early {
			l.backward(k - early)
		}
	}
	for k := s.Microbatches - early; k < s.Microbatches; k++ {
		l.backward(k)
	}
	l.finish()
	return l.list
}

// lister collects the list of a stage.
//
// Invariants: protected <= spare: only microbatches whose input is here have a redundant forward pass.
// repeated <= protected.
type lister struct {
	Settings
	stage     int
	list      []Instruction
	redundant bool // eager redundant work
	forwards  int  // own forward passes in the list
	backwards int
	protected int // microbatches with a redundant forward pass
	repeated  int // microbatches with a redundant backward pass
}

func (l *lister) add(op Op, stage, microbatch, peer int) {
	l.list = append(l.list, Instruction{op, stage, microbatch, peer})
}

func (l *lister) last() bool { return l.stage == l.Stages-1 }

func (l *lister) forward(k int) {
	if l.last() {
		// The last stage reads the samples of stage 0 itself. It fills the time until the first activations
		// arrive, P-1 forward passes, and then protects a microbatch in each wait.
		l.protect(min(k+l.Stages-1, l.Microbatches))
		l.repeat(min(k-l.Stages+1, l.backwards, l.protected))
	}
	if l.stage > 0 {
		l.add(ReceiveActivations, l.stage, k, l.stage-1)
	}
	l.add(Forward, l.stage, k, None)
	if !l.last() {
		l.add(SendActivations, l.stage, k, l.stage+1)
	}
	l.forwards++
}

func (l *lister) backward(k int) {
	if !l.last() {
		l.beforeSuccessor(k)
		l.add(ReceiveGradients, l.stage, k, l.stage+1)
	}
	l.add(Backward, l.stage, k, None)
	if l.stage > 0 {
		l.add(SendGradients, l.stage, k, l.stage-1)
		if protected := l.stage - 1; l.redundant && l.Redundancy == EagerForwardBackward && l.Shadow(protected) != l.stage {
			l.add(SendRedundantGradients, protected, k, l.Shadow(protected))
		}
	}
	l.backwards++
}

// beforeSuccessor adds the redundant work in the wait for the gradients of microbatch k: "we schedule FRC
// on a node before the node starts communicating with its successor node" (§3.5.2). The forward pass
// before was that of the newest microbatch, so the redundant one is that of the previous microbatch. At
// the end of the step no forward pass is left, and all microbatches are due.
func (l *lister) beforeSuccessor(k int) {
	due := l.forwards - 1
	if k == l.Microbatches-1 || l.forwards == l.Microbatches && l.list[len(l.list)-1].Op != SendActivations {
		due = l.forwards
	}
	l.protect(due)
	l.repeat(min(k+1, l.protected))
}

// protect adds redundant forward passes until the first n microbatches have one.
func (l *lister) protect(n int) {
	if !l.redundant {
		return
	}
	for ; l.protected < n; l.protected++ {
		l.add(RedundantForward, l.Successor(l.stage), l.protected, None)
		l.add(Spill, l.Successor(l.stage), l.protected, None)
	}
}

// repeat adds redundant backward passes until the first n microbatches have one. They run while the
// successor runs the same ones. The gradients of stage 0 reach the last stage after P-2 other stages.
func (l *lister) repeat(n int) {
	if !l.redundant || l.Redundancy != EagerForwardBackward {
		return
	}
	protected := l.Successor(l.stage)
	for ; l.repeated < n; l.repeated++ {
		if protected < l.Stages-1 && protected+1 != l.stage {
			l.add(ReceiveRedundantGradients, protected, l.repeated, protected+1)
		}
		l.add(RedundantBackward, protected, l.repeated, None)
	}
}

func (l *lister) finish() {
	l.protect(l.Microbatches)
	l.repeat(l.Microbatches)
	l.add(Reduce, l.stage, None, None)
	l.add(Apply, l.stage, None, None)
}
