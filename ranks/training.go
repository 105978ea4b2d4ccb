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
	source, servers, err := r.source(r.from.Epoch, r.weights)
	if err != nil {
		return err
	}
	return r.trainFrom(r.from.Epoch+1, source, servers, r.history())
}

// trainFrom trains synchronously from an epoch on. Collective over the graph
// ranks.
func (r *begun) trainFrom(epoch int, source params.Source, servers params.Control, h *stopping.History) error {
	b := engine.Beginning{Epoch: epoch, Exact: r.from.Switched, Part: r.partState, Step: r.views.step(r.member), Rows: r.from.History}
	r.from.History = nil
	if err := r.engine.Train(b, source, servers, h, r.newSaver()); err != nil {
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
	r.from.Slots = nil // as on the rank that has restored them
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
	source, servers, err := r.source(epoch, weights)
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
	return r.trainFrom(epoch+1, source, servers, h)
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

// source returns the source of weights after an epoch, and the servers. Without servers every rank
// updates the weights with its own updater. Servers of averaged weights only add them up.
func (r *begun) source(epoch int, weights []float32) (params.Source, params.Control, error) {
	if r.Servers > 0 && r.cfg.LocalEpochs == 0 {
		o, err := kernels.NewOptimizer(r.cfg.OptimizerConfig())
		if err != nil {
			return nil, nil, err
		}
		r.from.Slots = nil // the servers have restored them
		setting := params.Setting(r.Graph, r.Servers, r.cfg.Steps(epoch))
		c := params.NewClient(r.world, setting, params.Layers(r.net), o.StateSlots())
		return c, c, nil
	}
	u, err := r.newUpdater(r.engine.Fork())
	if err != nil {
		return nil, nil, err
	}
	own := params.NewReplicated(r.engine.Graph, r.net, weights, u, r.arena)
	switch {
	case r.cfg.LocalEpochs == 0:
		return own, params.NoServers{}, nil
	case r.Servers == 0:
		return params.NewAveraged(own, &r.cfg, params.PeerAdder{Comm: r.engine.Graph}, r.arena), params.NoServers{}, nil
	}
	c := params.NewClient(r.world, params.Setting(r.Graph, r.Servers, 0), params.MeansLayers(r.net.NumWeights(), u.Slots()), 0)
	return params.NewAveraged(own, &r.cfg, c, r.arena), c, nil
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
