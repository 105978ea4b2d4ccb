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

// Place contains the locations of the shards of a dataset. Each partitioning for P ranks has its own
// folder below a root folder. Folder P contains the latest partitioning that siafu partition made,
// or else the first one. The other partitionings are in folders P-METHOD-ORDER-SEED.
type Place struct {
	Data  string // the dataset folder
	Root  string // root folder; "": parts in the dataset folder, or Spare
	Spare string // root folder if the dataset folder is not writable; "": none

	// Fingerprint is the fingerprint of the dataset. Shards in Spare with another fingerprint belong
	// to another dataset and are ignored.
	Fingerprint string
}

// roots returns the root folders in which shards are searched, the default first.
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

// writable returns the root folder in which new shards are built.
func (p Place) writable() string {
	list := p.roots()
	for _, dir := range []string{list[0], filepath.Dir(list[0])} {
		err := unix.Access(dir, unix.W_OK|unix.X_OK)
		if errors.Is(err, fs.ErrNotExist) && p.Root == "" {
			continue // the root folder will be created in its parent
		}
		if err != nil && p.Root == "" {
			return list[len(list)-1]
		}
		break
	}
	return list[0]
}

// Ensure returns the folder of the shards that o requests. If there are none, it builds them like
// Run and also returns their report. Before it builds them, it calls begins with the final options.
// If another process is partitioning the dataset, Ensure waits and uses the result.
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

// Made returns the Meta of the shards that o requests, or nil if there are no usable shards.
func (p Place) Made(o Options) *Meta {
	_, m, _ := p.serving(o) // the program that opens the shards reports the error
	return m
}

// Folder returns the folder of the shards that o requests, or "" if there are no usable shards.
func (p Place) Folder(o Options) string {
	folder, _, _ := p.serving(o) // the program that opens the shards reports the error
	return folder
}

// serving returns the folder and the Meta of the shards that o requests. The folder is "" if there
// are none.
func (p Place) serving(o Options) (string, *Meta, error) {
	for _, root := range p.roots() {
		first := filepath.Join(root, strconv.Itoa(o.Parts))
		for _, folder := range append([]string{first}, otherFolders(root, o.Parts)...) {
			m, err := p.lookUp(folder, o.Parts)
			if err != nil && folder == first { // other damaged folders are ignored and built again
				return "", nil, err
			}
			if err == nil && m != nil && m.Serves(o) {
				return folder, m, nil
			}
		}
	}
	return "", nil, nil
}

// otherFolders returns the folders P-METHOD-ORDER-SEED in root for the given number of parts, sorted
// by name.
func otherFolders(root string, parts int) (folders []string) {
	list, _ := os.ReadDir(root) // an unreadable folder counts as empty
	for _, e := range list {
		if strings.HasPrefix(e.Name(), strconv.Itoa(parts)+"-") {
			folders = append(folders, filepath.Join(root, e.Name()))
		}
	}
	return folders
}

// lookUp reads the Meta of a folder of shards. It returns nil if the folder has no shards of this
// dataset.
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

// folderName returns the name P-METHOD-ORDER-SEED of a folder of shards. If the partition is from a
// file, METHOD contains a checksum of the file's path.
func folderName(method, order string, parts int, seed uint64) string {
	if path, ok := strings.CutPrefix(method, filePrefix); ok {
		method = fmt.Sprintf("file%08x", crc32.ChecksumIEEE([]byte(path)))
	}
	return fmt.Sprintf("%d-%s-%s-%d", parts, method, cmp.Or(order, "auto"), seed)
}

func (m *Meta) folderName() string { return folderName(m.Method, m.Order, m.Parts, m.Seed) }

// lock waits until no other process partitions the dataset, and then excludes other processes until
// unlock or the end of this process. It locks the dataset folder itself and creates no file. Some
// file systems, such as NFS, cannot lock a folder. Two processes may then partition the dataset at
// the same time, and the result of the later one replaces the other result.
func lock(dir string) (unlock func()) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {} // graph.Open reports the error
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	return func() { f.Close() }
}
