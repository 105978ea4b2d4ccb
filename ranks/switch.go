package ranks

import (
	"encoding/binary"

	"siafu/graph/mapped"
	"siafu/ranks/server"
	"siafu/ranks/server/async"
)

// From bounded asynchrony to the synchronous pipeline (--switch-to-sync): all
// ranks stop after the same epoch, and go on with the weights after it and the
// optimiser's state, which stays where it was.

// switches tells whether the run goes on synchronously, and after which epoch,
// as rank 0 says. Collective over the world where --switch-to-sync was asked
// for.
func (r *run) switches(epoch int, goOn bool) (bool, error) {
	if r.cfg.SwitchToSync == 0 {
		return false, nil
	}
	epoch, err := r.switchEpoch(epoch, goOn && epoch < r.cfg.Epochs)
	return epoch > 0, err
}

// switchEpoch is the epoch after which the run goes on, 0 where it ends.
func (r *run) switchEpoch(epoch int, goOn bool) (int, error) {
	var b [8]byte
	if goOn {
		binary.LittleEndian.PutUint64(b[:], uint64(epoch))
	}
	err := r.world.Bcast(b[:], 0)
	return int(binary.LittleEndian.Uint64(b[:])), err
}

// sourceAfter is where weights come from after an asynchronous epoch. Without
// servers every rank takes over the optimiser's state, which rank 0 has had.
// Collective over the graph ranks.
func (r *run) sourceAfter(epoch int, weights []float32, hosted *updater) (weightSource, error) {
	if r.Servers > 0 {
		return &shifted{&served{comm: r.world, server: r.ServerOf(r.rank)}, epoch}, nil
	}
	u := hosted
	if u == nil {
		var err error
		if u, err = newUpdater(r.cfg, r.net, r.arena); err != nil {
			return nil, err
		}
	}
	for _, state := range u.state {
		if err := r.peers.Bcast(mapped.Bytes(state), 0); err != nil {
			return nil, err
		}
	}
	return newReplicated(r.peers, r.net, append([]float32(nil), weights...), u), nil
}

// serveAfter is the life of a server after an asynchronous run.
func (r *run) serveAfter(s *async.Server, u server.Updater) error {
	epoch, err := r.switchEpoch(0, false)
	if err != nil || epoch == 0 {
		return err
	}
	for s.Version() <= epoch { // sums of other servers may still be on their way
		if _, err := takeAsync(r.world, s, nil); err != nil {
			return err
		}
	}
	after := server.New(r.Topology, r.rank-r.Graph, layerRanges(r.net), s.Weights(), laterUpdater{u, epoch})
	r.world.SetLimits(r.patient(func() int { return epoch + after.Epoch() }, after.Owing))
	return serve(r.world, after)
}

// shifted is a source whose first epoch is not the run's.
type shifted struct {
	weightSource
	by int
}

func (s *shifted) pull(epoch int, dst []float32) error { return s.weightSource.pull(epoch-s.by, dst) }

func (s *shifted) push(epoch, layer int, grad []float32) error {
	return s.weightSource.push(epoch-s.by, layer, grad)
}

func (s *shifted) flush(epoch int, grad []float32) error {
	return s.weightSource.flush(epoch-s.by, grad)
}

// laterUpdater counts the steps of a server that begins after some epochs.
type laterUpdater struct {
	server.Updater
	by int
}

// Update implements server.Updater.
func (u laterUpdater) Update(step, layer int, weights, grad []float32) {
	u.Updater.Update(step+u.by, layer, weights, grad)
}
