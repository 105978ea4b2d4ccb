package host

import "golang.org/x/sys/unix"

// FreeDisk returns the bytes that this user can still write to the file system of a folder.
func FreeDisk(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}

// InMemory reports whether a folder is on a file system whose files are in memory.
func InMemory(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && (s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC)
}

// DiskBytes returns the bytes that this process has read from and written to disks, without those
// served by the page cache: 0 if the system does not report them.
func DiskBytes() (read, written int64) {
	read, _ = readField("/proc/self/io", "read_bytes:")
	written, _ = readField("/proc/self/io", "write_bytes:")
	return read, written
}
