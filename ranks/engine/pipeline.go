package engine

import (
	"math"
	"slices"

	"siafu/graph/shard"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/schedule"
	"siafu/ranks/schedule/pipeline"
	"siafu/ranks/world"
)

// pipelineRank is a graph rank with a stage of a pipeline of layers (Bamboo, NSDI'23, §3.2). It runs the
// instructions of its stage for each step: K microbatches, each a mini-batch of joined clusters. All stages
// of a pipeline choose the same clusters from the same partition, so that only activations and their
// gradients are sent.
//
// The gradients of a layer are added in the order of microbatches, on the rank of its stage. In the sum
// over all graph ranks, the other ranks have -0, which changes no bit of another number. Therefore the
// number of stages, the schedule and the redundancy change no bit of the weights.
type pipelineRank struct {
	*batches
	e        *Engine
	settings pipeline.Settings
	list     []pipeline.Instruction // of a step
	stage    int
	works    map[int]*stageWork // by stage: of those that this rank computes
	outbox   *world.Outbox

	pipelineStep
	began    float64   // loss of the epoch's steps before the current one
	next     epochLoss // the same of the last stage, if this rank is its shadow
	begun    bool      // the first epoch of the view has begun
	from     StepState // in which the view continues, until its first epoch
	resumes  bool      // ranks have begun the current step in an earlier view
	resuming StepState // of the current step, if it resumes and this rank has begun it
}

// pipelineStep is the current step.
type pipelineStep struct {
	epoch, step int   // from 1 over the run
	own         []int // pieces of this rank
	lossScale   float32
}

// epochLoss is the loss of another rank in an epoch.
type epochLoss struct {
	sum   float64
	known bool
}

// Stages deals the layers of a network to the stages of pipelines, as --pipeline balance=memory says. have counts the
// whole graph.
func Stages(c config.Config, net *model.Network, have shard.Counts) []model.Section {
	settings := c.PipelineSettings()
	factors, costs := slices.Repeat([]float64{1}, settings.Stages), net.Costs(float64(have.Edges)/float64(max(have.Vertices, 1)))
	if c.Balance == config.ByMemory {
		costs = net.StoredColumns()
		for k := range factors {
			factors[k] = float64(settings.InFlight(k))
		}
	}
	return model.Deal(costs, factors)
}

// stages returns the layers of each stage.
func (e *Engine) stages(net *model.Network) []model.Section {
	return Stages(e.Config, net, shard.Counts{Vertices: e.Meta.Vertices, Edges: e.Meta.Edges})
}

// pipelineStage returns the stage of this rank, without memory.
func (e *Engine) pipelineStage() *pipelineRank {
	p := &pipelineRank{e: e, settings: e.Config.PipelineSettings(), stage: e.Stages.Rank()}
	p.list = p.settings.Of(p.stage)
	return p
}

// newPipeline allocates the stage of this rank, which trains mini-batches of joined clusters.
// It continues in an interrupted step, if there is one.
func (e *Engine) newPipeline(b *batches, from StepState) *pipelineRank {
	p := e.pipelineStage()
	p.batches, p.from, p.works, p.outbox = b, from, map[int]*stageWork{}, world.NewOutbox(e.Stages)
	net := e.batchNetwork()
	for stage, of := range e.stages(net) {
		if n := p.slots(stage); n > 0 {
			p.works[stage] = p.newWork(net, of, b.joined.mostRows, n)
		}
	}
	b.current = p.works[p.stage].slots[0].template
	return p
}

// slots returns the number of microbatches in a stage's layers that this rank stores at one time. Results
// of redundant forward passes are stored until the step ends.
func (p *pipelineRank) slots(stage int) int {
	switch {
	case stage == p.stage:
		return p.settings.InFlight(stage)
	case p.protects() && stage == p.settings.Successor(p.stage):
		return p.settings.Microbatches
	}
	return 0
}

