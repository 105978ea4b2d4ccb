package model

import (
	"container/heap"
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
	open             bool // gathers of other intervals read it
}

// plan is where the values of a network lie.
type plan struct {
	net    *Network
	memory Memory
	events []event
	spans  []span
	index  map[stay]int // of the spans
	again  map[Do][]Do  // what is made again before a stage of the way back
	widths []int        // of the buffers
	idle   map[Do]int   // by the stage before a gather, a buffer that nobody uses until it has ended
}

// stay names a span.
type stay struct {
	root  ref
	phase phase
}

// root is the value in whose place v of layer l lies; none has a place where ok is
// false: the features, ÂX where it is kept, or nothing.
func (n *Network) root(l int, v Value) (r ref, ok bool) {
	b := n.builders[l]
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
	if s != ApplyBackward {
		return e
	}
	if n.skipped[l] {
		e.reads = append(e.reads, n.roots(l, skipGrad, OutputGrad)...)
		e.writes = append(e.writes, n.roots(l, OutputGrad)...)
	}
	e.reads = append(e.reads, n.told(l)...)
	return e
}

// told is what graph work tells sources of those who attended to them, behind
// ApplyBackward.
func (n *Network) told(l int) []ref {
	if _, attended := n.Layers[l].(Attended); attended {
		return n.roots(l, Gathered, Scores)
	}
	return nil
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
	p := &plan{net: n, memory: m, events: n.epoch}
	if m == Forward {
		p.events = n.order(false)
	}
	p.layOut(nil)
	if m == Recompute {
		p.recompute()
	}
	return p
}

// layOut finds spans and buffers, where some stages are run again.
func (p *plan) layOut(dropped []Do) {
	p.spans, p.index, p.again, p.widths = p.spans[:0], map[stay]int{}, map[Do][]Do{}, p.widths[:0]
	makers := p.makers(dropped)
	events := p.repeat(makers)
	ends := joins(events)
	for i, e := range events {
		for _, r := range slices.Concat(e.writes, e.reads) {
			p.stretch(r, e.phase(), i, i, makers)
		}
		for _, r := range e.shared {
			s := p.stretch(r, e.phase(), i, ends[i], makers)
			s.open = true
		}
	}
	p.place()
	p.rest(events, ends)
}

// rest finds the buffers that are idle while rows of a layer are gathered: as wide as
// those, with values that were read for the last time before, or by the stage that makes
// the rows, of the same interval.
func (p *plan) rest(events []event, ends []int) {
	p.idle = map[Do]int{}
	if p.memory == Apart {
		return
	}
	for i := 1; i < len(events); i++ {
		if e := events[i]; e.Stage >= Stages && len(e.shared) > 0 {
			if b, ok := p.idler(i-1, ends[i], p.net.width(e.shared[0]), events[i-1].reads); ok {
				p.idle[events[i-1].Do] = b
			}
		}
	}
}

// idler is a buffer of that width without a value from event from to event to, but what
// the first of them is the last to read.
func (p *plan) idler(from, to, width int, reads []ref) (buffer int, ok bool) {
	used := map[int]bool{}
	for _, s := range p.spans {
		last := s.to == from && s.from < from && !s.open && slices.Contains(reads, s.root)
		used[s.buffer] = used[s.buffer] || s.from <= to && s.to >= from && !last
	}
	for b, w := range p.widths {
		if w == width && !used[b] {
			return b, true
		}
	}
	return 0, false
}

// joins are, for each event, the last one at which an interval can be while another
// one is still there: behind it comes another gather, or nothing.
func joins(events []event) []int {
	last := make([]int, len(events))
	end := len(events) - 1
	for i := len(events) - 1; i >= 0; i-- {
		last[i] = end
		if events[i].Stage >= Stages {
			end = i - 1
		}
	}
	return last
}

// makers are the events of dropped stages, by what they make.
func (p *plan) makers(dropped []Do) map[ref]int {
	at := map[ref]int{}
	wanted := map[Do]bool{}
	for _, d := range dropped {
		wanted[d] = true
	}
	for i, e := range p.events {
		for _, r := range e.writes {
			if wanted[e.Do] {
				at[r] = i
			}
		}
	}
	return at
}

// repeat is the order of events with dropped stages, which are run again before
// what first needs them on the way back.
func (p *plan) repeat(makers map[ref]int) []event {
	if len(makers) == 0 {
		return p.events
	}
	var all []event
	done := map[int]bool{}
	for i, e := range p.events {
		if e.Stage.Backward() && e.Stage < Stages {
			// What a gather reads is made again by the tensor stage before it.
			needed := slices.Concat(e.reads, e.shared)
			if i+1 < len(p.events) && p.events[i+1].Stage == gatherBackward {
				needed = append(needed, p.events[i+1].shared...)
			}
			for _, d := range p.remade(needed, makers, done) {
				p.again[e.Do] = append(p.again[e.Do], d.Do)
				all = append(all, d)
			}
		}
		all = append(all, e)
	}
	return all
}

