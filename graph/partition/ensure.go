package partition

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"siafu/internal/fault"
)

// Place contains the locations where shards of a dataset are searched and built. Each
// partitioning has its own folder: P for the latest one made by siafu partition, or else the
// first one, and P-METHOD-ORDER-SEED for the others.
type Place struct {
	Data  string // the dataset folder
	Root  string // parent folder of the shard folders; "": parts in the dataset folder, or Spare
	Spare string // used if the dataset folder is not writable; "": none

	Fingerprint string // fingerprint of the dataset: Spare may contain shards of another dataset
}

// roots returns the possible roots of shards; the first is the default.
func (p Place) roots() []string {
	if p.Root != "" {
		return []string{p.Root}
	}
	list := []string{filepath.Join(p.Data, "parts")}
	if p.Spare != "" {
		list = append(list, p.Spare)
	}
	return list
}

// writable returns the root in which shards are built.
func (p Place) writable() string {
	list := p.roots()
	for _, dir := range []string{list[0], filepath.Dir(list[0])} {
		err := unix.Access(dir, unix.W_OK|unix.X_OK)
		if errors.Is(err, fs.ErrNotExist) && p.Root == "" {
			continue // it is created in its parent
		}
		if err != nil && p.Root == "" {
			return list[len(list)-1]
		}
		break
	}
	return list[0]
}

// Ensure finds the folder of the shards that o requests, or builds them like Run; it then
// returns the report too. If another process is partitioning the dataset, it waits, and uses
// the result. begins is called with the final options before the work.
func (p Place) Ensure(o Options, begins func(Options)) (folder string, made *Report, err error) {
	if folder, _, err = p.serving(o); folder != "" || err != nil {
		return folder, nil, err
	}
	defer lock(p.Data)()
	if folder, _, err = p.serving(o); folder != "" || err != nil {
		return folder, nil, err
	}
	root := p.writable()
	folder = filepath.Join(root, strconv.Itoa(o.Parts))
	m, err := p.lookUp(folder, o.Parts)
	if err != nil {
		return "", nil, err
	}
	o = m.Complete(o)
	if m != nil {
		folder = filepath.Join(root, folderName(o.Method, o.Order, o.Parts, o.Seed))
	}
	begins(o)
	made, err = divide(p.Data, folder, o)
	return folder, made, err
}

// Made returns the Meta of the shards that o requests; nil if there are none that can be used.
func (p Place) Made(o Options) *Meta {
	_, m, _ := p.serving(o) // the user of the shards reports the error
	return m
}

// serving returns a folder with the shards that o requests; "": none.
func (p Place) serving(o Options) (string, *Meta, error) {
	for _, root := range p.roots() {
		first := filepath.Join(root, strconv.Itoa(o.Parts))
		for _, folder := range append([]string{first}, otherFolders(root, o.Parts)...) {
			m, err := p.lookUp(folder, o.Parts)
			if err != nil && folder == first { // a damaged other folder is rebuilt
				return "", nil, err
			}
			if err == nil && m != nil && m.Serves(o) {
				return folder, m, nil
			}
		}
	}
	return "", nil, nil
}

// otherFolders returns the further folders of shards for the given number of parts, sorted by name.
func otherFolders(root string, parts int) (folders []string) {
	list, _ := os.ReadDir(root) // an unreadable folder has none
	for _, e := range list {
		if strings.HasPrefix(e.Name(), strconv.Itoa(parts)+"-") {
			folders = append(folders, filepath.Join(root, e.Name()))
		}
	}
	return folders
}

// lookUp calls Find for a folder; it returns nil if the folder has no shards.
func (p Place) lookUp(folder string, parts int) (*Meta, error) {
	m, err := find(folder, p.Data, parts)
	if fault.KindOf(err) == fault.Missing || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && filepath.Dir(folder) == p.Spare && m.Fingerprint != p.Fingerprint {
		return nil, nil
	}
	return m, err
}

// folderName returns the name of a further folder of shards. For a partition from a file it
// includes a checksum of the file's name.
func folderName(method, order string, parts int, seed uint64) string {
	if path, ok := strings.CutPrefix(method, filePrefix); ok {
		method = fmt.Sprintf("file%08x", crc32.ChecksumIEEE([]byte(path)))
	}
	return fmt.Sprintf("%d-%s-%s-%d", parts, method, cmp.Or(order, "auto"), seed)
}

func (m *Meta) folderName() string { return folderName(m.Method, m.Order, m.Parts, m.Seed) }

// lock waits until no other process partitions the dataset, and excludes others. It locks the
// dataset's folder, creates no file, and ends with the process. On file systems that cannot
// lock a folder (NFS) there is no lock: then both processes partition, and the later one
// replaces the other's result.
func lock(dir string) (unlock func()) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {} // the reader of the dataset reports the error
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	return func() { f.Close() }
}
