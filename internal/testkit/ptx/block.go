package ptx

import (
	"fmt"
	"sort"
)

// kernel is a compiled entry.
type kernel struct {
	name      string
	mod       *loaded
	code      []inst
	params    []*variable // with offsets
	offsets   []int
	paramSize int
	values    int // registers of a warp
	preds     int
	constants []fixedValue
	specials  []specialValue
	shared    []placed
	dynamic   uint64 // address of dynamic shared memory; 0 if there is none
	sharedLen int    // bytes of static shared memory
	threads   int    // maximum per block; 0 if not given
	locals    []placed
	spare     *block // of the last launch
}

// fixedValue is a register with the same number in all threads.
type fixedValue struct {
	reg  int32
	bits uint64
}

// specialValue is a register that a block sets at its start.
type specialValue struct {
	reg  int32
	name string
}

// placed is a variable of shared or local memory at its address.
type placed struct {
	name string
	base uint64
	size int
}

// block is the running block, and its memory, which all blocks of a launch reuse.
type block struct {
	device   *Device
	kernel   *kernel
	grid     [3]int
	size     [3]int // in threads
	threads  int
	at       [3]int // its index
	dynamic  int    // bytes of dynamic shared memory
	params   *region
	shared   []*region
	warps    []*warp
	budget   int64
	segment  stamp // counts segments, through all launches
	launched stamp // first of the launch
	began    stamp // first of the block
	firsts   []stamp
}

// newBlock returns memory for the blocks of a launch: the memory of the kernel's last launch
// if it fits.
func newBlock(d *Device, k *kernel, grid, size [3]int, dynamic int, params []byte) *block {
	threads := size[0] * size[1] * size[2]
	b := k.spare
	if b == nil || b.threads != threads || b.dynamic != dynamic {
		b = k.makeRoom(threads, dynamic)
		k.spare = b
	}
	b.device, b.budget, b.grid, b.size = d, d.settings.Budget, grid, size
	b.firsts = b.firsts[:0]
	b.params = newRegion("the parameters", paramBase, len(params), 1)
	b.params.fixed = true
	copy(b.params.data, params)
	b.params.written(0, len(b.params.data))
	for _, w := range b.warps {
		clear(w.regs)
		clear(w.preds)
		for _, c := range k.constants {
			for l := range lanes {
				w.regs[c.reg][l] = c.bits
			}
		}
	}
	return b
}

// makeRoom allocates the memory of a block.
func (k *kernel) makeRoom(threads, dynamic int) *block {
	b := &block{kernel: k, threads: threads, dynamic: dynamic}
	for _, v := range k.shared {
		b.shared = append(b.shared, newRegion("shared variable "+v.name, v.base, v.size, 1))
	}
	if k.dynamic != 0 {
		b.shared = append(b.shared, newRegion("dynamic shared memory", k.dynamic, dynamic, 1))
	}
	for i := range (threads + lanes - 1) / lanes {
		w := &warp{block: b, index: i, regs: make([]values, k.values), preds: make([]uint32, k.preds)}
		for _, v := range k.locals {
			w.local = append(w.local, newRegion("local variable "+v.name, v.base, v.size, lanes))
		}
		b.warps = append(b.warps, w)
	}
	return b
}

// run executes the launch block by block, in the order of indices or backwards.
//
// Design note: running blocks in parallel would need locks, or a second pass, to track
// accesses of others. Ranks run in parallel instead.
func (b *block) run() {
	b.segment = b.device.segment + 1<<segShift
	b.launched = b.segment
	for i := range b.kernel.code {
		if m := b.kernel.code[i].mem; m != nil {
			m.last = nil
		}
	}
	for i := range b.grid[0] * b.grid[1] * b.grid[2] {
		b.at = b.blockAt(i)
		b.begin()
		b.finish()
	}
}

// blockAt returns the index of the i-th block in execution order.
func (b *block) blockAt(i int) [3]int {
	if b.device.settings.Backwards {
		i = b.grid[0]*b.grid[1]*b.grid[2] - 1 - i
	}
	return [3]int{i % b.grid[0], i / b.grid[0] % b.grid[1], i / b.grid[0] / b.grid[1]}
}

// begin starts all threads of the block.
func (b *block) begin() {
	b.advance()
	b.began = b.segment
	b.firsts = append(b.firsts, b.segment)
	for _, r := range b.shared {
		r.floor = b.began - 1
	}
	for _, w := range b.warps {
		n := min(lanes, b.threads-w.index*lanes)
		w.live = uint32(1<<n - 1)
		w.groups = append(w.groups[:0], group{mask: w.live})
		w.steps = b.budget
		for _, r := range w.local {
			r.floor = b.began - 1
		}
		w.specials()
	}
}

// advance starts a segment.
func (b *block) advance() {
	b.segment += 1 << segShift
	b.device.segment = b.segment
	for _, w := range b.warps {
		w.now = b.segment | stamp(w.index*lanes)<<threadShift
		if w.syncs > 0 {
			w.syncs, w.whole, w.met = 0, 0, [lanes][lanes]uint16{}
		}
	}
}

