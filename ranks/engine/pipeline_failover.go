package engine

import (
	"errors"
	"fmt"
	"slices"

	"siafu/internal/mapped"
	"siafu/internal/wire"
	"siafu/kernels/model"
	"siafu/ranks/params"
	"siafu/ranks/schedule/pipeline"
	"siafu/ranks/world"
)

// The failover of a pipeline (Bamboo, NSDI'23, §3.5). After a loss all graph ranks begin another view, in
// which the shadow of a lost stage also has this stage. They continue in the middle of the newest step that
// any of them has begun:
//
//   - A rank of this step has the activations and gradients of microbatches that it had (StepState).
//   - A lost stage has what its shadow has computed for it: with eager forward passes (eflb) the
//     activations, with eager backward passes (efeb) also the gradients.
//   - Each stage tells its neighbours which messages it has received. They send the others again.
//   - All other work of the step runs as in the list of the stage, so that the sums have the same bits.
//
// Weights and the optimiser's state are the same on all ranks: one of the step's ranks has them.
//
// Design note: the paper's shadow runs one merged list. Here the two stages remain two members of the
// world, which share the threads of their process, and each waits only for its own messages.

// progress counts the microbatches of a step that a stage has processed. Each instruction runs in
// ascending order of microbatches.
type progress struct{ received, forwards, sentRows, returned, backwards, sentGrads int }

// of returns the count of an operation, if the operation is counted.
func (g *progress) of(op pipeline.Op) (n *int, ok bool) {
	switch op {
	case pipeline.ReceiveActivations:
		return &g.received, true
	case pipeline.Forward, pipeline.RedundantForward:
		return &g.forwards, true
	case pipeline.SendActivations:
		return &g.sentRows, true
	case pipeline.ReceiveGradients, pipeline.ReceiveRedundantGradients:
		return &g.returned, true
	case pipeline.Backward, pipeline.RedundantBackward:
		return &g.backwards, true
	case pipeline.SendGradients:
		return &g.sentGrads, true
	}
	return nil, false
}

// count counts an executed instruction.
func (w *stageWork) count(op pipeline.Op) {
	if n, ok := w.of(op); ok {
		*n++
	}
}

// workOf returns the stage whose work an instruction is part of.
func (p *pipelineRank) workOf(i pipeline.Instruction) int {
	if i.Op == pipeline.SendRedundantGradients {
		return p.stage
	}
	return i.Stage
}

// isDone reports whether an instruction has been executed in an earlier view, or is not executed: redundant
// work for a stage on the same process, and redundant backward passes in a resumed step.
func (p *pipelineRank) isDone(i pipeline.Instruction) bool {
	if i.Op.Redundant() {
		if !p.isProtected(i.Stage) || p.resumes && i.Op != pipeline.RedundantForward {
			return true
		}
	}
	w := p.works[p.workOf(i)]
	n, ok := w.of(i.Op)
	return ok && i.Microbatch < *n
}

// StepState is the state of a graph rank in a step of its pipeline, which a loss has interrupted. The
// zero value is the state in no step.
type StepState struct {
	Epoch, K int       // step K of the epoch, from 0
	weights  []float32 // that the step starts from, then the optimiser's state; empty: unknown

	stage, stages int
	loss          epochLoss         // of this rank in the epoch's steps before
	next          epochLoss         // of the last stage, on its shadow
	works         map[int]workState // by stage
}

// workState is the state of a stage's layers.
type workState struct {
	progress
	values [][][]float32 // by microbatch: of its slot; empty: none
	grad   []float32
	losses []float64
	sent   [tags][][]byte
}

// Protected returns the state of the stage that this rank protects.
func (s StepState) Protected() StepState {
	next := (s.stage + 1) % s.stages
	of := StepState{Epoch: s.Epoch, K: s.K, weights: s.weights, stage: next, stages: s.stages, loss: epochLoss{0, true}}
	if next == s.stages-1 {
		of.loss = s.next
	}
	w := s.works[next]
	if w.returned = max(w.returned, w.backwards); next > 0 {
		w.received = w.forwards // whose input was the output of this rank
	}
	of.works = map[int]workState{next: w}
	return of
}

