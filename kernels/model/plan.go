package model

import (
	"container/heap"
	"slices"

	"siafu/internal/size"
)

// Memory says how long the values of a network stand.
type Memory uint8

// A value that nobody will read again gives its place to another one in InStep and
// Forward, where the intervals of all ranks are in the same layer.
const (
	// InStep is for epochs: forward, and backward through the same layers.
	InStep Memory = iota
	// Recompute is InStep, and what layers make forward is made again for the backward
	// pass where that saves memory (Chen et al. 2016, arXiv 1604.06174).
	Recompute
	// Forward is for passes without a backward pass. The logits and the input of the last
	// layer stand until the next pass.
	Forward
	// Apart gives each value a place of its own, for intervals that go their own ways.
	Apart
	// Emission is for ghosts whose features are known (Spec.KnownGhosts): in the first layer they
	// emit rows, and take the gradients of those.
	Emission
)

// Do is a stage of a layer in a task. Again tells that it has run before, and makes
// its values once more, for the backward pass.
type Do struct {
	Layer int
	Stage Stage
	Again bool
}

// phase is which matrices a stage works on: those of the forward pass, or those of
// the backward pass. They differ in what is made again.
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

// What lies between stages, after the stages in the order of an epoch.
const (
	gather Stage = Stages + iota
	gatherBackward
)

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
	net        *Network
	memory     Memory
	events     []event
	spans      []span
	index      map[spanKey]int // of the spans
	recomputed map[Do][]Do     // what is made again before a stage of the backward pass
	widths     []int           // of the buffers
	idle       map[Do]int      // by the stage before a gather, a buffer that nobody uses until it has ended
	spent      map[Do]bool     // the stages after which the gather alone reads its rows, for the last time
}

// spanKey names a span.
type spanKey struct {
	root  ref
	phase phase
}

// newPlan lays out the values of a network.
func newPlan(n *Network, m Memory) *plan {
	p := &plan{net: n, memory: m, events: n.epoch}
	switch m {
	case Forward:
		p.events = n.order(false)
	case Emission:
		p.events = n.emission()
	}
	p.layOut(nil)
	if m == Recompute {
		p.recompute()
	}
	return p
}

// layOut finds spans and buffers, where some stages are run again.
func (p *plan) layOut(dropped []Do) {
	p.spans, p.index, p.recomputed, p.widths = p.spans[:0], map[spanKey]int{}, map[Do][]Do{}, p.widths[:0]
	makers := p.makers(dropped)
	events := p.repeat(makers)
	p.spans = slices.Grow(p.spans, len(events)) // about as many
	ends := lastOverlaps(events)
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
	p.findIdleBuffers(events, ends)
}

// maxIdleLookups is up to how many events idle buffers are looked for: each look goes through
// all values.
const maxIdleLookups = 1024

// findIdleBuffers finds the buffers that are idle while rows of a layer are gathered: as wide as
// those, with values that were read for the last time before, or by the stage that makes
// the rows, of the same interval.
func (p *plan) findIdleBuffers(events []event, ends []int) {
	p.idle, p.spent = map[Do]int{}, map[Do]bool{}
	if p.memory == Apart || p.memory == Emission || len(events) > maxIdleLookups {
		return
	}
	taken, until := -1, -1 // by the gather before, in which other intervals may still be
	for i := 1; i < len(events); i++ {
		if e := events[i]; e.Stage >= Stages && len(e.shared) > 0 {
			before := events[i-1].Do
			if until < i-1 {
				taken = -1
			}
			if b, ok := p.idleBuffer(i-1, ends[i], p.net.width(e.shared[0]), events[i-1].reads, taken); ok {
				p.idle[before] = b
				taken, until = b, ends[i]
			}
			if !before.Again && p.readsLast(events, i, ends[i]) {
				p.spent[before] = true
			}
		}
	}
}

// idleBuffer is a buffer of that width without a value from event from to event to, but what
// the first of them is the last to read; nor the one that is taken.
func (p *plan) idleBuffer(from, to, width int, reads []ref, taken int) (buffer int, ok bool) {
	used := map[int]bool{taken: true}
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

// readsLast reports whether nobody but the gather that is event i reads the rows that it shares, once the
// stage before has made them: no stage up to event end, while other intervals may still gather, and
// none after it. Nor does the gather before read them, in which other intervals may still be.
func (p *plan) readsLast(events []event, i, end int) bool {
	e := events[i]
	r := e.shared[0]
	s, ok := p.find(e.phase(), r.layer, r.value)
	if !ok || len(e.shared) > 1 || s.to > end || slices.Contains(e.reads, r) {
		return false
	}
	for _, after := range events[i+1 : end+1] {
		if slices.Contains(after.reads, r) || slices.Contains(after.writes, r) {
			return false
		}
	}
	for k := i - 1; k >= 0 && events[k].Stage < Stages; k-- {
		if slices.Contains(events[k].writes, r) {
			return true
		}
	}
	return false
}

// lastOverlaps are, for each event, the last one at which an interval can be while another
// one is still there: after it comes another gather, or nothing.
func lastOverlaps(events []event) []int {
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

func overlap(a, b []ref) bool {
	return slices.ContainsFunc(a, func(r ref) bool { return slices.Contains(b, r) })
}

// stretch lets the span of a root reach from event i to another one. Only what is
// dropped has a span of its own in the backward pass.
func (p *plan) stretch(r ref, at phase, i, to int, makers map[ref]int) *span {
	if _, dropped := makers[r]; !dropped {
		at = forward
	}
	k, ok := p.index[spanKey{r, at}]
	if !ok {
		k = len(p.spans)
		p.index[spanKey{r, at}] = k
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

// find is the span of a value as a phase sees it.
func (p *plan) find(at phase, l int, v Value) (span, bool) {
	r, ok := p.net.root(l, v)
	if !ok {
		return span{}, false
	}
	k, ok := p.index[spanKey{r, at}]
	if !ok {
		k, ok = p.index[spanKey{r, forward}]
	}
	if !ok {
		return span{}, false
	}
	return p.spans[k], true
}

// moves reports whether values of layer l can have other places in the backward pass: where some are made
// again, and in the first layer, into whose places a frame puts its input (Frame.enter).
func (p *plan) moves(l int) bool {
	return l == 0 || len(p.recomputed) > 0
}
