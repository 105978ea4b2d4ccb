package model

import (
	"slices"

	"siafu/graph/size"
)

// Memory says how long the values of a network stand.
type Memory uint8

// A value that nobody will read again gives its place to another one in InStep and
// Forward, where the intervals of all ranks are in the same layer.
const (
	// InStep is for epochs: forward, and backward through the same layers.
	InStep Memory = iota
	// Recompute is InStep, and what layers make forward is made again for the way
	// back where that saves memory (Chen et al. 2016, arXiv 1604.06174).
	Recompute
	// Forward is for passes without a way back. The logits and the input of the last
	// layer stand until the next pass.
	Forward
	// Apart gives each value a place of its own, for intervals that go their own ways.
	Apart
)

// Do is a stage of a layer in a task. Again tells that it has run before, and makes
// its values once more, for the way back.
type Do struct {
	Layer int
	Stage Stage
	Again bool
}

// phase is which matrices a stage works on: those of the way forward, or those of
// the way back. They differ in what is made again.
type phase uint8

const (
	forward phase = iota
	backward
	phases
)

func (d Do) phase() phase {
	if d.Again || d.Stage.Backward() {
		return backward
	}
	return forward
}

// What lies between stages, behind the stages in the order of an epoch.
const (
	gather Stage = Stages + iota
	gatherBackward
)

// ref is a value of a layer.
type ref struct {
	layer int
	value Value
}

// event is a stage or a gather at its moment of an epoch.
type event struct {
	Do
	reads, writes []ref
	shared        []ref // read by the gathers of other intervals
}

// span is how long a value stands in a phase: from the event that writes it to the
// last one that reads it. buffer is the matrix in which it does.
type span struct {
	root             ref
	phase            phase
	cols             int
	from, to, buffer int
}

// plan is where the values of a network lie.
type plan struct {
	net    *Network
	memory Memory
	events []event
	spans  []span
	again  map[Do][]Do // what is made again before a stage of the way back
	widths []int       // of the buffers
}

// root is the value in whose place v of layer l lies; none has a place where ok is
// false: the features, ÂX where it is kept, or nothing.
func (n *Network) root(l int, v Value) (r ref, ok bool) {
	b := n.builders[l]
	at := b.places[v]
	switch {
	case v == Input && l == 0:
		return ref{0, Input}, n.draws()
	case v == Input:
		return n.root(l-1, Output)
	case v == OutputGrad && l < len(n.Layers)-1:
		return n.root(l+1, InputGrad)
	case at.kind == inPlace:
		return n.root(l, at.in)
	case v == Gathered && l == 0 && n.Spec.CacheInput:
		return ref{l, v}, false
	case v == Gathered && !n.Gathers(l):
		return n.root(l, Emitted)
	case v == EmittedGrad && !n.GathersBackward(l):
		return n.root(l, GatheredGrad)
	}
	return ref{l, v}, n.width(ref{l, v}) > 0
}

// width is the number of columns of a root.
func (n *Network) width(r ref) int {
	l, g := r.layer, n.Gathering(r.layer)
	switch {
	case n.builders[l].places[r.value].kind == room:
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

// roots are those of some values of a layer.
func (n *Network) roots(l int, list ...Value) (all []ref) {
	for _, v := range list {
		if r, ok := n.root(l, v); ok {
			all = append(all, r)
		}
	}
	return all
}

// stage is the event of a layer's stage.
func (n *Network) stage(l int, s Stage) event {
	f := n.Layers[l].Flow(s)
	e := event{Do: Do{Layer: l, Stage: s}, reads: n.roots(l, f.Reads...), writes: n.roots(l, f.Writes...)}
	if _, attended := n.Layers[l].(Attended); attended && s == ApplyBackward {
		e.reads = append(e.reads, n.roots(l, Gathered, Scores)...) // what sources are told of those who attended to them
	}
	return e
}

// order are the events of an epoch, or of its way forward alone.
func (n *Network) order(back bool) (all []event) {
	last := len(n.Layers) - 1
	for l := range n.Layers {
		if l == 0 && n.draws() {
			all = append(all, event{Do: Do{Layer: 0, Stage: Draw}, writes: n.roots(0, Input)})
		}
		if l > 0 || !n.Spec.CacheInput {
			all = append(all, n.stage(l, Emit))
		}
		if n.Gathers(l) {
			all = append(all, event{Do: Do{Layer: l, Stage: gather}, reads: n.roots(l, Scores), shared: n.roots(l, Emitted), writes: n.roots(l, Gathered)})
		}
		all = append(all, n.stage(l, Apply))
	}
	loss := event{Do: Do{Layer: last, Stage: Loss}, reads: n.roots(last, Output)}
	if !back {
		loss.reads = append(loss.reads, n.roots(last, Input)...)
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
				e.writes = append(e.writes, n.roots(l, ScoresGrad)...)
			}
			all = append(all, e)
		}
		all = append(all, n.stage(l, EmitBackward))
	}
	return all
}

// newPlan lays out the values of a network.
func newPlan(n *Network, m Memory) *plan {
	p := &plan{net: n, memory: m, events: n.order(m != Forward)}
	p.layOut(nil)
	if m == Recompute {
		p.recompute()
	}
	return p
}

// layOut finds spans and buffers, where some stages are run again.
func (p *plan) layOut(dropped []Do) {
	p.spans, p.again, p.widths = p.spans[:0], map[Do][]Do{}, p.widths[:0]
	events := p.repeat(dropped)
	for i, e := range events {
		for _, r := range e.writes {
			p.stretch(r, e.phase(), i, dropped)
		}
		for _, r := range e.reads {
			p.stretch(r, e.phase(), i, dropped)
		}
		for _, r := range e.shared {
			p.stretch(r, e.phase(), join(events, i), dropped)
		}
	}
	for i := range p.spans {
		p.place(i)
	}
}

