package model

import "slices"

// ref is a value of a layer.
type ref struct {
	layer int
	value Value
}

// event is a stage or a gather in the order of an epoch.
type event struct {
	Do
	reads, writes []ref
	shared        []ref // read by the gathers of other intervals
}

// root returns the value whose storage v of layer l uses. ok is false for values without
// storage: the features and cached ÂX.
func (n *Network) root(l int, v Value) (r ref, ok bool) {
	b := n.builders[l]
	if n.keeps(ref{l, v}) {
		return ref{l, v}, false
	}
	if v >= from {
		k := b.part.From[(v-from)/2]
		if (v-from)%2 > 0 {
			return ref{k, skipGrad}, true
		}
		return n.root(k, Output)
	}
	at := b.places[v]
	switch {
	case v == Input && l == 0:
		return ref{0, Input}, n.draws()
	case v == Input:
		return n.root(l-1, Output)
	case v == OutputGrad && l < len(n.Layers)-1:
		return n.root(l+1, InputGrad)
	case v == OutputGrad && n.Spec.InPlace && b.outputUnread:
		return n.root(l, Output)
	case at.kind == inPlace:
		return n.root(l, at.in)
	case v == Gathered && !n.Gathers(l):
		return n.root(l, Emitted)
	case v == EmittedGrad && !n.GathersBackward(l):
		return n.root(l, GatheredGrad)
	}
	return ref{l, v}, n.width(ref{l, v}) > 0
}

// width returns the number of columns of a root.
func (n *Network) width(r ref) int {
	l, g := r.layer, n.Gathering(r.layer)
	switch {
	case n.builders[l].places[r.value].kind == allocated:
		return n.builders[l].places[r.value].cols
	case r.value == Input && l == 0:
		return n.Spec.Dims[0]
	case r.value == Gathered:
		return g.Gathered()
	case r.value == EmittedGrad && g.Backward:
		return g.Width
	case r.value == OutputGrad && l == len(n.Layers)-1:
		return n.Spec.Dims[l+1]
	}
	return 0
}

// roots returns the roots of values of a layer.
func (n *Network) roots(l int, list ...Value) (all []ref) {
	for _, v := range list {
		if r, ok := n.root(l, v); ok {
			all = append(all, r)
		}
	}
	return all
}

// flow returns the event of a layer's stage with the values of its Flow.
func (n *Network) flow(l int, s Stage) event {
	f := n.Layers[l].Flow(s)
	return event{Do: Do{Layer: l, Stage: s}, reads: n.roots(l, f.Reads...), writes: n.roots(l, f.Writes...)}
}

// stage returns the event of a layer's stage, including the gradients of other layers that
// skip to its output.
func (n *Network) stage(l int, s Stage) event {
	e := n.flow(l, s)
	if s != ApplyBackward {
		return e
	}
	if n.skipped[l] {
		n.addSkipGrad(&e)
	}
	return n.withGradReaders(e)
}

// addSkipGrad adds the values of the sum of a layer's OutputGrad and the gradients of Skips.
func (n *Network) addSkipGrad(e *event) {
	e.reads = append(e.reads, n.roots(e.Layer, skipGrad, OutputGrad)...)
	e.writes = append(e.writes, n.roots(e.Layer, OutputGrad)...)
}

// withGradReaders adds the values of gradReaders to an event.
func (n *Network) withGradReaders(e event) event {
	reads, writes := n.gradReaders(e.Layer)
	e.reads, e.writes = append(e.reads, reads...), append(e.writes, writes...)
	return e
}

// gradReaders returns the values that graph work reads and writes after ApplyBackward. It
// sends gradients from attending vertices to their sources, and may compute the gradient of
// targets' scores.
func (n *Network) gradReaders(l int) (reads, writes []ref) {
	if _, attended := n.Layers[l].(Attended); attended {
		return n.roots(l, Gathered, Scores, Signed), n.roots(l, ScoresGrad)
	}
	return nil, nil
}

// order returns the events of an epoch, or only of its forward pass.
func (n *Network) order(back bool) (all []event) {
	last := len(n.Layers) - 1
	all = make([]event, 0, 2+6*len(n.Layers))
	for l := range n.Layers {
		if l == 0 && n.draws() {
			all = append(all, event{Do: Do{Layer: 0, Stage: Draw}, writes: n.roots(0, Input)})
		}
		if l > 0 || !n.Spec.CacheInput {
			all = append(all, n.stage(l, Emit))
		}
		if n.Gathers(l) {
			e := event{Do: Do{Layer: l, Stage: gather}, reads: n.roots(l, Scores),
				shared: n.roots(l, Emitted), writes: n.roots(l, Gathered)}
			if back {
				e.writes = append(e.writes, n.roots(l, Signed)...)
			}
			if n.Spec.Whole(l) { // sent during the gather
				e.shared = append(e.shared, n.roots(l, Input)...)
			}
			all = append(all, e)
		}
		all = append(all, n.stage(l, Apply))
	}
	loss := event{Do: Do{Layer: last, Stage: Loss}, reads: n.roots(last, Output)}
	if !back {
		loss.reads = append(loss.reads, n.roots(n.Spec.Top(), Input)...)
		return append(all, loss)
	}
	loss.writes = n.roots(last, OutputGrad)
	all = append(all, loss)
	for l := last; l >= 0; l-- {
		all = append(all, n.stage(l, ApplyBackward))
		if n.GathersBackward(l) {
			e := event{Do: Do{Layer: l, Stage: gatherBackward}, shared: n.roots(l, GatheredGrad), writes: n.roots(l, EmittedGrad)}
			if _, attended := n.Layers[l].(Attended); attended {
				e.shared = append(e.shared, n.roots(l, Emitted)...)
				e.writes = append(e.writes, n.roots(l, ScoresGrad, AlongGrad)...)
			}
			switch g := n.Gathering(l); {
			case g.MultipliesFirst: // after ApplyBackward, which reads the rows of all vertices
				e.shared = nil
				all[len(all)-1].shared = n.roots(l, Emitted)
			case g.Relational: // for the gradients of matrices
				e.shared = append(e.shared, n.roots(l, Emitted)...)
			}
			all = append(all, e)
		}
		all = append(all, n.stage(l, EmitBackward))
	}
	return all
}

