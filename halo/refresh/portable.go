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
func (s *Previous) Pack() (halo.SourceState, error) {
	l := halo.SourceState{CodecErrors: s.list[0].CodecErrors()} // all transfers share it
	for at, pair := range s.slots {
		for _, t := range pair {
			if !t.UnderWay() {
				continue
			}
			held, err := t.CapturePending(at.layer)
			if err != nil {
				return l, err
			}
			l.Pending = append(l.Pending, held)
		}
	}
	sortHeld(l.Pending)
	return l, nil
}

// Unpack implements halo.Portable.
func (s *Previous) Unpack(l halo.SourceState) error {
	s.list[0].RestoreErrors(l.CodecErrors)
	for _, held := range l.Pending {
		pair, ok := s.slots[slotKey{held.Layer, held.Backward}]
		if !ok {
			return errMismatch(held.Layer)
		}
		t := pair[held.Epoch%2]
		if err := t.ResumePending(held); err != nil {
			return err
		}
		s.inTransit = append(s.inTransit, t)
	}
	return nil
}

// Pack implements halo.Portable.
func (s *Timed) Pack() (halo.SourceState, error) {
	l := halo.SourceState{CodecErrors: s.store.CodecErrors()}
	for at, h := range s.histories {
		if s.outlast(at.backward) {
			stand := h.CopyRows(at.layer)
			h.sent.pack(&stand)
			l.StoredRows = append(l.StoredRows, stand)
		}
		for g, b := range h.Batches {
			if _, ok := b.UnderWay(); !ok {
				continue
			}
			held, err := b.CapturePending(at.layer, g)
			if err != nil {
				return l, err
			}
			l.Pending = append(l.Pending, held)
		}
	}
	slices.SortFunc(l.StoredRows, func(a, b halo.StoredRows) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), compareFlags(a.Backward, b.Backward))
	})
	sortHeld(l.Pending)
	return l, nil
}

// outlast reports whether rows of a direction are used in epochs after the one for which they
// were due.
func (s *Timed) outlast(backward bool) bool {
	if backward {
		return s.gradsPersist
	}
	return s.selector == nil
}

// Unpack implements halo.Portable.
func (s *Timed) Unpack(l halo.SourceState) error {
	s.store.RestoreErrors(l.CodecErrors)
	for _, stand := range l.StoredRows {
		h, ok := s.histories[slotKey{stand.Layer, stand.Backward}]
		if !ok {
			return errMismatch(stand.Layer)
		}
		h.Restore(stand)
		h.sent.unpack(stand)
	}
	for _, held := range l.Pending {
		h, ok := s.histories[slotKey{held.Layer, held.Backward}]
		if !ok || held.Part < 0 || held.Part >= len(h.Batches) {
			return errMismatch(held.Layer)
		}
		b := h.Batches[held.Part]
		if err := b.ResumePending(h.History, s.parts[held.Part], held); err != nil {
			return err
		}
		s.inTransit = append(s.inTransit, b)
	}
	return nil
}

// sortHeld sorts exchanges by the order of sending.
func sortHeld(list []halo.PendingRows) {
	slices.SortFunc(list, func(a, b halo.PendingRows) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), compareFlags(a.Backward, b.Backward), cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Part, b.Part))
	})
}

func compareFlags(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func errMismatch(layer int) error {
	return fmt.Errorf("refresh: unexpected rows of layer %d, which has no such aggregation", layer)
}
