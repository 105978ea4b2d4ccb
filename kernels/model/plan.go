package model

import (
	"container/heap"
	"slices"

	"siafu/internal/size"
)

// Memory is the lifetime of a network's values.
type Memory uint8

// In InStep and Forward, the intervals of all ranks are in the same layer, and a value that is
// not read again releases its storage to another one.
const (
	// InStep is for epochs: a forward pass, and a backward pass through the same layers.
	InStep Memory = iota
	// Recompute is InStep, and the backward pass recomputes values of the forward pass if that
	// saves memory (Chen et al. 2016, arXiv 1604.06174).
	Recompute
	// Forward is for passes without a backward pass. The logits and the input of the last
	// layer are stored until the next pass.
	Forward
	// Separate gives each value its own storage, for asynchronous intervals.
	Separate
	// Emission is for ghosts whose rows are computed (Spec.LocalLayers): the layers up to the
	// Emit of GhostLayer, and their gradients.
	Emission
)

// InChain, added to InStep or Forward, stores values that an interval uses only between two gathers by
// worker, not by vertex (Store.MakeSlots). An interval must then gather after all rows have arrived.
const InChain Memory = 1 << 7

const (
	// Narrow, added to InChain, is for gathers that read copies of rows in bfloat16, which are made
	// when the rows are. Rows are then values that an interval uses alone. Ranks must not exchange rows.
	Narrow Memory = 1 << 6
	// Exchanged, added to InChain, is for ranks that exchange rows. They add the gradients from other
	// ranks to the rows of all intervals, which are therefore stored by vertex.
	Exchanged Memory = 1 << 5
)

// Lifetime returns m without InChain, Narrow and Exchanged.
func (m Memory) Lifetime() Memory { return m &^ (InChain | Narrow | Exchanged) }

// Do is a stage of a layer in a task. Again means that it has run before, and recomputes its
// values for the backward pass.
type Do struct {
	Layer int
	Stage Stage
	Again bool
}

// phase selects the matrices of the forward or of the backward pass. They differ for
// recomputed values.
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

// Work between stages, numbered after the stages.
const (
	gather Stage = Stages + iota
	gatherBackward
	// Of a Section, in the order of a microbatch.
	receiveRows
	sendRows
	receiveGrads
	sendGrads
)

// span is the lifetime of a value in a phase: from the event that writes it to the last one
// that reads it. buffer is its matrix.
type span struct {
	root             ref
	phase            phase
	cols             int
	from, to, buffer int
	open             bool // gathers of other intervals read it
}

// plan is the storage plan of a network's values.
type plan struct {
	net        *Network
	memory     Memory // the lifetime only
	inChain    bool
	narrow     bool
	exchanged  bool
	sliced     bool // gathers read slices of rows, which are copied first
	events     []event
	laid       []event // events, with stages that run again
	spans      []span
	index      map[spanKey]int // position in spans
	recomputed map[Do][]Do     // stages to repeat before a stage of the backward pass
	widths     []int           // of the buffers
	streamed   []bool          // buffers that no gather reads, if Spec.Streams
	slotted    []bool          // buffers that are stored by worker (InChain)
	idle       map[Do]int      // by the stage before a gather: a buffer that is unused until the gather has ended
	gatherOnly map[Do]bool     // stages after which only the gather reads its rows, for the last time
}

// spanKey names a span.
type spanKey struct {
	root  ref
	phase phase
}

// newPlan assigns storage to the values of a network.
func newPlan(n *Network, m Memory) *plan { return newSectionPlan(n, n.Section(), m) }

// newSectionPlan assigns storage to the values of a section. Only the memories InStep and Recompute
// allow fewer than all layers.
func newSectionPlan(n *Network, s Section, m Memory) *plan {
	p := &plan{net: n, memory: m.Lifetime(), events: n.sectionEvents(s)}
	p.inChain = m&InChain > 0 && n.Spec.Chains()
	p.exchanged = p.inChain && m&Exchanged > 0
	p.sliced = p.inChain && !p.exchanged && n.Spec.Slices > 1
	p.narrow = p.inChain && !p.sliced && m&Narrow > 0
	switch p.memory {
	case Forward:
		p.events = n.order(false)
	case Emission:
		p.events = n.emission()
	}
	p.layOut(nil)
	if p.memory == Recompute {
		p.recompute()
	}
	return p
}

// layOut finds spans and buffers if the dropped stages run again.
func (p *plan) layOut(dropped []Do) {
	p.spans, p.index, p.recomputed = p.spans[:0], map[spanKey]int{}, map[Do][]Do{}
	p.widths, p.streamed, p.slotted = p.widths[:0], p.streamed[:0], p.slotted[:0]
	makers := p.makers(dropped)
	events := p.repeat(makers)
	p.laid = events
	p.spans = slices.Grow(p.spans, len(events)) // approximate length
	ends := lastOverlaps(events)
	for i, e := range events {
		for _, r := range slices.Concat(e.writes, e.reads) {
			p.extendSpan(r, e.phase(), i, i, makers)
		}
		for _, r := range e.shared {
			if p.narrow {
				p.extendSpan(r, e.phase(), i-1, i-1, makers) // the copy is made after the stage before
				continue
			}
			s := p.extendSpan(r, e.phase(), i, ends[i], makers)
			s.open = !p.sliced
		}
	}
	p.assignBuffers(p.chains(events))
	p.findIdleBuffers(events, ends)
	if p.sliced {
		p.widths, p.slotted, p.streamed = append(p.widths, p.net.spare()), append(p.slotted, true), append(p.streamed, false)
	}
}

