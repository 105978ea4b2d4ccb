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

// Place says where the shards of a dataset are looked for, and made. Each partitioning
// has a folder of its own: P, the one that siafu partition has made last or else the first,
// and beside it P-METHOD-ORDER-SEED for the others.
type Place struct {
	Data  string // the dataset's folder
	Root  string // of the folders; "": parts of the dataset's, or Spare
	Spare string // where the dataset's is not to be written to; "": nowhere

	Fingerprint string // of the dataset: Spare may hold shards of another one
}

// roots are where shards may be, the first of them where nothing is said.
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

// writable is the root that shards are made in.
func (p Place) writable() string {
	list := p.roots()
	for _, dir := range []string{list[0], filepath.Dir(list[0])} {
		err := unix.Access(dir, unix.W_OK|unix.X_OK)
		if errors.Is(err, fs.ErrNotExist) && p.Root == "" {
			continue // it is made in the one above
		}
		if err != nil && p.Root == "" {
			return list[len(list)-1]
		}
		break
	}
	return list[0]
}

// Ensure finds the folder of the shards that o asks for, or has them made: Run, but for
// the place. It then returns the report too. Where another process is dividing the dataset
// it waits, and uses what that one has made. begins gets the options that are settled on,
// before the work.
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
	m, err := p.there(folder, o.Parts)
	if err != nil {
		return "", nil, err
	}
	o = m.Complete(o)
	if m != nil {
		folder = filepath.Join(root, beside(o.Method, o.Order, o.Parts, o.Seed))
	}
	begins(o)
	made, err = divide(p.Data, folder, o)
	return folder, made, err
}

// Made returns the Meta of the shards that o requests; nil if there are none that can
// be used.
func (p Place) Made(o Options) *Meta {
	_, m, _ := p.serving(o) // whoever uses them says what is wrong with them
	return m
}

// serving is a folder with the shards that o asks for; "": there is none.
func (p Place) serving(o Options) (string, *Meta, error) {
	for _, root := range p.roots() {
		first := filepath.Join(root, strconv.Itoa(o.Parts))
		for _, folder := range append([]string{first}, besides(root, o.Parts)...) {
			m, err := p.there(folder, o.Parts)
			if err != nil && folder == first { // a damaged one beside it is made again
				return "", nil, err
			}
			if err == nil && m != nil && m.Serves(o) {
				return folder, m, nil
			}
		}
	}
	return "", nil, nil
}

// besides are the folders of shards for so many parts that lie beside the plain one, in
// the order of their names.
func besides(root string, parts int) (folders []string) {
	list, _ := os.ReadDir(root) // what can't be read has none
	for _, e := range list {
		if strings.HasPrefix(e.Name(), strconv.Itoa(parts)+"-") {
			folders = append(folders, filepath.Join(root, e.Name()))
		}
	}
	return folders
}

// there is Find in a folder, and nil where nothing is.
func (p Place) there(folder string, parts int) (*Meta, error) {
	m, err := find(folder, p.Data, parts)
	if fault.KindOf(err) == fault.Missing || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && filepath.Dir(folder) == p.Spare && m.Fingerprint != p.Fingerprint {
		return nil, nil
	}
	return m, err
}

// beside is the name of a folder of shards where the plain one is taken. Of a file's
// partition it has a checksum of the file's name.
func beside(method, order string, parts int, seed uint64) string {
	if path, ok := strings.CutPrefix(method, filePrefix); ok {
		method = fmt.Sprintf("file%08x", crc32.ChecksumIEEE([]byte(path)))
	}
	return fmt.Sprintf("%d-%s-%s-%d", parts, method, cmp.Or(order, "auto"), seed)
}

func (m *Meta) beside() string { return beside(m.Method, m.Order, m.Parts, m.Seed) }

// lock waits until no other process divides the dataset, and keeps others from it. It
// is a lock on the dataset's folder, which leaves nothing there and ends with the process.
// File systems that cannot lock a folder (NFS) go without: then both divide it, and the
// later one replaces what the other has made.
func lock(dir string) (unlock func()) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {} // whoever reads the dataset says so
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	return func() { f.Close() }
}
