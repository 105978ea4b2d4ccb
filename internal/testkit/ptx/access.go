package ptx

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// access is the memory operand of an instruction. The address is register a plus
// imm.
type access struct {
	space  space
	size   int  // bytes of an element
	bytes  int  // of all elements, and the required alignment
	kind   kind // of an element, extended by a load
	strong bool // volatile, relaxed, acquire, release: no race with atomics
	last   *region
}

// flag returns the flag of the access in stamps.
func (m *access) flag() stamp {
	if m.strong {
		return atomic
	}
	return 0
}

// locate returns the region, and the offset in its data, of lane l's access at addr. An
// invalid address ends the launch.
func (w *warp) locate(in *inst, addr uint64, l uint8, writes bool) (*region, uint64) {
	m := in.mem
	if r := m.last; r != nil {
		if o := addr - r.base; o < r.size && r.size-o >= uint64(m.bytes) && addr&uint64(m.bytes-1) == 0 && !(writes && r.fixed) {
			return r, o
		}
	}
	return w.search(in, addr, l, writes)
}

// search locates an address outside the region of the last access.
func (w *warp) search(in *inst, addr uint64, l uint8, writes bool) (*region, uint64) {
	m := in.mem
	place := addr
	s := m.space
	if s == generic {
		s, place = classify(addr)
	} else if s == param && addr >= localBase && addr < paramBase {
		s = local // parameters of functions that an entry calls
	}
	r := w.block.region(w, s, place)
	o := place
	if r != nil {
		o -= r.base
	}
	verb := "read"
	if writes {
		verb = "write"
	}
	switch {
	case r == nil || o >= r.size || r.size-o < uint64(m.bytes):
		panic(w.finding(OutOfBounds, in, l, "a %s of %v memory", verb, m.space).at(addr, m.bytes, w.block.beside(w, s, place)))
	case writes && r.fixed:
		panic(w.finding(OutOfBounds, in, l, "a write of memory that kernels may only read").at(addr, m.bytes, r.String()))
	case addr&uint64(m.bytes-1) != 0:
		panic(w.finding(Misaligned, in, l, "a %s at an address that is not a multiple of %d", verb, m.bytes).at(addr, m.bytes, r.String()))
	}
	if m.space != generic && r.lane == 0 {
		m.last = r
	}
	return r, o + uint64(l)*r.lane
}

// classify returns the space of a generic address, and the address in that space.
func classify(addr uint64) (space, uint64) {
	place := addr - window
	switch {
	case place >= sharedBase && place < localBase:
		return shared, place
	case place >= localBase && place < paramBase:
		return local, place
	case place >= paramBase && place < spaceEnd:
		return param, place
	}
	return global, addr
}

// noteRead records lane l's read of n bytes at o of r. It ends the launch if they are
// unwritten or written concurrently.
func (w *warp) noteRead(in *inst, r *region, o uint64, n int, l uint8, kept stamp) {
	now := w.now | stamp(l)<<threadShift | kept
	cells := r.at(o, n)
	for i := range cells {
		w.noteReadOf(&cells[i], in, r, o, n, l, now)
	}
}

// noteReadOf notes the read of one cell.
func (w *warp) noteReadOf(c *cell, in *inst, r *region, o uint64, n int, l uint8, now stamp) {
	if c.write <= r.floor {
		panic(w.finding(Uninitialised, in, l, "a read of memory that was never written").in(r, o, n, l))
	}
	if !w.settled(r, c.write) && c.write != now {
		w.contest(in, r, o, n, l, c.write, now, "read", "write")
	}
	switch old := c.read; {
	case w.settled(r, old):
		c.read = now
	case old&many != 0 && (old^now)&^(warpMates|many) == 0:
		// Another lane of the current read.
	case old != now:
		c.read = w.merge(old, now)
	}
}

// warpMates has the bits of a stamp in which the lanes of a warp differ.
const warpMates = stamp(lanes-1) << threadShift

// settled reports whether accesses are ordered before the block's segment: accesses of other
// launches, and the block's own before its last barrier.
func (w *warp) settled(r *region, old stamp) bool {
	b := w.block
	return old < b.launched || old <= r.floor || old < b.segment && old >= b.began && old&foreign == 0
}

// noteWrite notes a write, as noteRead notes a read.
func (w *warp) noteWrite(in *inst, r *region, o uint64, n int, l uint8, kept stamp) {
	now := w.now | stamp(l)<<threadShift | kept
	cells := r.at(o, n)
	for i := range cells {
		c := &cells[i]
		if !w.settled(r, c.read) && c.read != now {
			w.contest(in, r, o, n, l, c.read, now, "write", "read")
		}
		switch old := c.write; {
		case w.settled(r, old):
			c.write = now
		case old != now:
			w.contest(in, r, o, n, l, old, now, "write", "write")
			c.write = w.merge(old, now)
		}
	}
}

// contest ends the launch if accesses of other threads, old, are not ordered before now,
// unless both are atomic.
func (w *warp) contest(in *inst, r *region, o uint64, n int, l uint8, old, now stamp, verb, other string) {
	if old&now&atomic != 0 || !w.concurrent(old, now, l) {
		return
	}
	panic(w.finding(Race, in, l, "a %s that races with a %s by %s", verb, other, w.block.who(old)).in(r, o, n, l))
}

