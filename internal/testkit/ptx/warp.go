package ptx

import (
	"fmt"
	"math/bits"
)

// warp is 32 threads that run together as long as they execute the same instruction.
//
// Design note: running one thread at a time, up to the next barrier, needs no masks. But a
// shuffle is then a barrier that suspends and resumes 32 threads, and every instruction is
// decoded 32 times. Here it is decoded once, and its loop over lanes has no calls. Divergent
// threads of a warp form groups. The group with the first instruction runs, and groups at the
// same instruction merge. compile orders blocks so that all predecessors of an instruction
// precede it, so that groups reconverge. PTX does not define which group runs first. A group
// that waits at a shuffle or barrier lets the others run, as on devices since sm_70: no lane
// waits for a suspended one.
type warp struct {
	block  *block
	index  int
	regs   []values
	preds  []uint32
	local  []*region
	active uint32  // lanes that run
	live   uint32  // lanes that have not exited
	lanes  []uint8 // the lanes of active
	lists  [2][lanes]uint8
	groups []group // all other live lanes
	now    stamp   // of an access of lane 0
	steps  int64   // remaining instruction budget

	// Synchronisations of the warp since the block's last barrier: their number, the last one
	// of all lanes, and the last one of each pair.
	syncs, whole int
	met          [lanes][lanes]uint16
}

// group has the lanes at the same instruction.
type group struct {
	pc      int32
	mask    uint32
	waiting flow // meetBlock or meetWarp if it waits
}

// allLanes lists the lanes of a full warp.
var allLanes = func() (list [lanes]uint8) {
	for i := range list {
		list[i] = uint8(i)
	}
	return list
}()

// use makes the lanes of mask active, listed in buffer to.
func (w *warp) use(mask uint32, to int) {
	w.active = mask
	if mask == 1<<lanes-1 {
		w.lanes = allLanes[:]
		return
	}
	list := w.lists[to][:0]
	for ; mask != 0; mask &= mask - 1 {
		list = append(list, firstLane(mask))
	}
	w.lanes = list
}

