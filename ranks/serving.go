package ranks

import (
	"fmt"
	"slices"

	"siafu/kernels"
	"siafu/ranks/engine"
	"siafu/ranks/inject"
	"siafu/ranks/params"
	"siafu/ranks/params/protocol"
	"siafu/ranks/world"
)

// serve runs a parameter server.
func (r *begun) serve() error {
	defer r.world.SetLimits(r.limits)
	if r.cfg.LocalEpochs > 0 {
		return r.serveMeans()
	}
	u, err := r.newUpdater(kernels.NewTeam(1))
	if err != nil {
		return err
	}
	var timed protocol.Updater = u
	if r.timeline.recorders != nil {
		timed = timedUpdater{u, r.timeline.recorders[0]}
	}
	if r.asynchronous() {
		return r.serveAsync(r.weights, timed)
	}
	return r.serveFrom(r.from.Epoch, r.weights, timed)
}

// serveFrom serves a synchronous run after an epoch.
func (r *begun) serveFrom(epoch int, weights []float32, u protocol.Updater) error {
	return r.serveLayers(r.cfg.Steps(epoch), params.Layers(r.net), weights, u)
}

// serveLayers serves layers of weights after the given number of steps.
func (r *begun) serveLayers(steps int, layers []protocol.Range, weights []float32, u protocol.Updater) error {
	setting := params.Setting(r.Graph, r.Servers, steps)
	s := protocol.New(setting, r.rank-r.Graph, layers, weights, u)
	r.world.SetLimits(r.waitLimits(s.Version, s.AwaitedRanks))
	return params.NewServer(r.world, params.TagSync, s, r.watcher, r.fault).Run()
}

// serveMeans serves the sums of averaging ranks.
func (r *begun) serveMeans() error {
	o, err := kernels.NewOptimizer(r.cfg.OptimizerConfig())
	if err != nil {
		return err
	}
	layers := params.MeansLayers(r.net.NumWeights(), o.StateSlots())
	return r.serveLayers(0, layers, make([]float32, layers[0].Hi), params.Means{})
}

// serveAsync runs a server in a run that begins in bounded asynchrony.
func (r *begun) serveAsync(weights []float32, u protocol.Updater) error {
	for trained := r.from.Epoch; ; {
		setting, err := params.AsyncSetting(r.world, r.Graph, 0, engine.StalenessBound(r.cfg), trained)
		if err != nil {
			return err
		}
		s := engine.NewMachine(r.cfg, setting, r.rank-r.Graph, params.Layers(r.net), weights, u)
		r.world.SetLimits(r.waitLimits(s.Version, s.AwaitedRanks))
		in := params.NewServer(r.world, params.TagAsync, s, r.watcher, r.fault)
		if err := in.Run(); err != nil {
			return err
		}
		m := s.Memory()
		r.stash = max(r.stash, m.PeakBytes+m.PeakWaiting)
		v, err := engine.BroadcastVerdict(r.world, engine.Verdict{})
		if err != nil {
			return err
		}
		if v.Next != engine.EndRun || v.Save {
			if err := r.settle(in, v, u); err != nil {
				return err
			}
		}
		switch {
		case v.Stop || v.Next == engine.EndRun:
			return nil
		case v.Next == engine.SwitchToSync:
			return r.serveFrom(v.Epoch, slices.Clone(s.Weights()), u)
		}
		weights, trained = slices.Clone(s.Weights()), v.Epoch
	}
}

// settle receives sums of other servers that may still be in transit, and sends the
// optimiser's state if it is to be saved.
func (r *begun) settle(s *params.Server, v engine.Verdict, u protocol.Updater) error {
	if err := s.ServeUntil(v.Epoch + 1); err != nil || !v.Save {
		return err
	}
	r.fault.At(inject.Save, v.Epoch)
	r.watcher.Served()
	if r.rank != r.Graph {
		return nil
	}
	return params.SendState(r.world, u.State())
}

// asynchronous reports whether the run begins, or continues, in bounded asynchrony.
func (r *begun) asynchronous() bool { return r.cfg.Asynchronous() && !r.from.Switched }

// waitLimits returns the limits of a server. A graph rank knows better which rank it waits
// for, so its report comes first.
func (r *member) waitLimits(epoch func() int, owing func() []int) world.Limits {
	l := r.limits
	l.During, l.Awaited = func() string { return fmt.Sprintf("gradients of epoch %d", epoch()) }, owing
	l.Warn, l.Abort = l.Warn*5/4, l.Abort*5/4
	return l
}
