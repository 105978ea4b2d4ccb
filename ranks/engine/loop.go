package engine

import (
	"time"

	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/runfolder"
	"siafu/ranks/schedule"
)

// loop trains from epoch first on, until a hook ends it. A step is one update of the weights:
// an epoch has one, or one for each mini-batch. The tasks of the forward and the backward pass
// overlap: a layer's gradient is summed as soon as it is complete. Full graphs, mini-batches
// and fully asynchronous ranks train in this loop, with sources of weights and hooks of their
// own. Collective over the graph ranks, unless they are fully asynchronous.
func (t *trainer) loop(first int) error {
	for epoch := first; ; epoch++ {
		t.now = epochState{started: time.Now(), line: runfolder.Epoch{Epoch: epoch}}
		if err := t.pull(epoch, t.cfg.Steps(epoch-1)+1); err != nil {
			return err
		}
		if leave, err := t.before.run(&t.now); leave || err != nil {
			return err
		}
		start, err := t.steps.resume(epoch)
		if err != nil {
			return err
		}
		for k := start; k < max(t.cfg.Batches(), 1); k++ {
			step := t.cfg.Steps(epoch-1) + 1 + k
			if k > 0 {
				if err := t.pull(epoch, step); err != nil {
					return err
				}
			}
			if err := t.steps.train(epoch, k, step, t.now.forwardDone); err != nil {
				return t.steps.interrupted(k, err)
			}
			if err := t.timed(schedule.Update, epoch, func() error { return t.source.Step(step, t.grad) }); err != nil {
				return t.steps.interrupted(k, err)
			}
			t.steps.endStep()
		}
		if _, err := t.after.run(&t.now); err != nil {
			return err
		}
	}
}

type epochState struct {
	line        runfolder.Epoch
	started     time.Time
	forwardDone bool    // the evaluation was the forward pass of training, with its loss: only the backward pass remains
	loss        float64 // training loss of this rank
}

// hook is a part of an epoch before or after the steps of the epoch, on every graph rank. leave
// skips the later hooks. A hook before the steps also ends the loop with leave.
type hook func(e *epochState) (leave bool, err error)

// hooks run in order.
type hooks []hook

func (list hooks) run(e *epochState) (leave bool, err error) {
	for _, h := range list {
		if leave, err = h(e); leave || err != nil {
			return leave, err
		}
	}
	return false, nil
}

// pull fetches the weights that a step starts from, counted from 1 over the run.
func (t *trainer) pull(epoch, step int) error {
	return t.timed(schedule.Update, epoch, func() error {
		err := t.source.Pull(step, t.flat)
		t.loadWeights()
		return err
	})
}

// loadWeights copies the weights to the intervals' memory.
func (t *trainer) loadWeights() { kernels.Write(t.adder, t.sharedWeights, t.flat) }

// sumLayer sums a layer's gradients of a pass of s, in the order of intervals.
func (t *trainer) sumLayer(s *lockstep, layer int, o kernels.Ops) {
	at := t.layers[layer]
	sum, grad := t.deviceGrad.Part(at.Lo, at.Hi), t.grad[at.Lo:at.Hi]
	t.parts = t.parts[:0]
	for _, list := range [][]*interval{s.intervals, s.pass.route.localGhosts.gradIntervals(layer)} {
		for _, i := range list {
			t.parts = append(t.parts, i.frame.LayerGrad(layer))
		}
	}
	kernels.Sum(o, sum, t.parts)
	kernels.Read(o, grad, sum)
	if layer == len(t.layers)-1 {
		own := t.pairing.scorer.weightGrad()
		copy(grad[len(grad)-len(own):], own)
	}
}

// train runs the forward pass, unless it has already run, and the backward pass. Collective
// over the graph ranks.
func (s *lockstep) train(p model.Pass, forwardDone bool) error {
	r := s.routes.training
	if forwardDone {
		return s.run(passRun{Pass: p, route: r, walk: r.backwardWalk})
	}
	if err := s.refreshAhead(p); err != nil {
		return err
	}
	return s.run(passRun{Pass: p, route: r, walk: r.epochWalk, count: s.countsTraining})
}
