package ranks

import (
	"errors"
	"os"

	"siafu/internal/host"
	"siafu/ranks/bridge"
	"siafu/ranks/inject"
	"siafu/ranks/runfolder"
	"siafu/ranks/world"
)

// A run with bridges has two worlds: the world of all members, for messages between graph
// ranks and bridges, and the world without bridges, which is run.world.

// enter divides the members into bridges and others. Collective over the run's world.
func (r *member) enter() (err error) {
	if r.view.Parts == 0 { // every rank of the world has one part
		if r.view, err = r.cfg.View(r.world.Size()); err != nil {
			return err
		}
	}
	if r.view.Bridges == 0 {
		return nil
	}
	if r.world, err = r.everyone.Sub(world.All(r.view.CoreMembers())); err != nil {
		return err
	}
	if r.everyone.Rank() < r.view.Parts {
		r.client = bridge.NewClient(r.everyone, r.view.Bridge(r.everyone.Rank()))
	}
	return nil
}

func (r *member) isBridge() bool { return r.everyone.Rank() >= r.view.CoreMembers() }

// leaveBridge ends the bridge, if there is one, with the error that all members end with. Any
// other failure ends the bridge with the world.
func (r *member) leaveBridge(end error) error {
	if r.client == nil {
		return end
	}
	shared := end
	if !errors.As(end, &agreed{}) {
		shared = nil
	}
	if err := r.client.Leave(shared); end == nil {
		return err
	}
	return end
}

// bridge runs a bridge rank.
func (r *member) bridge() error {
	me := r.everyone.Rank()
	struck, err := inject.New(os.Getenv, me)
	if err != nil {
		return err
	}
	r.everyone.SetLimits(world.Limits{}) // graph ranks wait for it, but it waits for none of them
	open, stop := r.transportOpener()
	end, err := bridge.Run(bridge.Options{
		Comm: r.everyone, Parts: r.view.Bridged(me), Open: open,
		Report: func() any {
			return runfolder.RankReport{Rank: r.view.Rank(me), Role: "bridge", Host: r.everyone.Hosts()[me], PeakRSSBytes: host.PeakRSS()}
		},
		At: func(epoch int) { struck.At(inject.Task, epoch) },
	})
	if closing := stop(); err == nil {
		err = closing
	}
	if err == nil && end != nil {
		return agreed{end}
	}
	return err
}

// bridgeReports returns the reports of all bridges, on the first member. Collective over the
// world without bridges.
func (r *member) bridgeReports() (reports []runfolder.RankReport, err error) {
	if r.view.Bridges == 0 {
		return nil, nil
	}
	var said runfolder.RankReport
	if r.rank < r.view.Bridges { // part k is served by bridge k
		err = r.client.Report(&said)
	}
	if err := agree(r.world, err); err != nil {
		return nil, err
	}
	all, err := world.GatherValues(r.world, 0, said)
	return all[:min(r.view.Bridges, len(all))], err
}
