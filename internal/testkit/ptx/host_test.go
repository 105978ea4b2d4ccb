package ptx

import (
	"bytes"
	"errors"
	"testing"

	"siafu/cuda/device"
)

// A started copy is done when its event has happened, not before. Host memory is pinned once.
func TestCopiesUnderWay(t *testing.T) {
	l := newLab(t, Settings{})
	e, err := l.d.NewEvent()
	l.ok(err)
	p, src, dst := l.empty(8), []byte("abcdefgh"), make([]byte, 8)
	l.ok(l.d.Pin(src))
	if l.d.Pin(src[4:]) == nil {
		t.Error("memory is pinned twice")
	}
	l.ok(l.s.BeginIn(p, src))
	l.ok(l.s.BeginOut(dst, p))
	l.ok(l.s.Record(e))
	if bytes.Equal(dst, src) {
		t.Error("bytes are there before their copy")
	}
	if done, err := e.Done(); done || err != nil {
		t.Errorf("%t, %v of a copy that nobody has waited for", done, err)
	}
	l.ok(e.Synchronize())
	if done, err := e.Done(); !done || err != nil {
		t.Errorf("%t, %v of a copy that was waited for", done, err)
	}
	if !bytes.Equal(dst, src) {
		t.Errorf("%q", dst)
	}
	l.ok(l.d.Unpin(src))
	if l.d.Unpin(src) == nil {
		t.Error("memory is unpinned twice")
	}
	if New(Settings{Pageable: true}).Pin(src) == nil {
		t.Error("memory is pinned where none is to be")
	}
}

// Use of host memory during a copy is found.
func TestCopiesDisturbed(t *testing.T) {
	for name, disturb := range map[string]func(s device.Stream, d *Device, p device.Ptr, b []byte) error{
		"a source is written": func(s device.Stream, _ *Device, p device.Ptr, b []byte) error {
			err := s.BeginIn(p, b)
			b[3]++
			return err
		},
		"a destination is written": func(s device.Stream, _ *Device, p device.Ptr, b []byte) error {
			err := s.BeginOut(b, p)
			b[7] = 0
			return err
		},
		"a source is copied to": func(s device.Stream, _ *Device, p device.Ptr, b []byte) error {
			return errors.Join(s.BeginIn(p, b), s.BeginOut(b[4:], p))
		},
		"a destination is copied from": func(s device.Stream, _ *Device, p device.Ptr, b []byte) error {
			return errors.Join(s.BeginOut(b, p), s.BeginIn(p, b[:1]))
		},
		"memory is unpinned": func(s device.Stream, d *Device, p device.Ptr, b []byte) error {
			return errors.Join(d.Pin(b), s.BeginIn(p, b), d.Unpin(b))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, Settings{})
			p := l.empty(8)
			l.ok(l.s.Set(p, 1, 8))
			err := errors.Join(disturb(l.s, l.d, p, make([]byte, 8)), l.s.Synchronize())
			var f *Finding
			if !errors.As(err, &f) || f.Kind != HostMemory {
				t.Errorf("%v", err)
			}
		})
	}
}