// concurrent reports whether some access after old is not ordered before lane l's now.
// Barriers order the block, warp synchronisations the warp's lanes.
func (w *warp) concurrent(old, now stamp, l uint8) bool {
	b := w.block
	switch {
	case old&foreign != 0 || old < b.began:
		return true
	case old>>segShift != now>>segShift:
		return false
	case old&manyWarps != 0:
		return true
	case old.thread() == now.thread() && old&many == 0:
		return false
	case old.thread()/lanes != w.index:
		return true
	case old.thread() == now.thread():
		return w.whole <= old.syncs()
	}
	return w.met[l][old.thread()%lanes] <= uint16(old.syncs())
}

// merge returns the combined stamp of accesses old followed by now.
func (w *warp) merge(old, now stamp) stamp {
	b := w.block
	kept := now &^ (many | manyWarps | foreign)
	kept &^= atomic &^ old
	kept |= old & foreign
	switch {
	case old < b.began:
		return kept | foreign
	case old>>segShift != now>>segShift:
		// Only the block's own accesses, which its barriers have ordered.
		if old&foreign == 0 {
			kept |= now & atomic
		}
		return kept
	}
	if old.thread() != now.thread() {
		kept |= many
		if old.thread()/lanes != now.thread()/lanes {
			kept |= manyWarps
		}
	}
	return kept | old&(many|manyWarps)
}

// word reads n bytes at o as an integer.
func (r *region) word(o uint64, n int) uint64 {
	switch n {
	case 4:
		return uint64(binary.LittleEndian.Uint32(r.data[o:]))
	case 8:
		return binary.LittleEndian.Uint64(r.data[o:])
	case 2:
		return uint64(binary.LittleEndian.Uint16(r.data[o:]))
	}
	return uint64(r.data[o])
}

// setWord writes n bytes at o.
func (r *region) setWord(o uint64, n int, x uint64) {
	switch n {
	case 4:
		binary.LittleEndian.PutUint32(r.data[o:], uint32(x))
	case 8:
		binary.LittleEndian.PutUint64(r.data[o:], x)
	case 2:
		binary.LittleEndian.PutUint16(r.data[o:], uint16(x))
	default:
		r.data[o] = byte(x)
	}
}

// load executes ld. Registers of the list get the elements, extended to 64 bits.
func load(w *warp, in *inst) {
	m, a, kept := in.mem, &w.regs[in.a], in.mem.flag()
	for _, l := range w.lanes {
		r, o := w.locate(in, a[l&31]+in.imm, l, false)
		w.noteRead(in, r, o, m.bytes, l, kept)
		for i, d := range in.list {
			if d >= 0 {
				w.regs[d][l&31] = extended(r.word(o+uint64(i*m.size), m.size), m.kind)
			}
		}
	}
}

// load4 executes load of one unsigned element of 4 bytes, the most frequent case.
func load4(w *warp, in *inst) {
	a, d := &w.regs[in.a], &w.regs[in.d]
	var before, value uint64
	var c *cell
	for i, l := range w.lanes {
		addr := a[l&31] + in.imm
		if i > 0 && addr == before && c != nil {
			// Adjacent lanes often read the same word.
			c.read |= many
			d[l&31] = value
			continue
		}
		r, o := w.locate(in, addr, l, false)
		if c = nil; r.grain == 2 {
			c = &r.cells[o>>2]
			w.noteReadOf(c, in, r, o, 4, l, w.now|stamp(l)<<threadShift)
		} else {
			w.noteRead(in, r, o, 4, l, 0)
		}
		value = uint64(binary.LittleEndian.Uint32(r.data[o:]))
		d[l&31] = value
		before = addr
		if r.lane != 0 {
			c = nil // the same address is different memory in each lane
		}
	}
}

// store executes st.
func store(w *warp, in *inst) {
	m, a, kept := in.mem, &w.regs[in.a], in.mem.flag()
	for _, l := range w.lanes {
		r, o := w.locate(in, a[l&31]+in.imm, l, true)
		w.noteWrite(in, r, o, m.bytes, l, kept)
		for i, s := range in.list {
			r.setWord(o+uint64(i*m.size), m.size, w.regs[s][l&31])
		}
	}
}

// convertAddress executes cvta: addresses of shared and local memory have a window among generic
// ones. imm is the window's offset.
func convertAddress(w *warp, in *inst) {
	unary(w, in, func(address uint64) uint64 { return address + in.imm })
}

// isSpace executes isspacep.
func isSpace(w *warp, in *inst) {
	a := &w.regs[in.a]
	var m uint32
	for _, l := range w.lanes {
		s, _ := classify(a[l&31])
		m |= bit(s == in.mem.space) << (l & 31)
	}
	w.assign(in.p, m)
}

// firstLane returns the lowest lane in m.
func firstLane(m uint32) uint8 { return uint8(bits.TrailingZeros32(m)) }

// finding returns a finding of lane l at in.
func (w *warp) finding(k Kind, in *inst, l uint8, format string, args ...any) *Finding {
	b := w.block
	return &Finding{Kind: k, Kernel: b.kernel.name, Module: b.kernel.mod.name,
		Line: int(in.line), Text: b.kernel.mod.text(int(in.line)),
		Block: b.at, Thread: b.threadAt(w.index*lanes + int(l)), Detail: fmt.Sprintf(format, args...)}
}

// at sets the accessed memory.
func (f *Finding) at(addr uint64, bytes int, allocation string) *Finding {
	f.Address, f.Bytes, f.Allocation = addr, bytes, allocation
	return f
}

// in sets the accessed memory to n bytes at offset o of lane l's region.
func (f *Finding) in(r *region, o uint64, n int, l uint8) *Finding {
	return f.at(r.base+o-uint64(l)*r.lane, n, r.String())
}
