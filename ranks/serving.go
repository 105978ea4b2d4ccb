package ranks

import (
	"fmt"

	"siafu/kernels"
	"siafu/ranks/params"
	"siafu/ranks/params/protocol"
	"siafu/ranks/world"
)

// serve is the life of a parameter server.
func (r *run) serve(weights []float32) error {
	defer r.world.SetLimits(r.limits)
	u, err := r.newUpdater(kernels.NewTeam(1))
	if err != nil {
		return err
	}
	var timed protocol.Updater = u
	if r.recorders != nil {
		timed = timedUpdater{u, newClock(r.recorders[0])}
	}
	if r.asynchronous() {
		return r.serveAsync(weights, timed)
	}
	return r.serveFrom(r.from.epoch, weights, timed)
}

// serveFrom serves a synchronous run after an epoch.
func (r *run) serveFrom(epoch int, weights []float32, u protocol.Updater) error {
	setting := params.Setting(r.Graph, r.Servers, epoch)
	s := protocol.New(setting, r.rank-r.Graph, params.Layers(r.net), weights, u)
	r.world.SetLimits(r.patient(s.Version, s.Owing))
	return params.NewServer(r.world, params.TagSync, s, r.watcher, r.fault).Run()
}

// asynchronous tells whether the run begins, or goes on, in bounded asynchrony.
func (r *run) asynchronous() bool { return r.cfg.Mode == "async" && !r.from.switched }

// patient are the limits of a server. It hears late of what holds up a graph
// rank, who knows better whom it waits for, and so lets it speak first.
func (r *run) patient(epoch func() int, owing func() []int) world.Limits {
	l := r.explained(func() string { return fmt.Sprintf("gradients of epoch %d", epoch()) }, owing)
	l.Warn, l.Abort = l.Warn*5/4, l.Abort*5/4
	return l
}
