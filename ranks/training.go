package ranks

import (
	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/ranks/engine"
	"siafu/ranks/params"
	"siafu/ranks/runfolder"
	"siafu/ranks/stopping"
)

// run trains a graph rank, or serves as a parameter server. Collective over the world.
func (r *begun) run() error {
	if r.isServer() {
		return r.serve()
	}
	if r.asynchronous() {
		return r.trainAsync()
	}
	source, err := r.source(r.from.Epoch, r.weights)
	if err != nil {
		return err
	}
	return r.trainFrom(r.from.Epoch+1, source, r.history())
}

// trainFrom trains synchronously from an epoch on. Collective over the graph
// ranks.
func (r *begun) trainFrom(epoch int, source params.Source, h *stopping.History) error {
	b := engine.Beginning{Epoch: epoch, Exact: r.from.Switched, Part: r.partState, Step: r.views.step(r.member), Rows: r.from.History}
	r.from.History = nil
	if err := r.engine.Train(b, source, h, r.newSaver()); err != nil {
		return err
	}
	r.reporter.result(h)
	return nil
}

// trainAsync trains in bounded asynchrony, and may continue synchronously. Collective over
// the world.
func (r *begun) trainAsync() error {
	h := r.history()
	var u *params.Updater
	var err error
	if r.rank == 0 && r.Servers == 0 {
		if u, err = r.newUpdater(kernels.NewTeam(1)); err != nil {
			return err
		}
	}
	last, v, err := r.engine.TrainAsync(r.from.Epoch, r.weights, u, h, r.newSaver())
	if err != nil {
		return err
	}
	if v.Next == engine.SwitchToSync {
		return r.trainAfter(v.Epoch, last, u, h)
	}
	r.reporter.result(h)
	return nil
}

// trainAfter continues synchronously. Without servers every rank receives the optimiser's
// state from rank 0. Collective over the graph ranks.
func (r *begun) trainAfter(epoch int, weights []float32, u *params.Updater, h *stopping.History) error {
	r.reporter.log("switch_to_sync after_epoch=%d", epoch)
	r.from.Switched = true
	source, err := r.source(epoch, weights)
	if err != nil {
		return err
	}
	if own, ok := source.(*params.Replicated); ok {
		slots := own.Updater().State()
		if u != nil {
			slots = u.State()
		}
		for _, state := range slots {
			if err := r.engine.Graph.Bcast(mapped.Bytes(state), 0); err != nil {
				return err
			}
		}
		own.Updater().Restore(slots)
	}
	return r.trainFrom(epoch+1, source, h)
}

// history returns the history of earlier epochs.
func (r *begun) history() *stopping.History {
	c := r.cfg
	rule := stopping.Rule{Patience: c.Patience, Monitor: c.Monitor, Target: c.TargetAcc, Validated: r.validates()}
	if r.asynchronous() {
		rule.Within = c.SwitchToSync
	}
	if c.Monitor == stopping.OnPenalty {
		rule.Penalty = params.Penalty(c.OptimizerOf(r.Graph), r.net, c.WeightDecayOn == "all")
	}
	h := stopping.New(rule, r.net.Params())
	if best := r.from.Best; best != nil {
		var last runfolder.Epoch
		if r.from.Last != nil {
			last = *r.from.Last
		}
		h.Resume(r.flat(best.Weights), best.Line, last, r.from.Record)
		best.Weights = nil // not needed again, like the slots below
	}
	return h
}

// validates reports whether evaluations have validation vertices, or held-out edges for link prediction.
func (r *joined) validates() bool {
	if r.task == graph.Links {
		return r.heldOut != nil && r.heldOut.Val.Edges.Len() > 0
	}
	return r.meta.Val > 0
}

// source returns the source of weights after an epoch. Without servers every rank updates them
// with its own updater.
func (r *begun) source(epoch int, weights []float32) (params.Source, error) {
	if r.Servers > 0 && r.cfg.LocalEpochs == 0 {
		o, err := kernels.NewOptimizer(r.cfg.OptimizerConfig())
		if err != nil {
			return nil, err
		}
		setting := params.Setting(r.Graph, r.Servers, r.cfg.Steps(epoch))
		return params.NewClient(r.world, setting, r.net.Layers(), len(weights), o.StateSlots()), nil
	}
	u, err := r.newUpdater(r.engine.Fork())
	if err != nil {
		return nil, err
	}
	own := params.NewReplicated(r.engine.Graph, r.net, weights, u, r.arena)
	if r.cfg.LocalEpochs == 0 {
		return own, nil
	}
	return params.NewAveraged(own, &r.cfg, r.adder(own), r.arena), nil
}

// adder returns the servers that sum the averaged weights, or nil if the ranks sum them.
func (r *begun) adder(own *params.Replicated) params.Adder {
	if r.Servers == 0 {
		return nil
	}
	all := params.MeansLayers(r.net.NumWeights(), own.Updater().Slots())[0].Hi
	return params.NewClient(r.world, params.Setting(r.Graph, r.Servers, 0), 1, all, 0)
}

// newUpdater makes an updater that computes with ops, with the restored state in a resumed
// run.
func (r *begun) newUpdater(ops kernels.Ops) (*params.Updater, error) {
	var state [][]float32
	if r.from.Epoch > 0 {
		for _, slot := range r.from.Slots {
			state = append(state, r.flat(slot.Tensors))
		}
		r.from.Slots = nil
	}
	return params.NewUpdater(r.cfg.OptimizerOf(r.Graph), r.net, r.cfg.WeightDecayOn == "all", state, ops, r.arena)
}