// survives reports whether other ranks continue a step in which this rank is lost.
func (p *pipelineRank) survives() bool {
	return p.t.replaceable() && p.settings.Redundancy != pipeline.Off
}

// interrupted stores the state of the k-th step of an epoch if the view has ended in it, and returns err.
func (p *pipelineRank) interrupted(k int, err error) error {
	ended := (*world.EndedError)(nil)
	if !errors.As(err, &ended) || !p.survives() {
		return err
	}
	own, ok := p.t.source.(*params.Replicated)
	if !ok {
		return err
	}
	s := StepState{Epoch: p.epoch, K: k, stage: p.stage, stages: p.settings.Stages, loss: epochLoss{p.began, true}, next: p.next,
		works: map[int]workState{}}
	weights := make([]float32, len(p.t.flat))
	if failed := own.Pull(0, weights); failed != nil {
		return errors.Join(err, failed)
	}
	slots, _ := own.State()
	s.weights = append(weights, slices.Concat(slots...)...)
	for stage, w := range p.computed() {
		s.works[stage] = w.export()
	}
	p.t.views.StoreStep(s)
	return err
}

// export returns the state of a stage's layers. Attention has more values of a forward
// pass than the layers, in graph work: its unfinished microbatches run again.
func (w *stageWork) export() workState {
	s := workState{progress: w.progress, values: make([][][]float32, len(w.losses)), grad: w.grad, losses: slices.Clone(w.losses)}
	for k := range w.sent {
		s.sent[k] = slices.Clone(w.sent[k])
	}
	if w.slots[0].network().Spec.Attends() {
		s.received, s.forwards, s.returned = s.backwards, s.backwards, s.backwards
		return s
	}
	for k := w.backwards; k < max(w.received, w.forwards); k++ {
		s.values[k] = w.stored[k].template.store.Export(w.stored[k].rows)
	}
	return s
}

// endStep adds up the losses of the last stage in a step, on its shadow.
func (p *pipelineRank) endStep() {
	p.resumes, p.resuming = false, StepState{}
	if p.stage == p.settings.Stages-2 {
		for _, x := range p.works[p.stage].losses {
			p.next.sum += x
		}
	}
}

// resume returns the step of an epoch with which it begins: 0, or the one in which the last view has
// ended. Collective over the graph ranks.
func (p *pipelineRank) resume(epoch int) (k int, err error) {
	s, first := p.from, !p.begun
	p.from, p.begun, p.next = StepState{}, true, epochLoss{0, true}
	if !p.survives() || !first {
		return 0, nil
	}
	steps := make([]int64, p.e.Graph.Size()) // of each rank, 0: none
	if s.Epoch == epoch && len(s.weights) > 0 {
		steps[p.e.Graph.Rank()] = int64(s.K + 1)
	}
	if err := world.SumInt64s(p.e.Graph, steps); err != nil {
		return 0, err
	}
	newest := slices.Max(steps)
	if newest == 0 {
		return 0, nil
	}
	k = int(newest - 1)
	same := s.Epoch == epoch && s.K == k
	loss, sums := p.lossBefore(s, epoch, k), make([]int64, 3) // unknown losses, forward and backward passes
	if !loss.known {
		sums[0] = 1
	}
	if same {
		sums[1], sums[2] = int64(s.works[p.stage].forwards), int64(s.works[p.stage].backwards)
	}
	if err := world.SumInt64s(p.e.Graph, sums); err != nil || sums[0] > 0 {
		return 0, err
	}
	if err := p.restoreWeights(s, k, slices.Index(steps, newest)); err != nil {
		return 0, err
	}
	p.t.now.loss, p.resumes, p.next = loss.sum, true, epochLoss{0, k == 0}
	if same {
		p.resuming, p.next = s, s.next
	}
	p.e.Reporter.Note(fmt.Sprintf("pipeline resumed_epoch=%d step=%d forward_passes=%d backward_passes=%d\n", epoch, k+1, sums[1], sums[2]))
	return k, p.t.pull(epoch, p.t.cfg.Steps(epoch-1)+1+k)
}

