package mapped

import (
	"cmp"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"siafu/internal/fault"
)

// mapping is a range of addresses that shows a file from offset on.
type mapping struct {
	at, end    uintptr
	data       []byte
	path       string
	file       *os.File // open until unregister
	offset     int64
	protection int

	// Of pools, with the lock of claims.
	pool     *Pool // that serves it; nil: none
	buffered bool  // it has no direct reads
	direct   *os.File
	frames   []*frame // by block of addresses, with the pool's lock; nil before their first use
}

// mappings has the mappings of this process's files, ascending by address. It is global, as addresses
// are.
var mappings struct {
	sync.RWMutex
	list []*mapping
}

// register records that b shows a file from offset on, until unregister.
func register(b []byte, f *os.File, path string, offset int64, protection int) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	m := &mapping{at: at, end: at + uintptr(len(b)), data: b, path: path, file: f, offset: offset, protection: protection}
	mappings.Lock()
	defer mappings.Unlock()
	k, _ := slices.BinarySearchFunc(mappings.list, at, (*mapping).compare)
	mappings.list = slices.Insert(mappings.list, k, m)
}

// unregister ends the use of a mapping, which no pool may use meanwhile.
func unregister(b []byte) {
	m := mappingOf(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	if m == nil {
		return
	}
	m.leave()
	mappings.Lock()
	defer mappings.Unlock()
	mappings.list = slices.DeleteFunc(mappings.list, func(o *mapping) bool { return o == m })
}

func (m *mapping) compare(at uintptr) int {
	switch {
	case m.end <= at:
		return -1
	case m.at > at:
		return 1
	}
	return 0
}

// mappingOf returns the mapping of an address, nil if there is none.
func mappingOf(at uintptr) *mapping {
	mappings.RLock()
	defer mappings.RUnlock()
	k, ok := slices.BinarySearchFunc(mappings.list, at, (*mapping).compare)
	if !ok {
		return nil
	}
	return mappings.list[k]
}

// IsFile reports whether b is part of a mapped file.
func IsFile(b []byte) bool {
	return len(b) > 0 && mappingOf(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) != nil
}

// Sequential makes the system read a part of a mapped file ahead, and not also behind, and reclaim pages
// that have been read first. Use it for arrays that are read in order.
func Sequential(b []byte) {
	if IsFile(b) {
		_ = unix.Madvise(pages(b), unix.MADV_SEQUENTIAL) // a hint only
	}
}

// Fetch returns when b, a part of a mapped file, is in memory. The system may reclaim its pages later.
// A fault of kind IO names the file and the offset that cannot be read.
func Fetch(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	b = pages(b)
	switch err := populate(b); {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS): // before Linux 5.14
		return touch(b)
	}
	page := os.Getpagesize()
	for at := 0; at < len(b); at += page {
		if err := populate(b[at : at+page]); err != nil {
			if errors.Is(err, unix.EFAULT) { // in place of a signal
				err = unix.EIO
			}
			return unreadable(uintptr(unsafe.Pointer(&b[at])), err)
		}
	}
	return nil // readable again
}

// Release removes the pages that b, a part of a mapped file, fills from this process's memory until they are
// used again. They stay in the page cache, where the system reclaims unused pages with less work.
func Release(b []byte) {
	page := uintptr(os.Getpagesize())
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	lo, hi := (page-at%page)%page, uintptr(len(b))-(at+uintptr(len(b)))%page
	if IsFile(b) && lo < hi && hi <= uintptr(len(b)) {
		_ = unix.Madvise(b[lo:hi], unix.MADV_DONTNEED) // a hint only
	}
}

func populate(b []byte) error {
	for {
		err := unix.Madvise(b, unix.MADV_POPULATE_READ)
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			return err
		}
	}
}

// touch reads a byte of each page.
func touch(b []byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer Catch(&err)
	_ = unix.Madvise(b, unix.MADV_WILLNEED) // a hint only
	sum := byte(0)
	for at := 0; at < len(b); at += os.Getpagesize() {
		sum ^= b[at]
	}
	runtime.KeepAlive(sum)
	return nil
}

// pages returns the pages with b.
func pages(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	page := uintptr(os.Getpagesize())
	p := unsafe.Pointer(unsafe.SliceData(b))
	before := uintptr(p) % page
	size := (before + uintptr(len(b)) + page - 1) / page * page
	return unsafe.Slice((*byte)(unsafe.Add(p, -int(before))), size)
}

// unreadable returns the fault of the page at an address in a mapped file, nil if it is not in one.
func unreadable(at uintptr, cause error) *fault.Error {
	m := mappingOf(at)
	if m == nil {
		return nil
	}
	offset := m.offset + int64(at-m.at)
	offset -= offset % int64(os.Getpagesize())
	e := fault.New(fault.IO, "read", m.path, "the disk cannot read the page at byte %d", offset).
		Then("check the disk (dmesg); if the file is damaged, create it again")
	e.Err = cmp.Or(cause, error(unix.EIO))
	if info, err := os.Stat(m.path); err == nil && info.Mode().IsRegular() && info.Size() <= offset {
		e = fault.New(fault.IO, "read", m.path,
			"byte %d is missing: another process has truncated the file to %d bytes", offset, info.Size()).
			Then("create the file again, and do not change it during a run")
	}
	return e
}