// run runs until every lane has exited or waits.
func (w *warp) run() {
	for {
		best := -1
		for i := range w.groups {
			if w.groups[i].waiting == onward && (best < 0 || w.groups[i].pc < w.groups[best].pc) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		g := w.groups[best]
		w.drop(best)
		w.follow(g)
	}
}

func (w *warp) drop(i int) {
	w.groups[i] = w.groups[len(w.groups)-1]
	w.groups = w.groups[:len(w.groups)-1]
}

// add suspends a group, and merges it with a group at the same instruction. If that waits for
// more lanes, it checks again.
func (w *warp) add(g group) {
	for i := range w.groups {
		if o := &w.groups[i]; o.pc == g.pc {
			o.mask |= g.mask
			if g.waiting != meetBlock {
				o.waiting = onward
			}
			return
		}
	}
	w.groups = append(w.groups, g)
}

// follow runs g until it exits, waits, or another group must run first.
func (w *warp) follow(g group) {
	code := w.block.kernel.code
	w.use(g.mask, 0)
	pc := g.pc
	for {
		in := &code[pc]
		if in.flow == onward {
			if in.guard == 0 {
				in.run(w, in)
			} else {
				w.guarded(in)
			}
			pc++
			continue
		}
		taken := w.active
		if in.guard != 0 {
			taken &= w.holds(in)
		}
		w.steps -= int64(in.steps)
		w.block.device.executed += int64(in.steps) * int64(len(w.lanes))
		if w.steps < 0 {
			panic(w.finding(Endless, in, firstLane(w.active), "a warp has run %d instructions", w.block.budget))
		}
		switch in.flow {
		case jump:
			pc = in.target
		case branch:
			switch taken {
			case 0:
				pc = in.next
			case w.active:
				pc = in.target
			default:
				w.add(group{pc: in.next, mask: w.active &^ taken})
				w.add(group{pc: in.target, mask: taken})
				return
			}
		case meetWarp:
			if w.missing(in, taken) != 0 {
				w.add(group{pc: pc, mask: w.active, waiting: meetWarp})
				return
			}
			if taken != 0 {
				w.masked(in, taken)
			}
			pc++
			continue
		default:
			if taken != 0 {
				w.stop(in, pc, taken)
			}
			if taken == w.active {
				return
			}
			w.use(w.active&^taken, 0)
			pc++
			continue
		}
		if len(w.groups) > 0 {
			w.add(group{pc: pc, mask: w.active})
			return
		}
	}
}

// stop ends the lanes taken, or makes them wait at a barrier.
func (w *warp) stop(in *inst, pc int32, taken uint32) {
	switch in.flow {
	case leave:
		w.live &^= taken
	case trapped:
		panic(w.finding(Trapped, in, firstLane(taken), "the kernel gave up"))
	case meetBlock:
		w.add(group{pc: pc, mask: taken, waiting: meetBlock})
	}
}

// holds returns the mask of lanes whose guard holds.
func (w *warp) holds(in *inst) uint32 {
	if in.guard > 0 {
		return w.preds[in.guard-1]
	}
	return ^w.preds[-in.guard-1]
}

// guarded runs in for the lanes whose guard holds.
func (w *warp) guarded(in *inst) {
	if taken := w.active & w.holds(in); taken != 0 {
		w.masked(in, taken)
	}
}

// masked runs in for some of the lanes.
func (w *warp) masked(in *inst, mask uint32) {
	if mask == w.active {
		in.run(w, in)
		return
	}
	active, list := w.active, w.lanes
	w.use(mask, 1)
	in.run(w, in)
	w.active, w.lanes = active, list
}

// missing returns the lanes that a warp instruction of the lanes taken names, and that are not
// at it.
func (w *warp) missing(in *inst, taken uint32) (m uint32) {
	named := &w.regs[in.c]
	for t := taken; t != 0; t &= t - 1 {
		l := firstLane(t)
		mask := uint32(named[l])
		if mask>>l&1 == 0 {
			panic(w.finding(InactiveLane, in, l, "lane %d is not in the mask %#08x that it gives", l, mask))
		}
		if gone := mask &^ w.live; gone != 0 {
			panic(w.finding(InactiveLane, in, l, "the mask %#08x names lane %d, which has ended", mask, firstLane(gone)))
		}
		m |= mask &^ taken
	}
	return m
}

// stuck finds a group that waits at a warp instruction for lanes that wait elsewhere.
func (w *warp) stuck() *Finding {
	for _, g := range w.groups {
		if g.waiting != meetWarp {
			continue
		}
		in := &w.block.kernel.code[g.pc]
		taken := g.mask
		if in.guard != 0 {
			taken &= w.holds(in)
		}
		other := firstLane(w.missing(in, taken))
		return w.finding(InactiveLane, in, firstLane(g.mask), "the mask names lane %d, which %s", other, w.whereabouts(other))
	}
	return nil
}

// whereabouts returns the line at which a lane waits.
func (w *warp) whereabouts(l uint8) string {
	for _, g := range w.groups {
		if g.mask>>l&1 != 0 {
			return fmt.Sprintf("is at line %d", w.block.kernel.code[g.pc].line)
		}
	}
	return "has ended"
}

// meet orders the accesses of the lanes of mask before and after it.
func (w *warp) meet(mask uint32) {
	// Stamps count at most maxSyncs: later ones are treated as ordered.
	w.syncs = min(w.syncs+1, maxSyncs)
	if mask == w.live {
		w.whole = w.syncs
	}
	for m := mask; m != 0; m &= m - 1 {
		row := &w.met[firstLane(m)]
		for n := mask; n != 0; n &= n - 1 {
			row[bits.TrailingZeros32(n)] = uint16(w.syncs)
		}
	}
	w.now = w.now&^(maxSyncs<<syncShift) | stamp(min(w.syncs, maxSyncs-1))<<syncShift
}
