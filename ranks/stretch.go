package ranks

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"siafu/graph/mapped"
	"siafu/ranks/inject"
	"siafu/ranks/server"
	"siafu/ranks/server/async"
)

// A run in bounded asynchrony goes in stretches. At the end of one all ranks
// have finished the same epoch, nothing of it is under way, and there is one
// version of the weights: there the run saves and stops, and from there it goes
// on, in another stretch or in step (--switch-to-sync).

// verdict is what rank 0 says at the end of a stretch.
type verdict struct {
	epoch int // the last one
	next  next
	save  bool // write a checkpoint
	stop  bool // the run was asked to stop and ends here, saved
}

type next uint8

const (
	ends   next = iota
	again       // another stretch
	inStep      // synchronously
)

// pronounce tells everybody rank 0's verdict. Collective over the world.
func (r *run) pronounce(v verdict) (verdict, error) {
	b := make([]byte, 16)
	binary.LittleEndian.PutUint64(b, uint64(v.epoch))
	b[8] = byte(v.next)
	for i, flag := range []bool{v.save, v.stop} {
		if flag {
			b[9+i] = 1
		}
	}
	err := r.world.Bcast(b, 0)
	return verdict{int(binary.LittleEndian.Uint64(b)), next(b[8]), b[9] == 1, b[10] == 1}, err
}

// tagState is that of the optimiser's state, from the first server to rank 0.
const tagState = 4

// saveStretch writes the checkpoint at the end of a stretch, on rank 0.
func (r *run) saveStretch(v verdict, weights []float32, u *updater, h *history, s *saver) error {
	r.fault.At(inject.Save, v.epoch)
	began := time.Now()
	if r.rank == 0 {
		slots, err := r.stateAfter(u)
		if err != nil {
			return err
		}
		r.stop = s.save(snapshot{epoch: v.epoch, weights: weights, slots: slots, history: h}, v.stop)
	}
	s.served(time.Since(began))
	return nil
}

// stateAfter is the optimiser's state at the end of a stretch, on rank 0.
func (r *run) stateAfter(u *updater) ([][]float32, error) {
	if u != nil {
		return u.state, nil
	}
	m, err := r.world.Recv(r.Graph, tagState)
	if err != nil {
		return nil, err
	}
	all, n := mapped.Cast[float32](m.Data), r.net.NumWeights()
	var slots [][]float32
	for k := 0; k+n <= len(all); k += n {
		slots = append(slots, all[k:k+n])
	}
	return slots, nil
}

// trainAfter goes on synchronously. Without servers every rank takes over the
// optimiser's state, which rank 0 has had. Collective over the graph ranks.
func (r *run) trainAfter(epoch int, weights []float32, u *updater, h *history) error {
	r.voice.note(fmt.Sprintf("switch_to_sync after_epoch=%d\n", epoch))
	if err := r.shareHistory(h); err != nil {
		return err
	}
	source, err := r.source(epoch, weights)
	if err != nil {
		return err
	}
	if own, ok := source.(*replicated); ok {
		if u != nil {
			own.update = u
		}
		for _, state := range own.update.state {
			if err := r.peers.Bcast(mapped.Bytes(state), 0); err != nil {
				return err
			}
		}
	}
	return r.trainFrom(epoch+1, source, h)
}

// serveAsync is the life of a server in a run that begins in bounded
// asynchrony.
func (r *run) serveAsync(weights []float32, u server.Updater) error {
	for trained := r.from.epoch; ; {
		setting, err := r.setting(trained)
		if err != nil {
			return err
		}
		s := async.New(setting, r.rank-r.Graph, layerRanges(r.net), weights, u)
		r.world.SetLimits(r.patient(s.Version, s.Owing))
		if err := serveStretch(r.world, s, r.watcher, r.fault); err != nil {
			return err
		}
		m := s.Memory()
		r.stash = max(r.stash, m.PeakBytes+m.PeakWaiting)
		v, err := r.pronounce(verdict{})
		if err != nil {
			return err
		}
		if v.next != ends || v.save {
			if err := r.settle(s, v, u); err != nil {
				return err
			}
		}
		switch {
		case v.stop || v.next == ends:
			return nil
		case v.next == inStep:
			return r.serveFrom(v.epoch, slices.Clone(s.Weights()), u)
		}
		weights, trained = slices.Clone(s.Weights()), v.epoch
	}
}

// settle takes the sums of other servers that may still be on their way, and
// hands over the optimiser's state where it is to be saved.
func (r *run) settle(s *async.Server, v verdict, u server.Updater) error {
	for s.Version() <= v.epoch {
		if _, err := takeAsync(r.world, s, nil, r.watcher, r.fault); err != nil {
			return err
		}
	}
	if !v.save {
		return nil
	}
	r.fault.At(inject.Save, v.epoch)
	r.watcher.Served()
	if r.rank != r.Graph {
		return nil
	}
	request, err := r.world.Isend(mapped.Bytes(slices.Concat(u.State()...)), 0, tagState)
	if err != nil {
		return err
	}
	return request.Wait()
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

// laterUpdater counts the steps of a server that begins after some epochs.
type laterUpdater struct {
	server.Updater
	by int
}

// Update implements server.Updater.
func (u laterUpdater) Update(step, layer int, weights, grad []float32) {
	u.Updater.Update(step+u.by, layer, weights, grad)
}