// join is the last event at which an interval can be while another one is still in
// the gather i: behind it comes another gather, or nothing.
func join(events []event, i int) int {
	for k := i + 1; k < len(events); k++ {
		if events[k].Stage >= Stages {
			return k - 1
		}
	}
	return len(events) - 1
}

// repeat is the order of events with dropped stages, which are run again before
// what first needs them on the way back.
func (p *plan) repeat(dropped []Do) []event {
	if len(dropped) == 0 {
		return p.events
	}
	var all []event
	done := map[Do]bool{}
	for i, e := range p.events {
		// What a gather reads is made again by the tensor stage before it.
		needed := slices.Concat(e.reads, e.shared)
		if i+1 < len(p.events) && p.events[i+1].Stage == gatherBackward {
			needed = append(needed, p.events[i+1].shared...)
		}
		if e.Stage.Backward() && e.Stage < Stages {
			for _, d := range p.makers(needed, dropped, done) {
				p.again[e.Do] = append(p.again[e.Do], d.Do)
				all = append(all, d)
			}
		}
		all = append(all, e)
	}
	return all
}

// makers are the dropped stages, as they are run again, that make values which have
// not been made again, each behind those that it needs itself.
func (p *plan) makers(needed []ref, dropped []Do, done map[Do]bool) (list []event) {
	for _, e := range p.events {
		if !slices.Contains(dropped, e.Do) || done[e.Do] || !meet(e.writes, needed) {
			continue
		}
		done[e.Do] = true
		list = append(list, p.makers(e.reads, dropped, done)...)
		e.Again = true
		list = append(list, e)
	}
	return list
}

func meet(a, b []ref) bool {
	return slices.ContainsFunc(a, func(r ref) bool { return slices.Contains(b, r) })
}

// stretch lets the span of a root reach to event i. Only what is dropped has another
// one on the way back.
func (p *plan) stretch(r ref, at phase, i int, dropped []Do) {
	if at == backward && !p.twice(r, dropped) {
		at = forward
	}
	for k := range p.spans {
		if s := &p.spans[k]; s.root == r && s.phase == at {
			s.to = max(s.to, i)
			return
		}
	}
	p.spans = append(p.spans, span{root: r, phase: at, cols: p.net.width(r), from: i, to: i})
}

// twice tells whether a root is made again.
func (p *plan) twice(r ref, dropped []Do) bool {
	return slices.ContainsFunc(p.events, func(e event) bool {
		return slices.Contains(e.writes, r) && slices.Contains(dropped, e.Do)
	})
}

// place finds a buffer for span i, whose predecessors have one: that of a value which
// nobody reads any more. It has the same width, so that intervals, which write
// their rows at times of their own, do not write those of others.
func (p *plan) place(i int) {
	s := &p.spans[i]
	for b, width := range p.widths {
		if width != s.cols || p.memory == Apart {
			continue
		}
		s.buffer = b
		if !slices.ContainsFunc(p.spans[:i], func(o span) bool { return o.buffer == b && o.to >= s.from && o.from <= s.to }) {
			return
		}
	}
	s.buffer = len(p.widths)
	p.widths = append(p.widths, s.cols)
}

// columns is how many floats a vertex takes.
func (p *plan) columns() (sum int) {
	for _, w := range p.widths {
		sum = size.Sum(sum, w)
	}
	return sum
}

// mostAgain is how many stages may have to run again, one behind another, for one
// value.
const mostAgain = 2

// recompute drops what can be made again, and keeps it after all where that takes
// no more memory.
func (p *plan) recompute() {
	var dropped []Do
	depth := map[ref]int{}
	for _, e := range p.events {
		if d := p.depth(e, depth); d > 0 && d <= mostAgain {
			dropped = append(dropped, e.Do)
			for _, r := range e.writes {
				depth[r] = d
			}
		}
	}
	p.layOut(dropped)
	least := p.columns()
	for i := len(dropped) - 1; i >= 0; i-- {
		kept := slices.Delete(slices.Clone(dropped), i, i+1)
		if p.layOut(kept); p.columns() <= least {
			dropped, least = kept, p.columns()
		}
	}
	p.layOut(dropped)
}

// depth is how many stages run one behind another to make again what e has made, 0
// where that cannot be: it has overwritten what it was made from, or somebody else
// overwrites the result; or where nobody wants it back.
func (p *plan) depth(e event, depth map[ref]int) int {
	if e.Stage != Draw && e.Stage != Emit && e.Stage != Apply || len(e.writes) == 0 {
		return 0
	}
	wanted, most := false, 0
	for _, o := range p.events {
		wanted = wanted || o.Stage.Backward() && (meet(o.reads, e.writes) || meet(o.shared, e.writes))
		if o.Do != e.Do && !o.Stage.Backward() && meet(o.writes, e.writes) {
			return 0
		}
	}
	if !wanted || meet(e.reads, e.writes) {
		return 0
	}
	for _, r := range e.reads {
		most = max(most, depth[r])
	}
	return most + 1
}

// find is the span of a value as a phase sees it.
func (p *plan) find(at phase, l int, v Value) (span, bool) {
	r, ok := p.net.root(l, v)
	if !ok {
		return span{}, false
	}
	for ; ; at-- {
		for _, s := range p.spans {
			if s.root == r && s.phase == at {
				return s, true
			}
		}
		if at == forward {
			return span{}, false
		}
	}
}
