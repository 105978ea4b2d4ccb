package ptx

import "math/bits"

// shuffle executes shfl.sync: d is register a of the lane that op, b and imm's c choose, and p
// whether that lane exists. c has the last lane of a segment in its lower five bits, and the
// mask of segments above. list[0] is its register.
func shuffle(w *warp, in *inst) {
	a, b, c := &w.regs[in.a], &w.regs[in.b], &w.regs[in.list[0]]
	named := &w.regs[in.c]
	var out values
	var valid uint32
	for _, l := range w.lanes {
		lane, bval := int(l), int(uint32(b[l&31])&31)
		cval := uint32(c[l&31])
		mask, last := int(cval>>8&31), int(cval&31)
		last = lane&mask | last&^mask
		first := lane & mask
		source := lane
		switch in.op {
		case opUp:
			source = lane - bval
		case opDown:
			source = lane + bval
		case opBfly:
			source = lane ^ bval
		case opIdx:
			source = first | bval&^mask
		}
		ok := source <= last
		if in.op == opUp {
			ok = source >= last
		}
		if !ok {
			source = lane
		}
		if w.active>>source&1 == 0 || uint32(named[l&31])>>source&1 == 0 {
			panic(w.finding(InactiveLane, in, l, "a shuffle from lane %d, which does not take part", source))
		}
		valid |= bit(ok) << l
		out[l&31] = uint64(uint32(a[source]))
	}
	if in.d >= 0 {
		d := &w.regs[in.d]
		for _, l := range w.lanes {
			d[l&31] = out[l&31]
		}
	}
	w.assign(in.p, valid)
}

// vote executes vote.sync: of predicate r of the lanes that c names.
func vote(w *warp, in *inst) {
	yes := w.predicate(in)
	named := &w.regs[in.c]
	var held uint32
	for _, l := range w.lanes {
		mask := uint32(named[l&31])
		switch in.op {
		case opBallot:
			w.regs[in.d][l&31] = uint64(yes & mask)
		case opAll:
			held |= bit(yes&mask == mask) << l
		case opAny:
			held |= bit(yes&mask != 0) << l
		case opUni:
			held |= bit(yes&mask == mask || yes&mask == 0) << l
		}
	}
	w.assign(in.p, held)
}

// match executes match.sync: the lanes that c names with the same a.
func match(w *warp, in *inst) {
	a, d, named := &w.regs[in.a], &w.regs[in.d], &w.regs[in.c]
	var all uint32
	for _, l := range w.lanes {
		mask := uint32(named[l&31])
		var same uint32
		for m := mask; m != 0; m &= m - 1 {
			o := firstLane(m)
			same |= bit(extended(a[o], in.kind) == extended(a[l&31], in.kind)) << o
		}
		if in.op == opAll {
			if same != mask {
				same = 0
			} else {
				all |= 1 << l
			}
		}
		d[l&31] = uint64(same)
	}
	w.assign(in.p, all)
}

// meetLanes executes bar.warp.sync.
func meetLanes(w *warp, in *inst) {
	named := &w.regs[in.c]
	for done := uint32(0); done != w.active; {
		mask := uint32(named[firstLane(w.active&^done)])
		w.meet(mask)
		done |= mask
	}
}

// activeMask executes activemask: the lanes that run together.
func activeMask(w *warp, in *inst) {
	d := &w.regs[in.d]
	for _, l := range w.lanes {
		d[l&31] = uint64(w.active)
	}
}

// reduceBlock executes bar.red: of predicate r of all threads of the block.
func reduceBlock(w *warp, in *inst) {
	n := 0
	for _, w := range w.block.warps {
		n += bits.OnesCount32(w.predicate(in) & w.live)
	}
	held := n > 0
	if in.op == opAll {
		held = n == w.block.threads
	}
	for _, w := range w.block.warps {
		w.use(w.live, 0)
		if in.op == opPopcBar {
			for _, l := range w.lanes {
				w.regs[in.d][l&31] = uint64(n)
			}
			continue
		}
		w.assign(in.p, -bit(held))
	}
}