// finish runs the block to its end. Between two barriers its warps run sequentially.
func (b *block) finish() {
	for {
		waiting := 0
		for i := range b.warps {
			w := b.warps[i]
			if b.device.settings.Backwards {
				w = b.warps[len(b.warps)-1-i]
			}
			w.run()
			if f := w.stuck(); f != nil {
				panic(f)
			}
			if len(w.groups) > 0 {
				waiting++
			}
		}
		if waiting == 0 {
			return
		}
		b.barrier()
	}
}

// barrier releases all threads from the barrier at which they wait.
//
// A barrier also counts as divergent if a thread has exited before it. PTX then lets the
// others pass, but CUDA C++ does not allow it.
func (b *block) barrier() {
	place := int32(-1)
	for _, w := range b.warps {
		for _, g := range w.groups {
			if place < 0 {
				place = g.pc
			}
			if g.pc != place {
				in := &b.kernel.code[g.pc]
				panic(w.finding(DivergentBarrier, in, firstLane(g.mask),
					"other threads of the block wait at line %d", b.kernel.code[place].line))
			}
		}
	}
	in := &b.kernel.code[place]
	for _, w := range b.warps {
		n := min(lanes, b.threads-w.index*lanes)
		if ended := uint32(1<<n-1) &^ w.live; ended != 0 {
			panic(w.finding(DivergentBarrier, in, firstLane(ended), "this thread has ended, but others wait"))
		}
	}
	if in.run != nil {
		in.run(b.warps[0], in)
	}
	for _, w := range b.warps {
		w.groups[0].pc++
		w.groups[0].waiting = onward
	}
	b.advance()
}

// specials sets the special registers that the kernel reads.
func (w *warp) specials() {
	for _, s := range w.block.kernel.specials {
		value, r := specialRegisters[s.name], &w.regs[s.reg]
		for l := range lanes {
			r[l] = value(w.block, w.index*lanes+l)
		}
	}
}

// specialRegisters returns the value of each supported special register in a thread of a block.
// Clocks are constant, and every block is on multiprocessor 0.
var specialRegisters = func() map[string]func(b *block, thread int) uint64 {
	ofLane := func(value func(lane int) uint64) func(*block, int) uint64 {
		return func(_ *block, thread int) uint64 { return value(thread % lanes) }
	}
	names := map[string]func(b *block, thread int) uint64{
		"%laneid":      ofLane(func(lane int) uint64 { return uint64(lane) }),
		"%warpid":      func(_ *block, thread int) uint64 { return uint64(thread / lanes) },
		"%nwarpid":     func(b *block, _ int) uint64 { return uint64(len(b.warps)) },
		"%lanemask_eq": ofLane(func(lane int) uint64 { return 1 << lane }),
		"%lanemask_lt": ofLane(func(lane int) uint64 { return 1<<lane - 1 }),
		"%lanemask_le": ofLane(func(lane int) uint64 { return 2<<lane - 1 }),
		"%lanemask_gt": ofLane(func(lane int) uint64 { return (1<<lanes - 1) &^ (2<<lane - 1) }),
		"%lanemask_ge": ofLane(func(lane int) uint64 { return (1<<lanes - 1) &^ (1<<lane - 1) }),
		"%dynamic_smem_size": func(b *block, _ int) uint64 {
			if b.kernel.dynamic == 0 {
				return 0
			}
			return b.shared[len(b.shared)-1].size
		},
	}
	for _, n := range []string{"%smid", "%nsmid", "%gridid", "%clock", "%clock64", "%globaltimer"} {
		names[n] = func(*block, int) uint64 { return 0 }
	}
	for i, axis := range []string{".x", ".y", ".z"} {
		names["%tid"+axis] = func(b *block, thread int) uint64 { return uint64(b.threadAt(thread)[i]) }
		names["%ntid"+axis] = func(b *block, _ int) uint64 { return uint64(b.size[i]) }
		names["%ctaid"+axis] = func(b *block, _ int) uint64 { return uint64(b.at[i]) }
		names["%nctaid"+axis] = func(b *block, _ int) uint64 { return uint64(b.grid[i]) }
	}
	return names
}()

// threadAt returns the index of a thread from its number.
func (b *block) threadAt(i int) [3]int {
	return [3]int{i % b.size[0], i / b.size[0] % b.size[1], i / b.size[0] / b.size[1]}
}

// region returns the region with an address of a space, or nil.
func (b *block) region(w *warp, s space, addr uint64) *region {
	switch s {
	case shared:
		return within(b.shared, addr)
	case local:
		return within(w.local, addr)
	case param:
		return b.params
	}
	return b.device.region(addr)
}

// within returns the last region of list, in ascending order, that starts at or before addr.
func within(list []*region, addr uint64) *region {
	i := sort.Search(len(list), func(i int) bool { return list[i].base > addr }) - 1
	if i < 0 {
		return nil
	}
	return list[i]
}

// beside returns the name of the allocation before an address outside all allocations.
func (b *block) beside(w *warp, s space, addr uint64) string {
	if addr == 0 {
		return "which is not an address"
	}
	return b.region(w, s, addr).beside(addr)
}

// who names the thread of a stamp.
func (b *block) who(s stamp) string {
	i := sort.Search(len(b.firsts), func(i int) bool { return b.firsts[i] > s }) - 1
	text := fmt.Sprintf("thread %v of block %v", b.threadAt(s.thread()), b.blockAt(i))
	if s&(many|foreign) != 0 {
		text += " and others"
	}
	return text
}
