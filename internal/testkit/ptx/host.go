package ptx

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"siafu/cuda/device"
)

// hostMemory records the pinned host memory, and the memory of unfinished copies.
type hostMemory struct {
	pinned []span
	lent   []span
}

// span is a range of host memory.
type span struct {
	at, bytes uintptr
	written   bool // by the copy that uses it
}

func spanOf(b []byte) span {
	return span{at: uintptr(unsafe.Pointer(unsafe.SliceData(b))), bytes: uintptr(len(b))}
}

// overlaps reports whether spans share a byte.
func (s span) overlaps(o span) bool { return s.at < o.at+o.bytes && o.at < s.at+s.bytes }

// without returns list without one s.
func without(list []span, s span) ([]span, bool) {
	i := slices.Index(list, s)
	if i < 0 {
		return list, false
	}
	return slices.Delete(list, i, i+1), true
}

// Pin implements device.Device.
func (d *Device) Pin(b []byte) error {
	return d.locked(func() error {
		s := spanOf(b)
		switch {
		case d.settings.Pageable:
			return errors.New("ptx: this device pins no host memory")
		case slices.ContainsFunc(d.host.pinned, s.overlaps):
			return fmt.Errorf("ptx: %d bytes of host memory are pinned twice", len(b))
		}
		d.host.pinned = append(d.host.pinned, s)
		return nil
	})
}

// Unpin implements device.Device.
func (d *Device) Unpin(b []byte) error {
	return d.locked(func() error {
		if err := d.free(spanOf(b), true, "it is unpinned"); err != nil {
			return err
		}
		var found bool
		if d.host.pinned, found = without(d.host.pinned, spanOf(b)); !found {
			return fmt.Errorf("ptx: %d bytes of host memory are unpinned but not pinned", len(b))
		}
		return nil
	})
}

// free returns a Finding if the use of s conflicts with a copy.
func (d *Device) free(s span, written bool, why string) error {
	for _, o := range d.host.lent {
		if s.overlaps(o) && (written || o.written) {
			return &Finding{Kind: HostMemory, Detail: why + " while a copy of it is under way", Address: uint64(s.at), Bytes: int(s.bytes)}
		}
	}
	return nil
}

// borrow queues a copy that writes or reads b. When the copy runs, before checks b.
func (s *stream) borrow(b []byte, written bool, before, do func() error) error {
	d, lent := s.device, spanOf(b)
	lent.written = written
	d.host.lent = append(d.host.lent, lent)
	return s.add(len(b), func() error {
		d.host.lent, _ = without(d.host.lent, lent)
		if err := before(); err != nil {
			return err
		}
		return do()
	})
}

// changed returns the finding of memory that changed during its copy.
func changed(b []byte, verb string) error {
	return &Finding{Kind: HostMemory, Detail: "it was written while " + verb + " was under way",
		Address: uint64(spanOf(b).at), Bytes: len(b)}
}

// BeginIn implements device.Stream. A source that has changed when the copy runs is a Finding.
func (s *stream) BeginIn(dst device.Ptr, src []byte) error {
	return s.onBytes(dst, len(src), "a copy to the device", func(r *region, o uint64) error {
		if err := s.device.free(spanOf(src), false, "it is copied from"); err != nil {
			return err
		}
		was := bytes.Clone(src)
		return s.borrow(src, false, func() error {
			if !bytes.Equal(src, was) {
				return changed(src, "a copy to the device")
			}
			return nil
		}, func() error {
			copy(r.data[o:], was)
			r.written(o, len(was))
			return nil
		})
	})
}

// underWay fills the destination of a pending copy, so that an early read gets wrong data.
const underWay = 0xc5

// BeginOut implements device.Stream. Until the copy runs, dst has the filler bytes; it is a
// Finding if they are overwritten.
func (s *stream) BeginOut(dst []byte, src device.Ptr) error {
	return s.onBytes(src, len(dst), "a copy from the device", func(r *region, o uint64) error {
		if err := s.device.free(spanOf(dst), true, "it is copied to"); err != nil {
			return err
		}
		for i := range dst {
			dst[i] = underWay
		}
		return s.borrow(dst, true, func() error {
			for _, b := range dst {
				if b != underWay {
					return changed(dst, "a copy from the device")
				}
			}
			return nil
		}, func() error { return r.copyOut(dst, o) })
	})
}

// copyOut sets dst to the bytes at offset o. An unwritten byte is a Finding.
func (r *region) copyOut(dst []byte, o uint64) error {
	if at := r.unwritten(o, len(dst)); at >= 0 {
		return &Finding{Kind: Uninitialised, Detail: fmt.Sprintf("a copy from the device, whose byte %d was never written", at-int(o)),
			Address: r.base + o, Bytes: len(dst), Allocation: r.String()}
	}
	copy(dst, r.data[o:])
	return nil
}
