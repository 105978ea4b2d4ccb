package engine

import (
	"siafu/halo"
	"siafu/kernels"
	"siafu/ranks/graphwork"
	"siafu/ranks/schedule"
)

// All transfer of rows in the synchronous modes is in this file. lockstep calls transfer for
// tasks that move rows or write rows to send, and queries the route's source of ghosts for the
// events between.

// slotOf returns the slot of a layer.
func (p *passRun) slotOf(layer int, backward bool) halo.Slot {
	at := p.slot
	at.Layer, at.Backward = layer, backward
	return at
}

func (p *passRun) slotOfTask(t schedule.Task) halo.Slot {
	switch t.Stage {
	case schedule.GhostGrads, schedule.SendBackward, schedule.ReceiveBackward, schedule.AddSums:
		return p.slotOf(t.Layer, true)
	}
	return p.slotOf(t.Layer, false)
}

// transfer runs a task of a layer between this rank and the others. Send and
// Receive, forward and backward, are collective over the graph ranks.
func (s *lockstep) transfer(worker kernels.Ops, l *graphwork.Layer, t schedule.Task) error {
	slot, r := s.pass.slotOfTask(t), s.pass.route
	at := r.rows[t.Layer]
	switch t.Stage {
	case schedule.Sum:
		if sums := r.ghosts.SendBuffer(slot); !sums.IsNil() {
			from, to := r.sumPieces[t.Interval], r.sumPieces[t.Interval+1]
			l.Sums(worker, from, sums.Part(from, to))
		}
	case schedule.Send:
		return r.ghosts.Offer(slot, s.store.Sent(t.Layer, s.pass.Pass), 0, l.Rows.Rows)
	case schedule.Receive:
		return s.receive(worker, l, slot)
	case schedule.EmitGhosts:
		r.localGhosts.emit(worker, s, l, t)
	case schedule.EmitGhostsBackward:
		if at.placed {
			r.localGhosts.grads(worker, s, l, t)
		}
		r.localGhosts.emitBackward(worker, t, s.pass.Pass)
	case schedule.PlaceGhosts:
		return r.localGhosts.mixed.place(worker, s, l, t.Layer, t.Interval)
	case schedule.GhostGrads:
		switch {
		case at.placed:
			r.localGhosts.mixed.grads(worker, s, l, t.Interval)
			return nil
		case at.computed:
			r.localGhosts.grads(worker, s, l, t)
			return nil
		}
		if grads := r.ghosts.SendBuffer(slot); !grads.IsNil() {
			from, to := r.pieces[t.Interval], r.pieces[t.Interval+1]
			l.GhostGrads(worker, from, grads.Part(from, to))
		}
	case schedule.SendBackward:
		if at.placed {
			return r.localGhosts.mixed.send(worker, s, l, slot)
		}
		grads := r.ghosts.SendBuffer(slot)
		return r.ghosts.Offer(slot, grads, 0, grads.Rows)
	case schedule.ReceiveBackward:
		return r.ghosts.Add(worker, slot, l.Backward(), 0, l.Rows.Rows)
	}
	return nil
}

// receive stores the ghost rows: zeros for rows that never arrived.
func (s *lockstep) receive(worker kernels.Ops, l *graphwork.Layer, slot halo.Slot) error {
	r := s.pass.route
	if _, _, err := r.ghosts.Take(slot); err != nil {
		return err
	}
	if r.rows[slot.Layer].placed {
		return nil // PlaceGhosts reads them
	}
	view, err := r.ghosts.View(slot)
	if err == nil {
		err = s.stale.recordRows(worker, slot, view, r.ghosts)
		l.TakeGhosts(worker, s.masked(worker, slot.Layer, view.Rows))
	}
	return err
}

// addSums adds the returned gradients of sums to an interval's gradients.
func (s *lockstep) addSums(i *interval, t schedule.Task) error {
	r := s.pass.route
	view, err := r.ghosts.View(s.pass.slotOfTask(t))
	if err == nil {
		r.graph.Layer(t.Layer).AddSums(i.graphInterval(t.Layer), view.Rows)
	}
	return err
}

// settle completes the transfers that outlast their epoch. Collective over the graph ranks.
func (s *lockstep) settle() error {
	if !s.routes.training.exchanges() {
		return nil
	}
	return s.routes.training.ghosts.Settle()
}
