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
			pending, err := t.CapturePending(at.layer)
			if err != nil {
				return l, err
			}
			l.Pending = append(l.Pending, pending)
		}
	}
	sortPending(l.Pending)
	return l, nil
}

// Unpack implements halo.Portable.
func (s *Previous) Unpack(l halo.SourceState) error {
	s.list[0].RestoreErrors(l.CodecErrors)
	for _, pending := range l.Pending {
		pair, ok := s.slots[slotKey{pending.Layer, pending.Backward}]
		if !ok {
			return errMismatch(pending.Layer)
		}
		t := pair[pending.Epoch%2]
		if err := t.ResumePending(pending); err != nil {
			return err
		}
		s.inTransit.list = append(s.inTransit.list, t)
	}
	return nil
}

// Pack implements halo.Portable.
func (s *Timed) Pack() (halo.SourceState, error) {
	l := halo.SourceState{CodecErrors: s.store.CodecErrors()}
	for at, h := range s.histories {
		if s.outlast(at.backward) {
			stored := h.CopyRows(at.layer)
			stored.Sent, stored.SentAt = slices.Clone(h.sent.rows), slices.Clone(h.sent.epochs)
			l.StoredRows = append(l.StoredRows, stored)
		}
		for g, b := range h.Batches {
			if _, ok := b.UnderWay(); !ok {
				continue
			}
			pending, err := b.CapturePending(at.layer, g)
			if err != nil {
				return l, err
			}
			l.Pending = append(l.Pending, pending)
		}
	}
	slices.SortFunc(l.StoredRows, func(a, b halo.StoredRows) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), compareFlags(a.Backward, b.Backward))
	})
	sortPending(l.Pending)
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
	for _, stored := range l.StoredRows {
		h, ok := s.histories[slotKey{stored.Layer, stored.Backward}]
		if !ok {
			return errMismatch(stored.Layer)
		}
		h.Restore(stored)
		copy(h.sent.rows, stored.Sent)
		copy(h.sent.epochs, stored.SentAt)
	}
	for _, pending := range l.Pending {
		h, ok := s.histories[slotKey{pending.Layer, pending.Backward}]
		if !ok || pending.Part < 0 || pending.Part >= len(h.Batches) {
			return errMismatch(pending.Layer)
		}
		b := h.Batches[pending.Part]
		if err := b.ResumePending(h.History, s.parts[pending.Part], pending); err != nil {
			return err
		}
		s.inTransit.list = append(s.inTransit.list, b)
	}
	return nil
}

// sortPending sorts exchanges by the order of sending.
func sortPending(list []halo.PendingRows) {
	slices.SortFunc(list, func(a, b halo.PendingRows) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), compareFlags(a.Backward, b.Backward),
			cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Part, b.Part))
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