// remade are the dropped stages, as they are run again, that make values which have
// not been made again, each behind those that it needs itself.
func (p *plan) remade(needed []ref, makers map[ref]int, done map[int]bool) (list []event) {
	for _, r := range needed {
		i, dropped := makers[r]
		if !dropped || done[i] {
			continue
		}
		done[i] = true
		e := p.events[i]
		list = append(list, p.remade(e.reads, makers, done)...)
		e.Again = true
		list = append(list, e)
	}
	return list
}

func meet(a, b []ref) bool {
	return slices.ContainsFunc(a, func(r ref) bool { return slices.Contains(b, r) })
}

// stretch lets the span of a root reach from event i to another one. Only what is
// dropped has a span of its own on the way back.
func (p *plan) stretch(r ref, at phase, i, to int, makers map[ref]int) *span {
	if _, dropped := makers[r]; !dropped {
		at = forward
	}
	k, ok := p.index[stay{r, at}]
	if !ok {
		k = len(p.spans)
		p.index[stay{r, at}] = k
		p.spans = append(p.spans, span{root: r, phase: at, cols: p.net.width(r), from: i, to: i})
	}
	p.spans[k].to = max(p.spans[k].to, to)
	return &p.spans[k]
}

// place finds a buffer for each span, in the order in which they begin: that of a
// value which nobody reads any more. It has the same width, so that intervals, which
// write their rows at times of their own, do not write those of others.
func (p *plan) place() {
	free := map[int]*buffers{} // by width
	for i := range p.spans {
		s := &p.spans[i]
		of := free[s.cols]
		if of == nil {
			of = &buffers{}
			free[s.cols] = of
		}
		if len(*of) > 0 && (*of)[0].until < s.from && p.memory != Apart {
			s.buffer = (*of)[0].number
			(*of)[0].until = s.to
			heap.Fix(of, 0)
			continue
		}
		s.buffer = len(p.widths)
		p.widths = append(p.widths, s.cols)
		heap.Push(of, buffer{s.buffer, s.to})
	}
}

// buffers are those of one width; the one that is free first comes first.
type buffers []buffer

type buffer struct{ number, until int }

func (b buffers) Len() int           { return len(b) }
func (b buffers) Less(i, j int) bool { return b[i].until < b[j].until }
func (b buffers) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *buffers) Push(x any)        { *b = append(*b, x.(buffer)) }
func (b *buffers) Pop() any {
	last := (*b)[len(*b)-1]
	*b = (*b)[:len(*b)-1]
	return last
}

// columns is how many floats a vertex takes.
func (p *plan) columns() (sum int) {
	for _, w := range p.widths {
		sum = size.Sum(sum, w)
	}
	return sum
}

// mostAgain is how many stages may have to run again, one behind another, for one
// value. Of so many stages as mostTried each is kept again if that costs nothing; of
// more, only the time to find out would be felt.
const (
	mostAgain = 2
	mostTried = 64
)

// recompute drops what can be made again, and keeps it after all where that takes
// no more memory.
func (p *plan) recompute() {
	var dropped []Do
	depth, known := map[ref]int{}, p.know()
	for _, e := range p.events {
		if d := known.depth(e, depth); d > 0 && d <= mostAgain {
			dropped = append(dropped, e.Do)
			for _, r := range e.writes {
				depth[r] = d
			}
		}
	}
	p.layOut(dropped)
	least := p.columns()
	for i := len(dropped) - 1; i >= 0 && len(dropped) <= mostTried; i-- {
		kept := slices.Delete(slices.Clone(dropped), i, i+1)
		if p.layOut(kept); p.columns() <= least {
			dropped, least = kept, p.columns()
		}
	}
	p.layOut(dropped)
}

// knowledge is what decides whether a value can be made again.
type knowledge struct {
	writers map[ref]int  // stages and gathers of the way forward that write it
	wanted  map[ref]bool // the way back reads it
}

func (p *plan) know() knowledge {
	k := knowledge{map[ref]int{}, map[ref]bool{}}
	for _, e := range p.events {
		for _, r := range e.writes {
			if !e.Stage.Backward() {
				k.writers[r]++
			}
		}
		for _, r := range slices.Concat(e.reads, e.shared) {
			k.wanted[r] = k.wanted[r] || e.Stage.Backward()
		}
	}
	return k
}

// depth is how many stages run one behind another to make again what e has made, 0
// where that cannot be: it has overwritten what it was made from, or somebody else
// overwrites the result; or where nobody wants it back.
func (k knowledge) depth(e event, depth map[ref]int) int {
	if e.Stage != Draw && e.Stage != Emit && e.Stage != Apply || meet(e.reads, e.writes) {
		return 0
	}
	wanted, most := false, 0
	for _, r := range e.writes {
		wanted = wanted || k.wanted[r]
		if k.writers[r] > 1 {
			return 0
		}
	}
	if !wanted {
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
	k, ok := p.index[stay{r, at}]
	if !ok {
		k, ok = p.index[stay{r, forward}]
	}
	if !ok {
		return span{}, false
	}
	return p.spans[k], true
}
