package mapped

import (
	"cmp"
	"os"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"siafu/internal/disk"
	"siafu/internal/fault"
)

// Block is the unit in bytes of a Pool: a huge page of most systems.
const Block = 2 << 20

// spare is the number of unused blocks that a pool has beside those that stay: neighbouring parts share
// a block.
const spare = 8

// Pool reads parts of mapped files past the page cache, in blocks, into memory of its own at the
// addresses of the mapping. Memory that no Fetch has requested shows the file as before. The first blocks stay
// in memory. Passes over more data than fits therefore read the same number of bytes each, while a cache
// that replaces the oldest page reads all of it again. Blocks that are written to have room of their own.
// All methods of a nil Pool use the page cache.
//
// A block in memory is read-only until a Fetch for writing. Its next eviction writes it to the file.
//
// Invariants, with mu locked: idle has the loaded blocks without users that do not stay, the oldest first.
// A block's memory is at its address while its state is loaded, and until the end of its eviction.
type Pool struct {
	room [2]int // bytes of blocks that may still be chosen to stay; [1] of blocks that are written to

	mu      sync.Mutex
	changed sync.Cond // a state
	idle    []*frame
	owned   []*mapping
	err     error // of a write
}

// frame is a block of a mapping.
type frame struct {
	of      *mapping
	lo, hi  int // bytes of the mapping, whole pages
	users   int
	state   frameState
	stays   bool // in memory without users
	written bool // by a user, at any time
	dirty   bool // it differs from the file
	failed  bool // a direct read has failed
}

// class is an index of Pool.room.
func (f *frame) class() int {
	if f.written {
		return 1
	}
	return 0
}

type frameState uint8

const (
	absent frameState = iota
	moving            // between the disk and memory
	loaded
)

// Most is the maximum size in bytes of the blocks that stay: each is a mapping of its own, and Linux allows a
// process 65,530 of them.
const Most = 1 << 14 * Block

// NewPool returns a pool. Blocks that are only read stay up to a size in bytes, and blocks that are also
// written to up to another one, at most Most together.
func NewPool(read, written int64) *Pool {
	p := &Pool{room: [2]int{int(read), int(written)}}
	p.changed.L = &p.mu
	return p
}