// emission returns the events of ghosts whose rows of GhostLayer are computed here: all stages
// of the layers before, and those of GhostLayer that need no gathered rows. The gradients that
// ghosts have only because they gather in GhostLayer, or because later layers skip to them,
// belong to their owners. Stages omit the products with such gradients, which have no storage here,
// or Frame.ClearGathered sets them to zero.
func (n *Network) emission() (all []event) {
	at := n.Spec.GhostLayer()
	_, attended := n.Layers[at].(Attended)
	trained := n.GathersBackward(at)
	for _, e := range n.epoch {
		switch {
		case e.Layer > at || e.Stage.Backward() && !trained || e.Stage == Loss:
		case e.Layer < at && e.Stage == ApplyBackward:
			e = n.flow(e.Layer, e.Stage)
			if n.skippedBelow(e.Layer, at) {
				n.addSkipGrad(&e)
			}
			all = append(all, n.withGradReaders(e))
		case e.Layer < at || e.Stage == Draw:
			all = append(all, e)
		case e.Stage == Emit:
			e = n.flow(at, Emit)
			e.writes = without(e.writes, n.roots(at, Scores))
			all = append(all, e)
		case e.Stage == gather:
			all = append(all, event{Do: e.Do, shared: n.roots(at, Emitted)})
		case e.Stage == gatherBackward:
			back := event{Do: e.Do, writes: append(n.roots(at, EmittedGrad), n.changedGrad(at)...)}
			if attended || n.Gathering(at).Relational {
				back.shared = n.roots(at, Emitted)
			}
			for l := range at {
				if n.skippedBelow(l, at) {
					back.writes = append(back.writes, n.roots(l, skipGrad)...)
				}
			}
			all = append(all, back)
		case e.Stage == EmitBackward:
			back := n.flow(at, EmitBackward)
			back.reads = append(without(back.reads, n.roots(at, n.gradsOfTargets(at)...)), n.changedGrad(at)...)
			all = append(all, back)
		}
	}
	return all
}

// gradsOfTargets returns the gradients that only vertices that gather in a layer have.
func (n *Network) gradsOfTargets(l int) []Value {
	list := []Value{OutputGrad, ScoresGrad, AlongGrad}
	if n.Gathering(l).MultipliesFirst {
		list = append(list, selfGrad)
	}
	return list
}

// without returns the elements of list that are not in omitted.
func without(list, omitted []ref) []ref {
	return slices.DeleteFunc(slices.Clone(list), func(r ref) bool { return slices.Contains(omitted, r) })
}

// skippedBelow reports whether layers before layer at, other than the next one, read the output of
// layer l.
func (n *Network) skippedBelow(l, at int) bool {
	return slices.ContainsFunc(n.builders[:at], func(b *Builder) bool { return slices.Contains(b.part.From, l) })
}

// changedGrad returns OutputGrad of layer l if EmitBackward changes it in place, else nothing.
func (n *Network) changedGrad(l int) []ref {
	if grad := n.roots(l, OutputGrad); overlap(grad, n.flow(l, EmitBackward).writes) {
		return grad
	}
	return nil
}

// EmissionStages returns the stages of ghosts whose rows are computed here, by gather of
// LocalLayers: forward those before the gather, after the gather before; backward those after
// it, before the next one in that direction.
func (n *Network) EmissionStages() (forward, backward [][]Do) {
	gathers := n.Spec.GatherLayers()[:n.Spec.LocalLayers]
	forward, backward = make([][]Do, len(gathers)), make([][]Do, len(gathers))
	for _, e := range n.emission() {
		own := slices.Contains(gathers, e.Layer)
		after := e.Stage == Apply || e.Stage == ApplyBackward || e.Stage == EmitBackward && own && !n.GathersBackward(e.Layer)
		at := slices.IndexFunc(gathers, func(l int) bool { return l > e.Layer || l == e.Layer && !after })
		switch {
		case e.Stage >= Stages:
		case e.Stage.Backward():
			backward[at] = append(backward[at], e.Do)
		default:
			forward[at] = append(forward[at], e.Do)
		}
	}
	return forward, backward
}