// protects reports whether this rank computes the layers of its successor in each step. After a loss, the
// process of a stage may also have its successor, and cannot protect it.
func (p *pipelineRank) protects() bool {
	return p.settings.Redundancy >= pipeline.EagerForward && p.isProtected(p.settings.Successor(p.stage))
}

// isProtected reports whether the shadow of a stage has another process.
func (p *pipelineRank) isProtected(stage int) bool {
	shadow := p.settings.Shadow(stage)
	return shadow != stage && (p.e.Carriers == nil || p.e.Carriers[shadow] != p.e.Carriers[stage])
}

// train runs a step: the k-th of an epoch. Collective over the graph ranks.
func (p *pipelineRank) train(epoch, k, step int, _ bool) error {
	if k == 0 || p.resumes {
		p.shuffle(epoch)
	}
	own, training := p.piecesOf(k, p.e.Peers.Rank())
	p.pipelineStep = pipelineStep{epoch, step, own, p.scale(training)}
	for _, w := range p.computed() {
		w.reset()
	}
	p.began = p.t.now.loss
	if err := p.catchUp(); err != nil {
		return err
	}
	for _, i := range p.list {
		if p.isDone(i) {
			continue
		}
		if err := p.execute(i); err != nil {
			return err
		}
		p.works[p.workOf(i)].count(i.Op)
	}
	return nil
}

// execute runs an instruction.
func (p *pipelineRank) execute(i pipeline.Instruction) error {
	switch i.Op {
	case pipeline.ReceiveActivations:
		m, err := p.begin(p.works[i.Stage], i.Microbatch)
		if err != nil {
			return err
		}
		rows, _ := m.network().Crossing(m.section().First)
		return p.receive(m, i, tagActivations, rows)
	case pipeline.Forward:
		return p.forward(i)
	case pipeline.RedundantForward:
		return p.forwardAgain(i)
	case pipeline.SendActivations:
		m := p.works[i.Stage].stored[i.Microbatch]
		rows, _ := m.network().Crossing(m.section().End)
		return p.send(m, i, tagActivations, rows)
	case pipeline.ReceiveGradients:
		m := p.works[i.Stage].stored[i.Microbatch]
		_, grads := m.network().Crossing(m.section().End)
		return p.receive(m, i, tagGradients, grads)
	case pipeline.Backward, pipeline.RedundantBackward:
		return p.backward(i)
	case pipeline.SendGradients:
		return p.sendGradients(i, tagGradients)
	case pipeline.SendRedundantGradients:
		i.Stage = p.stage // whose input is the output of the protected stage
		return p.sendGradients(i, tagRedundant)
	case pipeline.ReceiveRedundantGradients:
		m := p.works[i.Stage].stored[i.Microbatch]
		_, grads := m.network().Crossing(m.section().End)
		return p.receive(m, i, tagRedundant, grads)
	case pipeline.Reduce:
		p.joinGradients()
	}
	// Apply follows when the source of weights has all gradients. Spill moves results from a device's
	// memory, but these are in host memory.
	return nil
}

// begin joins the clusters of a microbatch, and prepares its passes in a stage's layers.
func (p *pipelineRank) begin(w *stageWork, number int) (*microbatch, error) {
	m := w.take(number)
	joined := p.e.Config.Batching().Joined
	pieces := p.own[number*joined : min((number+1)*joined, len(p.own))]
	err := p.t.timed(schedule.Receive, p.epoch, func() error {
		field := m.clusters.Join(pieces, m.packed)
		m.rows, m.run = len(field.Rows), m.step(field)
		return nil
	})
	m.run.scaleLoss(p.lossScale)
	p.recordArrays()
	return m, err
}

// pass returns the pass of a microbatch: each has its own dropout.
func (p *pipelineRank) pass(number int) model.Pass {
	return model.Pass{Epoch: (p.step-1)*p.settings.Microbatches + number + 1, Train: true}
}

