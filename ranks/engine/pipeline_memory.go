package engine

import (
	"iter"
	"slices"

	"siafu/halo/sample"
	"siafu/kernels"
	"siafu/kernels/model"
)

// stageWork is the memory of a stage's layers: the microbatches whose activations are stored.
type stageWork struct {
	section model.Section
	slots   []*microbatch       // all; a slot is free before its first use in a step, and after a backward pass
	stored  map[int]*microbatch // by microbatch of the step: those that have begun and whose slot has no other one
	progress
	losses []float64      // of the last stage, by microbatch
	sent   [tags][][]byte // with redundancy, by kind and microbatch: the messages of the step, for a receiver that is replaced
	// In a resumed step, by kind: the number of messages that the receiver had before.
	arrived [tags]int
	grad    []float32 // flat: the sum of the gradients of weights over the microbatches so far
}

// microbatch is the memory of a microbatch in the layers of a stage.
type microbatch struct {
	sampledSteps
	work     *stageWork
	clusters *sample.Clusters
	number   int // in the step
	used     bool
	run      *lockstep
	rows     int
}

// newWork allocates the memory of a number of microbatches in a section.
func (p *pipelineRank) newWork(net *model.Network, of model.Section, most, slots int) *stageWork {
	w := &stageWork{section: of, stored: map[int]*microbatch{}, losses: make([]float64, p.settings.Microbatches),
		grad: make([]float32, net.Spec.NumWeights())}
	for k := range w.sent {
		w.sent[k] = make([][]byte, p.settings.Microbatches)
	}
	for range slots {
		p.addSlot(w, net, most)
	}
	return w
}

// addSlot allocates the memory of another microbatch.
func (p *pipelineRank) addSlot(w *stageWork, net *model.Network, most int) {
	passes := p.count * p.settings.Microbatches
	m := &microbatch{work: w, clusters: p.joined.Fork()}
	var like []*interval
	if len(w.slots) > 0 {
		like = w.slots[0].template.intervals
	}
	update := func(s *lockstep, layer int, o kernels.Ops) { p.addGradient(w, m.number, s, layer, o) }
	m.sampledSteps = sampledSteps{p.e.newSectionBuffers(p.t, net, w.section, []int{most}, passes, update, like)}
	w.slots = append(w.slots, m)
}

// computed yields the stages that this rank computes.
func (p *pipelineRank) computed() iter.Seq2[int, *stageWork] {
	return func(yield func(int, *stageWork) bool) {
		for stage := range p.settings.Stages {
			if w, ok := p.works[stage]; ok && !yield(stage, w) {
				return
			}
		}
	}
}

// recordArrays records the memory of the engine, with the graph work of all microbatches.
func (p *pipelineRank) recordArrays() {
	used := p.e.Arena.Used()
	for _, w := range p.computed() {
		for _, m := range w.slots {
			used += m.scratch.Used()
		}
	}
	p.e.arrays = max(p.e.arrays, used)
}

// reset frees all slots.
func (w *stageWork) reset() {
	clear(w.stored)
	w.progress = progress{}
	clear(w.losses)
	w.arrived = [tags]int{}
	for _, list := range w.sent {
		clear(list)
	}
	for _, m := range w.slots {
		m.used = false
	}
}

// take assigns a free slot to a microbatch.
func (w *stageWork) take(number int) *microbatch {
	m := w.slots[slices.IndexFunc(w.slots, func(m *microbatch) bool { return !m.used })]
	if w.stored[m.number] == m {
		delete(w.stored, m.number)
	}
	m.number, m.used, w.stored[number] = number, true, m
	return m
}

func (m *microbatch) network() *model.Network { return m.template.store.Network }

func (m *microbatch) section() model.Section { return m.template.store.Section }
