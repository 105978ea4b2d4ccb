package engine

import (
	"siafu/halo"
	"siafu/kernels"
	"siafu/ranks/graphwork"
	"siafu/ranks/schedule"
)

// In the synchronous modes rows go to other ranks and come from them here, and
// nowhere else: lockstep calls transfer for the tasks that move rows or write
// what is going to be moved, and arrived and await for the events between. All
// of a rank's transfers use the one exchange of the lockstep, so that one is
// under way at a time.

// transfer runs a task of a layer between this rank and the others. Send and
// Receive, forward and backward, are collective over the graph ranks.
func (s *lockstep) transfer(worker *kernels.Team, l *graphwork.Layer, t schedule.Task) error {
	key := halo.Key{Seed: s.seed, Epoch: t.Epoch, Layer: t.Layer, Apart: !s.pass.Train}
	switch t.Stage {
	case schedule.Sum:
		from, to := s.sumPieces[t.Interval]*l.Width, s.sumPieces[t.Interval+1]*l.Width
		s.graph.Sums(worker, l, s.sumPieces[t.Interval], s.exchange.Sums(l.Width)[from:to])
	case schedule.Send:
		l.Enter(s.pass)
		err := s.exchange.BeginForward(l.Rows, l.Width, key)
		s.tuning.sample(place{t.Layer, false})
		return err
	case schedule.Receive:
		ghosts, err := s.exchange.EndForward()
		if err == nil {
			s.graph.TakeGhosts(worker, l, ghosts)
		}
		return err
	case schedule.GhostGrads:
		from, to := s.pieces[t.Interval]*l.Width, s.pieces[t.Interval+1]*l.Width
		s.graph.GhostGrads(worker, l, s.pieces[t.Interval], s.exchange.Ghosts(l.Width)[from:to])
	case schedule.SendBackward:
		err := s.exchange.BeginBackward(l.Width, key)
		s.tuning.sample(place{t.Layer, true})
		return err
	case schedule.ReceiveBackward:
		return s.exchange.EndBackward(s.graph.Backward(l))
	}
	return nil
}

// addSums adds the gradients of sums to the own vertices of an interval, when
// they have come back.
func (s *lockstep) addSums(l *graphwork.Layer, at graphwork.Interval) {
	s.graph.AddSums(l, at, s.exchange.Sums(l.Width))
}

// arrived tells, without waiting, whether the rows that are awaited have come.
func (s *lockstep) arrived() (bool, error) { return s.exchange.Arrived() }

// await returns when they have.
func (s *lockstep) await() error { return s.exchange.Await() }