// maxIdleLookups is the maximum number of events for which idle buffers are searched: each
// search visits all values.
const maxIdleLookups = 1024

// findIdleBuffers finds the buffers that are idle while rows of a layer are gathered. An idle
// buffer has the width of the rows. Its value was read for the last time before the stage that
// computes the rows, or by that stage in the same interval.
func (p *plan) findIdleBuffers(events []event, ends []int) {
	p.idle, p.gatherOnly = map[Do]int{}, map[Do]bool{}
	if p.memory == Separate || p.memory == Emission || len(events) > maxIdleLookups {
		return
	}
	// The buffer of the preceding gather, and the last event at which other intervals may still be
	// in that gather.
	taken, until := -1, -1
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
				p.gatherOnly[before] = true
			}
		}
	}
}

// idleBuffer returns a buffer of the given width without a value from event from to event to,
// except values whose last reader is event from. It never returns buffer taken.
func (p *plan) idleBuffer(from, to, width int, reads []ref, taken int) (buffer int, ok bool) {
	used := map[int]bool{taken: true}
	for _, s := range p.spans {
		last := s.to == from && s.from < from && !s.open && slices.Contains(reads, s.root)
		used[s.buffer] = used[s.buffer] || s.from <= to && s.to >= from && !last
	}
	for b, w := range p.widths {
		if w == width && !used[b] && !p.streamed[b] && !p.slotted[b] {
			return b, true
		}
	}
	return 0, false
}

// readsLast reports whether only the gather of event i reads its shared rows after the stage
// before has computed them. Three readers must not exist: a stage up to event end, when other
// intervals may still gather; any later stage; and the preceding gather, in which other intervals
// may still be.
func (p *plan) readsLast(events []event, i, end int) bool {
	e := events[i]
	r := e.shared[0]
	s, ok := p.find(e.phase(), r.layer, r.value)
	others := len(e.shared) > 1 && e.Stage == gatherBackward // forward, the others are rows that ranks send (Spec.Whole)
	if !ok || others || s.to > end || slices.Contains(e.reads, r) {
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

// lastOverlaps returns, for each event, the last event that an interval can reach while
// another interval is still in the given event: the last event before another gather.
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

// extendSpan extends the span of a root from event i to event to. Only dropped values have a
// separate span in the backward pass.
func (p *plan) extendSpan(r ref, at phase, i, to int, makers map[ref]int) *span {
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

// assignBuffers assigns a buffer to each span, in the order of their start. It reuses the buffer of a
// value that is no longer read, if the widths are equal. With unequal widths, an asynchronous interval
// would overwrite rows of other intervals. If Spec.Streams is set, values that gathers read at random
// and values that are read in order do not share buffers. chains has the chain of each event.
func (p *plan) assignBuffers(chains []int) {
	type pool struct {
		cols           int
		slotted, whole bool
	}
	free := map[pool]*buffers{}
	for i := range p.spans {
		s := &p.spans[i]
		slotted := chains != nil && !s.open && chains[s.from] == chains[s.to]
		key := pool{s.cols, slotted, !slotted && p.net.Spec.Streams && s.open}
		of := free[key]
		if of == nil {
			of = &buffers{}
			free[key] = of
		}
		if len(*of) > 0 && (*of)[0].until < s.from && p.memory != Separate {
			s.buffer = (*of)[0].number
			(*of)[0].until = s.to
			heap.Fix(of, 0)
			continue
		}
		s.buffer = len(p.widths)
		p.widths = append(p.widths, s.cols)
		p.streamed = append(p.streamed, !slotted && p.net.Spec.Streams && !s.open)
		p.slotted = append(p.slotted, slotted)
		heap.Push(of, buffer{s.buffer, s.to})
	}
}

// buffers has the buffers of one width, ordered by the time when they are free.
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

// chains returns, with InChain, a number for each event: an interval runs all events of one number
// without a pause, in one task after another. nil means that no values are stored by worker.
func (p *plan) chains(events []event) []int {
	if !p.inChain {
		return nil
	}
	return p.sequences(events)
}

// sequences numbers the sequences of tasks without a pause of other intervals between them.
func (p *plan) sequences(events []event) []int {
	list, k := make([]int, len(events)), 0
	for i, e := range events {
		if e.Stage >= Stages || e.Stage == Loss && p.net.Spec.WholeOutput || p.net.awaitsSums(e.Do) {
			k++
		}
		list[i] = k
		if e.Stage == gatherBackward && p.exchanged {
			k++
		}
	}
	return list
}

// columns returns the number of floats per vertex.
func (p *plan) columns() int { return p.sumWidths(false) }

// sumWidths returns the sum of the widths of buffers that are stored by worker, or by vertex.
func (p *plan) sumWidths(slotted bool) (sum int) {
	for b, w := range p.widths {
		if p.slotted[b] == slotted {
			sum = size.Sum(sum, w)
		}
	}
	return sum
}

// find returns the span of a value in a phase.
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

// moves reports whether values of layer l can have other storage in the backward pass: if some
// are recomputed, and in the first layer, whose storage a frame sets to its input
// (Frame.enter).
func (p *plan) moves(l int) bool {
	return l == 0 || len(p.recomputed) > 0
}
