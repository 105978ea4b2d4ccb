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

// A run with bridges has two worlds: that of all members, for what goes between graph
// ranks and bridges, and that of all others, which is run.world and knows nothing of
// bridges.

// enter divides the members into those with a life of their own and bridges. Collective
// over the run's world.
func (r *run) enter() (err error) {
	r.everyone = r.world
	if r.view.Parts == 0 { // every rank of the world has a part
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

// bridges reports whether this member is a bridge.
func (r *run) bridges() bool { return r.everyone.Rank() >= r.view.CoreMembers() }

// leaveBridge lets the bridge go, if there is one, with what all members end with. Any
// other failure ends the bridge with the world.
func (r *run) leaveBridge(end error) error {
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

// bridge is the life of a bridge rank.
func (r *run) bridge() error {
	me := r.everyone.Rank()
	struck, err := inject.New(os.Getenv, me)
	if err != nil {
		return err
	}
	r.everyone.SetLimits(world.Limits{}) // graph ranks wait for it, and it for none of them
	open, stop := r.transportOpener()
	end, err := bridge.Run(bridge.Options{
		Comm: r.everyone, Parts: r.view.Bridged(me), Open: open,
		Say: func() any { return r.bridgeReport() },
		At:  func(epoch int) { struck.At(inject.Task, epoch) },
	})
	if closing := stop(); err == nil {
		err = closing
	}
	if err == nil && end != nil {
		return agreed{end}
	}
	return err
}

// bridgeReport is what a bridge says of itself.
func (r *run) bridgeReport() runfolder.RankReport {
	me := r.everyone.Rank()
	return runfolder.RankReport{Rank: r.view.Rank(me), Role: "bridge", Host: r.everyone.Hosts()[me], PeakRSSBytes: host.PeakRSS()}
}

// bridgeReports is what bridges say of themselves, on the first member. Collective over
// the world without bridges.
func (r *run) bridgeReports() (reports []runfolder.RankReport, err error) {
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