// forward runs the forward pass of a microbatch. The last stage computes the loss.
func (p *pipelineRank) forward(i pipeline.Instruction) (err error) {
	w := p.works[i.Stage]
	m, begun := w.stored[i.Microbatch]
	if !begun {
		if m, err = p.begin(w, i.Microbatch); err != nil {
			return err
		}
	}
	if err := p.run(m, m.run.routes.training.forwardWalk); err != nil {
		return err
	}
	if i.Stage == p.settings.Stages-1 {
		w.losses[m.number] = p.t.localFindings(m.run.intervals)[trainLoss]
		if i.Op == pipeline.Forward {
			p.t.now.loss += w.losses[m.number]
		}
	}
	return nil
}

// run runs a pass of a microbatch.
func (p *pipelineRank) run(m *microbatch, w *walk) error {
	p.current = m.run
	return m.run.run(passRun{Pass: p.pass(m.number), route: m.run.routes.training, walk: w})
}

// forwardAgain runs the forward pass of the protected stage. Its input is the output of this rank's
// stage, or the features for stage 0.
func (p *pipelineRank) forwardAgain(i pipeline.Instruction) error {
	m, err := p.begin(p.works[i.Stage], i.Microbatch)
	if err != nil {
		return err
	}
	if i.Stage > 0 {
		rows, _ := m.network().Crossing(m.section().First)
		m.decode(p.works[p.stage].sent[tagActivations][i.Microbatch], rows)
	}
	if err := p.forward(i); err != nil {
		return err
	}
	rows, _ := m.network().Crossing(m.section().End)
	p.retain(m, tagActivations, p.encode(nil, m, rows))
	return nil
}

// copyValues copies values between the memory of two stages for the same microbatch.
func copyValues(dst, src *microbatch, values []model.Ref) {
	from := src.matrices(values)
	for k, x := range dst.matrices(values) {
		copy(x.Host(), from[k].Host())
	}
}

// backward runs the backward pass of a microbatch. Its slot is then free, but the gradients of its input
// remain until another microbatch begins.
func (p *pipelineRank) backward(i pipeline.Instruction) error {
	m := p.works[i.Stage].stored[i.Microbatch]
	if err := p.run(m, m.run.routes.training.backwardWalk); err != nil {
		return err
	}
	m.used = false
	if i.Op == pipeline.RedundantBackward {
		_, grads := m.network().Crossing(m.section().First)
		p.retain(m, tagGradients, p.encode(nil, m, grads))
	}
	return nil
}

// sendGradients sends the gradients of a microbatch's input. In a pipeline of two stages, the last one
// protects the first, and copies them instead of sending them again.
func (p *pipelineRank) sendGradients(i pipeline.Instruction, tag int) error {
	m := p.works[i.Stage].stored[i.Microbatch]
	_, grads := m.network().Crossing(m.section().First)
	if w, ok := p.works[i.Peer]; ok && p.settings.Stages == 2 {
		if other, begun := w.stored[i.Microbatch]; begun {
			copyValues(other, m, grads)
		}
	}
	return p.send(m, i, tag, grads)
}

// addGradient adds the gradient of a layer to the sum of a stage. It runs after the layer's backward
// pass of each microbatch, in their order.
func (p *pipelineRank) addGradient(w *stageWork, microbatch int, s *lockstep, layer int, o kernels.Ops) {
	p.t.sumLayer(s, layer, o)
	at := p.t.layers[layer]
	sum, one := w.grad[at.Lo:at.Hi], p.t.grad[at.Lo:at.Hi]
	if microbatch == 0 {
		copy(sum, one)
		return
	}
	for k, x := range one {
		sum[k] += x
	}
}

// joinGradients sets the gradients of all layers: -0 for those of other stages.
func (p *pipelineRank) joinGradients() {
	own, zero := p.works[p.stage], float32(math.Copysign(0, -1))
	for k := range p.t.grad {
		p.t.grad[k] = zero
	}
	for layer := own.section.First; layer < own.section.End; layer++ {
		at := p.t.layers[layer]
		copy(p.t.grad[at.Lo:at.Hi], own.grad[at.Lo:at.Hi])
	}
}
