package refresh

import "siafu/halo"

var _ halo.Portable = (*Previous)(nil)

// Record implements halo.Portable: it keeps the rows of each slot that have left in
// its newest epoch.
func (s *Previous) Record() {
	for _, e := range s.list {
		r := &halo.Recorder{}
		s.sent = append(s.sent, r)
		e.Observe(r)
	}
}

// Pack implements halo.Portable.
func (s *Previous) Pack(epoch int) halo.Luggage {
	l := halo.Luggage{Losts: s.lost}
	for _, r := range s.sent {
		if r.Cols > 0 && r.Key.Epoch == epoch-1 {
			l.Sent = append(l.Sent, r.Sent)
		}
	}
	s.lost = s.list[0].Losts() // all transfers share it
	return l
}

// Unpack implements halo.Portable. The transfers of the epoch before begin again.
func (s *Previous) Unpack(l halo.Luggage) error {
	s.lost = l.Losts
	s.list[0].Remember(l.Losts)
	for _, sent := range l.Sent {
		at := halo.Slot{Epoch: sent.Key.Epoch, Layer: sent.Key.Layer, Backward: sent.Key.Backward}
		t := s.Leaving(at)
		if err := t.BeginAgain(sent); err != nil {
			return err
		}
		s.travelling = append(s.travelling, t)
	}
	return nil
}
