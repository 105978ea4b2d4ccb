package refresh

import (
	"cmp"
	"fmt"
	"slices"

	"siafu/halo"
)

var (
	_ halo.Portable = (*Previous)(nil)
	_ halo.Portable = (*Timed)(nil)
)

// Pack implements halo.Portable.
func (s *Previous) Pack() (halo.Luggage, error) {
	l := halo.Luggage{Losts: s.list[0].Losts()} // all transfers share it
	for at, pair := range s.slots {
		for _, t := range pair {
			if !t.UnderWay() {
				continue
			}
			held, err := t.Hold(at.layer)
			if err != nil {
				return l, err
			}
			l.Held = append(l.Held, held)
		}
	}
	sortHeld(l.Held)
	return l, nil
}

// Unpack implements halo.Portable.
func (s *Previous) Unpack(l halo.Luggage) error {
	s.list[0].Remember(l.Losts)
	for _, held := range l.Held {
		pair, ok := s.slots[place{held.Layer, held.Backward}]
		if !ok {
			return misfit(held.Layer)
		}
		t := pair[held.Epoch%2]
		if err := t.GoOn(held); err != nil {
			return err
		}
		s.travelling = append(s.travelling, t)
	}
	return nil
}

// Pack implements halo.Portable.
func (s *Timed) Pack() (halo.Luggage, error) {
	l := halo.Luggage{Losts: s.store.Losts()}
	for at, h := range s.histories {
		if s.outlast(at.backward) {
			stand := h.Stand(at.layer)
			h.sent.pack(&stand)
			l.Stands = append(l.Stands, stand)
		}
		for g, b := range h.Batches {
			if _, ok := b.UnderWay(); !ok {
				continue
			}
			held, err := b.Hold(at.layer, g)
			if err != nil {
				return l, err
			}
			l.Held = append(l.Held, held)
		}
	}
	slices.SortFunc(l.Stands, func(a, b halo.Stand) int { return cmp.Or(cmp.Compare(a.Layer, b.Layer), ways(a.Backward, b.Backward)) })
	sortHeld(l.Held)
	return l, nil
}

// outlast reports whether rows of a direction are used in epochs after that for which
// they have come.
func (s *Timed) outlast(backward bool) bool {
	if backward {
		return s.stand
	}
	return s.draw == nil
}

// Unpack implements halo.Portable.
func (s *Timed) Unpack(l halo.Luggage) error {
	s.store.Remember(l.Losts)
	for _, stand := range l.Stands {
		h, ok := s.histories[place{stand.Layer, stand.Backward}]
		if !ok {
			return misfit(stand.Layer)
		}
		h.Restore(stand)
		h.sent.unpack(stand)
	}
	for _, held := range l.Held {
		h, ok := s.histories[place{held.Layer, held.Backward}]
		if !ok || held.Part < 0 || held.Part >= len(h.Batches) {
			return misfit(held.Layer)
		}
		b := h.Batches[held.Part]
		if err := b.GoOn(h.History, s.parts[held.Part], held); err != nil {
			return err
		}
		s.travelling = append(s.travelling, b)
	}
	return nil
}

// sortHeld puts them in the order in which they have left.
func sortHeld(list []halo.Held) {
	slices.SortFunc(list, func(a, b halo.Held) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), ways(a.Backward, b.Backward), cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Part, b.Part))
	})
}

func ways(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func misfit(layer int) error {
	return fmt.Errorf("refresh: unexpected rows of layer %d, which has no such aggregation", layer)
}