// lossBefore returns the loss of this rank in the steps of an epoch before step k. Only the last stage has
// a loss.
func (p *pipelineRank) lossBefore(s StepState, epoch, k int) epochLoss {
	switch {
	case p.stage < p.settings.Stages-1 || k == 0:
		return epochLoss{0, true}
	case s.Epoch != epoch || s.K < k-1:
		return epochLoss{}
	case s.K == k:
		return s.loss
	}
	loss := s.loss // its step is complete, because others have begun the next one
	for _, x := range s.works[p.stage].losses {
		loss.sum += x
	}
	return loss
}

// restoreWeights sets the weights and the optimiser's state to those of a rank that has them. Collective
// over the graph ranks.
func (p *pipelineRank) restoreWeights(s StepState, k, root int) error {
	own, ok := p.t.source.(*params.Replicated)
	if !ok {
		return nil
	}
	n := len(p.t.flat)
	all := make([]float32, n*(1+own.Updater().Slots()))
	if p.e.Graph.Rank() == root {
		all = s.weights
	}
	if err := p.e.Graph.Bcast(mapped.Bytes(all), root); err != nil {
		return err
	}
	own.Restore(all[:n], params.Slots(all[n:], n))
	return nil
}

// catchUp restores the microbatches of a resumed step, and sends the messages that neighbours have not
// received.
func (p *pipelineRank) catchUp() error {
	if !p.resumes {
		return nil
	}
	for stage, w := range p.computed() {
		if s, ok := p.resuming.works[stage]; ok {
			if err := p.restore(w, s); err != nil {
				return err
			}
		}
	}
	own := p.works[p.stage]
	for _, x := range own.losses[:min(own.forwards, len(own.losses))] {
		if p.stage == p.settings.Stages-1 {
			p.t.now.loss += x
		}
	}
	for _, peer := range p.neighbours() {
		count := own.received
		if peer > p.stage {
			count = own.returned
		}
		h := wire.Message{Kind: wire.Progress, Numbers: wire.Numbers{count}}
		if err := p.outbox.Send(peer, tagProgress, h.Append); err != nil {
			return err
		}
	}
	for _, peer := range p.neighbours() {
		in, err := p.e.Stages.Recv(peer, tagProgress)
		if err != nil {
			return err
		}
		tag, sent := tagActivations, &own.sentRows
		if peer < p.stage {
			tag, sent = tagGradients, &own.sentGrads
		}
		h, err := wire.Open("train", peer, in.Data, wire.Progress, wire.Progress)
		if err != nil {
			return err
		}
		own.arrived[tag] = h.Numbers[0]
		for *sent = 0; *sent < p.settings.Microbatches && len(own.sent[tag][*sent]) > 0; *sent++ {
			if *sent < own.arrived[tag] {
				continue
			}
			if err := p.outbox.Send(peer, tag, func(b []byte) []byte { return append(b, own.sent[tag][*sent]...) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// neighbours returns the stages before and after this one.
func (p *pipelineRank) neighbours() (list []int) {
	if p.stage > 0 {
		list = append(list, p.stage-1)
	}
	if p.stage < p.settings.Stages-1 {
		list = append(list, p.stage+1)
	}
	return list
}

// restore puts the microbatches of a state into the slots of a stage.
func (p *pipelineRank) restore(w *stageWork, s workState) error {
	w.progress = s.progress
	copy(w.grad, s.grad)
	copy(w.losses, s.losses)
	for k := range s.sent {
		copy(w.sent[k], s.sent[k])
	}
	for number, values := range s.values {
		if len(values) == 0 {
			continue
		}
		if !slices.ContainsFunc(w.slots, func(m *microbatch) bool { return !m.used }) {
			p.addSlot(w, w.slots[0].network(), w.slots[0].stepBuffers.rows)
		}
		m, err := p.begin(w, number)
		if err != nil {
			return err
		}
		m.template.store.Import(m.rows, values)
		if w.section.First == 0 { // the input of the first layer may be features with dropout
			for _, i := range m.run.intervals {
				i.frame.Enter(m.template.store.Do(0, model.Emit), p.pass(number))
			}
		}
	}
	return nil
}
