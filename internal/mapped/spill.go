package mapped

import (
	"cmp"
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"siafu/internal/disk"
	"siafu/internal/fault"
)

// spill has the arrays of an arena that are stored in a file. The file has no name, so that the
// system deletes it when the process ends, however it ends.
//
// Design note: arrays in a file have addresses as all others, so kernels have a single access path to values.
// The system writes mapped pages back and reads them again, or a Pool does.
type spill struct {
	dir      string
	purposes []string
	file     *os.File // nil before the first array
	end      int64    // length of the file
	maps     [][]byte
}

// Spill makes later arrays of some purposes parts of a file in the folder dir, if they are longer
// than 256 KiB. Their memory is page cache, which the system can reclaim, or blocks of a Pool. Use it for arrays that are
// read and written in order. If the file system has no space for an array, Make fails with a fault of
// kind IO. In a sketch, Spill does nothing.
func (a *Arena) Spill(dir string, purposes ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onDisk.dir, a.onDisk.purposes = dir, purposes
}

// Like returns an empty arena that stores the same purposes in a file as a does.
func (a *Arena) Like() *Arena {
	a.mu.Lock()
	defer a.mu.Unlock()
	other := NewArena()
	other.onDisk.dir, other.onDisk.purposes = a.onDisk.dir, a.onDisk.purposes
	return other
}

// Temporary returns an empty arena, a sketch if a is one.
func (a *Arena) Temporary() *Arena {
	if a.sketch {
		return NewSketch()
	}
	return NewArena()
}

// Spilled returns the size in bytes of the file of arrays.
func (a *Arena) Spilled() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.onDisk.end
}

// WriteError returns a fault of kind IO if the system has failed to write a page of the file of arrays
// since the last call. The values of that page are lost when the system reclaims its memory.
func (a *Arena) WriteError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.onDisk
	if s.file == nil {
		return nil
	}
	// This waits for the last byte only, but reports errors of all pages.
	err := unix.SyncFileRange(int(s.file.Fd()), s.end-1, 1, unix.SYNC_FILE_RANGE_WAIT_BEFORE)
	if err == nil || !errors.Is(err, unix.EIO) && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		return nil
	}
	return writeFault(s.dir, err)
}

func (s *spill) has(purpose string) bool { return slices.Contains(s.purposes, purpose) }

// take maps size bytes at the end of the file. It reserves their blocks: without a block, writing to
// a page of a full disk would end the process.
func (s *spill) take(size int) []byte {
	b, err := s.extend(int64(size))
	if err != nil {
		e := fault.System("scratch", s.dir, err)
		e.Kind, e.Detail = fault.IO, "cannot store an array"
		e.Remedy = cmp.Or(e.Remedy, "choose another folder")
		Fail(e)
	}
	s.maps = append(s.maps, b)
	return b
}

func (s *spill) extend(size int64) ([]byte, error) {
	if s.file == nil {
		f, err := disk.Unnamed(s.dir)
		if err != nil {
			return nil, err
		}
		s.file = f
	}
	page := int64(os.Getpagesize())
	size = (size + page - 1) / page * page
	fd := int(s.file.Fd())
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Fallocate(fd, 0, s.end, size)
	}
	if err != nil {
		return nil, err
	}
	b, err := unix.Mmap(fd, s.end, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	register(b, s.file, s.dir, s.end, unix.PROT_READ|unix.PROT_WRITE)
	s.end += size
	_ = unix.Madvise(b, unix.MADV_SEQUENTIAL) // a hint only
	return b, nil
}

// free deletes the arrays and the file. Where addresses are kept, the arrays stay until the process
// ends.
func (s *spill) free() {
	if !keep.Load() {
		for _, b := range s.maps {
			unregister(b)
			_ = unix.Munmap(b)
		}
	}
	if s.file != nil {
		_ = s.file.Close()
	}
	s.file, s.maps, s.end = nil, nil, 0
}
