package disk

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"siafu/internal/fault"
)

// Load describes accesses to a file: threads that take one piece after another.
type Load struct {
	Piece   int           // bytes of an access, a multiple of 4,096
	Threads int           // 1 or more
	Write   bool          // write, not read
	Bytes   int64         // bytes of all accesses at most, from the beginning of the file; 0: the file
	Limit   time.Duration // no new access begins after it; 0: none
	Stop    func() bool   // no new access begins if it returns true; may be nil
}

// Rate returns the bytes per second of a load. Pages in the cache do not count: they are removed first
// if the file is not direct. Faults have kind IO.
func (f *File) Rate(l Load) (float64, error) {
	if !f.direct {
		if err := f.Forget(); err != nil {
			return 0, err
		}
	}
	total := f.size
	if l.Bytes > 0 {
		total = min(total, l.Bytes)
	}
	piece := int64(l.Piece)
	return rate(l, func(b []byte, at int64) (int, error) {
		if at >= total {
			return 0, nil
		}
		b = b[:min(piece, (total-at+block-1)/block*block)]
		n, err := 0, error(unix.EINTR)
		for err == unix.EINTR {
			if l.Write {
				n, err = unix.Pwrite(int(f.file.Fd()), b, at)
			} else {
				n, err = unix.Pread(int(f.file.Fd()), b, at)
			}
		}
		if err != nil {
			return 0, fault.System(verb(l.Write), f.path, err)
		}
		return n, nil
	}, func() error {
		if !l.Write {
			return nil
		}
		if err := unix.Fdatasync(int(f.file.Fd())); err != nil {
			return fault.System(verb(true), f.path, err)
		}
		return nil
	})
}

func verb(write bool) string {
	if write {
		return "write"
	}
	return "read"
}

// rate calls access for pieces at increasing positions until it returns 0 bytes, and then finish. It
// returns the bytes per second.
func rate(l Load, access func(b []byte, at int64) (int, error), finish func() error) (float64, error) {
	var next, done atomic.Int64
	errs := make([]error, l.Threads)
	begin := time.Now()
	var wg sync.WaitGroup
	for k := range l.Threads {
		wg.Go(func() {
			b, free := buffer(l.Piece)
			defer free()
			for (l.Limit == 0 || time.Since(begin) < l.Limit) && (l.Stop == nil || !l.Stop()) {
				n, err := access(b, next.Add(int64(l.Piece))-int64(l.Piece))
				if n == 0 || err != nil {
					errs[k] = err
					return
				}
				done.Add(int64(n))
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	if err := finish(); err != nil {
		return 0, err
	}
	return float64(done.Load()) / max(time.Since(begin).Seconds(), 1e-9), nil
}

// buffer returns n bytes aligned for direct accesses, and a function that frees them.
func buffer(n int) (b []byte, free func()) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE)
	if err != nil {
		return make([]byte, n), func() {} // too little memory for a mapping: the access reports it
	}
	return b, func() { _ = unix.Munmap(b) }
}

// MappedRate maps the file for reading, removes its pages from the cache, and returns the bytes per
// second at which one thread reads a byte of every page, in order. With populate, the system reads
// each piece of the given bytes first (MADV_POPULATE_READ), otherwise page by page with its own
// read-ahead. ok is false if the system cannot populate. Faults have kind IO.
func (f *File) MappedRate(piece int, populate bool, limit time.Duration, stop func() bool) (bytes float64, ok bool, err error) {
	if err := f.Forget(); err != nil {
		return 0, false, err
	}
	b, err := unix.Mmap(int(f.file.Fd()), 0, int(f.size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, false, fault.System("map", f.path, err)
	}
	defer func() { _ = unix.Munmap(b) }()
	_ = unix.Madvise(b, unix.MADV_SEQUENTIAL) // a hint only
	ok = true
	bytes, err = rate(Load{Piece: piece, Threads: 1, Limit: limit, Stop: stop}, func(_ []byte, at int64) (int, error) {
		if at >= f.size {
			return 0, nil
		}
		part := b[at:min(at+int64(piece), f.size)]
		if populate && unix.Madvise(part, unix.MADV_POPULATE_READ) != nil {
			ok = false
			return 0, nil
		}
		touch(part)
		return len(part), nil
	}, func() error { return nil })
	return bytes, ok, err
}

// touched keeps the compiler from removing reads.
var touched atomic.Uint32

// touch reads a byte of every page.
func touch(b []byte) {
	sum := byte(0)
	for i := 0; i < len(b); i += block {
		sum ^= b[i]
	}
	touched.Store(uint32(sum))
}
