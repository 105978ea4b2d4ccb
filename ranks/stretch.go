package ranks

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"siafu/graph/mapped"
	"siafu/ranks/inject"
	"siafu/ranks/params"
	"siafu/ranks/params/protocol"
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
func (r *run) saveStretch(v verdict, weights []float32, u *params.Updater, h *history, s *saver) error {
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
func (r *run) stateAfter(u *params.Updater) ([][]float32, error) {
	if u != nil {
		return u.State(), nil
	}
	m, err := r.world.Recv(r.Graph, tagState)
	if err != nil {
		return nil, err
	}
	return params.Slots(mapped.Cast[float32](m.Data), r.net.NumWeights()), nil
}

// trainAfter goes on synchronously. Without servers every rank takes over the
// optimiser's state, which rank 0 has had. Collective over the graph ranks.
func (r *run) trainAfter(epoch int, weights []float32, u *params.Updater, h *history) error {
	r.voice.note(fmt.Sprintf("switch_to_sync after_epoch=%d\n", epoch))
	if err := r.shareHistory(h); err != nil {
		return err
	}
	h.within, r.from.switched = 0, true
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
			if err := r.peers.Bcast(mapped.Bytes(state), 0); err != nil {
				return err
			}
		}
		own.Updater().Restore(slots)
	}
	return r.trainFrom(epoch+1, source, h)
}

// serveAsync is the life of a server in a run that begins in bounded
// asynchrony.
func (r *run) serveAsync(weights []float32, u protocol.Updater) error {
	for trained := r.from.epoch; ; {
		setting, err := r.setting(trained)
		if err != nil {
			return err
		}
		s := protocol.New(setting, r.rank-r.Graph, params.Layers(r.net), weights, u)
		r.world.SetLimits(r.patient(s.Version, s.Owing))
		in := params.NewServer(r.world, params.TagAsync, s, r.watcher, r.fault)
		if err := in.Run(); err != nil {
			return err
		}
		m := s.Memory()
		r.stash = max(r.stash, m.PeakBytes+m.PeakWaiting)
		v, err := r.pronounce(verdict{})
		if err != nil {
			return err
		}
		if v.next != ends || v.save {
			if err := r.settle(in, v, u); err != nil {
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
func (r *run) settle(s *params.Server, v verdict, u protocol.Updater) error {
	if err := s.Reach(v.epoch + 1); err != nil || !v.save {
		return err
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