// Fetch is the function Fetch. The part stays in memory until as many calls of Release. If the file system
// refuses direct reads, or a direct read fails, the page cache has the part. With write, the caller may
// write to the part, which must belong to an array in a file (Arena.Spill). Faults have kind IO.
func (p *Pool) Fetch(b []byte, write bool) error {
	m := p.claim(b)
	if m == nil {
		return Fetch(b)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	whole := true
	for _, f := range m.framesOf(b) {
		if f.users++; f.users == 1 && f.state == loaded && !f.stays {
			p.idle = slices.DeleteFunc(p.idle, func(o *frame) bool { return o == f })
		}
		f.written = f.written || write
		p.load(f)
		if write && f.state == loaded && !f.dirty {
			f.dirty = true
			whole = unix.Mprotect(f.bytes(), unix.PROT_READ|unix.PROT_WRITE) == nil && whole
		}
		whole = whole && f.state == loaded
	}
	if p.err != nil || whole {
		return p.err
	}
	p.mu.Unlock()
	defer p.mu.Lock()
	return Fetch(b)
}

// Release ends the use of a part, after Fetch.
func (p *Pool) Release(b []byte) {
	m := p.claim(b)
	if m == nil {
		Release(b)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range m.framesOf(b) {
		if f.users--; f.users == 0 && f.state == loaded && !f.stays {
			p.idle = append(p.idle, f)
		}
	}
}

// Close frees the pool's memory, without writing changed blocks. The mappings show their files again. No
// part may be in use.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	owned := slices.Clone(p.owned)
	p.mu.Unlock()
	for _, m := range owned {
		m.leave()
	}
}

// claims is locked while a mapping gets or loses its pool, before the pool's lock.
var claims sync.Mutex

// leave ends the service of a mapping, whose parts have no users. Values of changed blocks are lost.
func (m *mapping) leave() {
	claims.Lock()
	defer claims.Unlock()
	p := m.pool
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = m.restore(0, len(pages(m.data))) // otherwise its blocks stay
	p.idle = slices.DeleteFunc(p.idle, func(f *frame) bool { return f.of == m })
	p.owned = slices.DeleteFunc(p.owned, func(o *mapping) bool { return o == m })
	m.direct.Close()
	m.pool, m.direct, m.frames = nil, nil, nil
}

// restore makes bytes of the mapping, whole pages, show the file.
func (m *mapping) restore(lo, hi int) error {
	_, err := unix.MmapPtr(int(m.file.Fd()), m.offset+int64(lo), unsafe.Pointer(&pages(m.data)[lo]), uintptr(hi-lo), m.protection,
		unix.MAP_SHARED|unix.MAP_FIXED)
	return err
}

// claim returns the mapping of b, which p serves from then on, or nil if there is none, if it has no direct
// reads, or if another pool serves it.
func (p *Pool) claim(b []byte) *mapping {
	if p == nil || !IsFile(b) {
		return nil
	}
	m := mappingOf(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	claims.Lock()
	defer claims.Unlock()
	if m.pool == nil && !m.buffered {
		if m.direct = disk.Direct(m.file); m.direct == nil {
			m.buffered = true
			return nil
		}
		m.pool, m.frames = p, make([]*frame, (m.end-m.at/Block*Block+Block-1)/Block)
		_ = unix.Madvise(pages(m.data), unix.MADV_NORMAL) // restored parts then merge with it
		p.mu.Lock()
		p.owned = append(p.owned, m)
		p.mu.Unlock()
	}
	if m.pool != p {
		return nil
	}
	return m
}

// framesOf returns the blocks with b. The caller holds the pool's lock.
func (m *mapping) framesOf(b []byte) []*frame {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	first, last := at/Block-m.at/Block, (at+uintptr(len(b))-1)/Block-m.at/Block
	for k := first; k <= last; k++ {
		if m.frames[k] == nil {
			begin := int((m.at/Block+k)*Block) - int(m.at)
			m.frames[k] = &frame{of: m, lo: max(begin, 0), hi: min(begin+Block, len(pages(m.data)))}
		}
	}
	return m.frames[first : last+1]
}

func (f *frame) bytes() []byte { return pages(f.of.data)[f.lo:f.hi] }

// load loads a block unless it is loaded or its file has failed. The caller holds the lock, which load
// releases while it reads.
func (p *Pool) load(f *frame) {
	for f.state == moving {
		p.changed.Wait()
	}
	if f.state == loaded || f.failed {
		return
	}
	f.state = moving
	for len(p.idle) > spare {
		oldest := p.idle[0]
		p.idle = slices.Delete(p.idle, 0, 1)
		p.evict(oldest)
	}
	p.mu.Unlock()
	err := f.read()
	p.mu.Lock()
	if f.state, f.failed = loaded, err != nil; f.failed {
		f.state = absent
	} else if room := &p.room[f.class()]; *room >= f.hi-f.lo {
		f.stays = true
		*room -= f.hi - f.lo
	}
	p.changed.Broadcast()
}

// evict makes the mapping show the file in place of a loaded block. A block that cannot be written stays
// in memory. The caller holds the lock, which evict releases while it writes.
func (p *Pool) evict(f *frame) {
	f.state = moving
	p.mu.Unlock()
	var err error
	if f.dirty {
		err = transfer(unix.Pwrite, f.of.direct, f.bytes(), f.of.offset+int64(f.lo), f.hi-f.lo)
	}
	if err == nil {
		err = f.of.restore(f.lo, f.hi)
	}
	p.mu.Lock()
	if f.state, f.dirty = absent, false; err != nil {
		f.state, f.dirty, f.stays = loaded, true, true
		p.err = cmp.Or(p.err, error(writeFault(f.of.path, err)))
	}
	p.changed.Broadcast()
}

// read reads a block, and makes it appear at its address, read-only, in one step: other goroutines see the file or
// all of the block.
func (f *frame) read() error {
	b, err := unix.Mmap(-1, 0, 2*Block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(b) }()
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // a hint only
	to := f.bytes()
	at := uintptr(unsafe.Pointer(&to[0]))
	from := b[(at-uintptr(unsafe.Pointer(&b[0])))%Block:][:len(to)] // at the same place of a huge page
	if err := transfer(unix.Pread, f.of.direct, from, f.of.offset+int64(f.lo), min(len(to), len(f.of.data)-f.lo)); err != nil {
		return err
	}
	if _, _, e := unix.Syscall6(unix.SYS_MREMAP, uintptr(unsafe.Pointer(&from[0])), uintptr(len(from)), uintptr(len(to)),
		unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED|unix.MREMAP_DONTUNMAP, at, 0); e != 0 {
		return e
	}
	return unix.Mprotect(to, unix.PROT_READ)
}

// transfer reads or writes n bytes or more at an offset, in whole pages.
func transfer(call func(fd int, b []byte, at int64) (int, error), f *os.File, b []byte, at int64, n int) error {
	for done := 0; done < n; {
		some, err := call(int(f.Fd()), b[done:], at+int64(done))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case some == 0:
			return unix.ENODATA // truncated
		default:
			done += some
		}
	}
	return nil
}

// writeFault returns the fault of values that cannot be written to a folder's file.
func writeFault(dir string, err error) *fault.Error {
	e := fault.System("scratch", dir, err)
	e.Kind, e.Detail = fault.IO, "the system cannot write values to the file"
	e.Remedy = cmp.Or(e.Remedy, "check the disk (dmesg), or choose another folder")
	return e
}
