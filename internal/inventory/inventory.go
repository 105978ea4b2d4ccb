package inventory

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"siafu/internal/fault"
	"siafu/internal/scratch"
)

// Folder lists all that siafu writes into a kind of folder.
type Folder []Entry

// Entry describes a file or folder that siafu writes under one name, or under names of one form.
type Entry struct {
	Name *regexp.Regexp // of the whole name
	In   Folder         // contents of a folder with that name; nil: a regular file
	// Proof reports whether the file or folder is siafu's. It is nil if the name is proof enough
	// within a folder of siafu.
	Proof func(path string) bool
}

// Files returns entries for regular files with these names, complete or still being written.
func Files(names ...string) Folder {
	var list Folder
	for _, name := range names {
		list = append(list, Entry{Name: Pattern(regexp.QuoteMeta(name) + `(` + scratch.Suffix + `)?`)})
	}
	return list
}

// Pattern returns a regular expression for a whole name.
func Pattern(expr string) *regexp.Regexp { return regexp.MustCompile(`^(?:` + expr + `)$`) }

// Foreign returns the path of an entry in the folder dir that siafu has not written, the first
// by name; empty if there is none, or no folder.
func (f Folder) Foreign(dir string) (string, error) {
	_, foreign, err := f.list(dir)
	return foreign, err
}

// Clear removes siafu's files from the folder dir, except the names to keep, and leaves the
// folder. If there is anything else, nothing is removed, and a fault of kind Usage names it.
func (f Folder) Clear(op, dir string, keep ...string) error {
	own, foreign, err := f.list(dir)
	if err != nil {
		return fault.System(op, dir, err)
	}
	if foreign != "" {
		return Refusal(op, foreign)
	}
	for _, path := range own {
		if filepath.Dir(path) == filepath.Clean(dir) && slices.Contains(keep, filepath.Base(path)) {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.System(op, path, err)
		}
	}
	return nil
}

// Refusal returns the fault about a file or folder that exists at path and is not siafu's.
func Refusal(op, path string) error {
	return fault.New(fault.Usage, op, path, "siafu did not write it, so nothing is removed").
		Then("move it away, or choose another folder")
}

// list returns the paths of all files and folders of siafu in a folder. A folder follows its
// contents. foreign is the first path that is not siafu's.
func (f Folder) list(dir string) (own []string, foreign string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		known := f.find(e, path)
		if _, err := os.Lstat(path); known == nil && errors.Is(err, fs.ErrNotExist) {
			continue // removed by another process
		}
		if known == nil {
			return own, path, nil
		}
		if known.In != nil {
			below, foreign, err := known.In.list(path)
			own = append(own, below...)
			if foreign != "" || err != nil {
				return own, foreign, err
			}
		}
		own = append(own, path)
	}
	return own, "", nil
}

// unfinished matches the names that package scratch gives to unfinished files and folders.
var unfinished = regexp.MustCompile(scratch.Suffix + `(\.old)?$`)

// find returns the entry of a file or folder, nil for none.
func (f Folder) find(e fs.DirEntry, path string) *Entry {
	if unfinished.MatchString(e.Name()) && !scratch.IsName(e.Name()) {
		return nil
	}
	for i := range f {
		x := &f[i]
		kind := e.Type().IsRegular()
		if x.In != nil {
			kind = e.IsDir()
		}
		if kind && x.Name.MatchString(e.Name()) && (x.Proof == nil || x.Proof(path)) {
			return x
		}
	}
	return nil
}

// Link returns the path of a symbolic link in the folder dir with a name that siafu writes there; empty if
// there is none. A write could follow it to another place.
func (f Folder) Link(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		named := func(x Entry) bool { return x.Name.MatchString(e.Name()) }
		if e.Type()&fs.ModeSymlink != 0 && slices.ContainsFunc(f, named) {
			return filepath.Join(dir, e.Name()), nil
		}
	}
	return "", nil
}

// head is the number of bytes that Head reads.
const head = 4096

// Head returns the start of a file, empty if it is unreadable or not a regular file.
func Head(path string) []byte {
	b, _ := begin(path, head) // an unreadable file counts as empty
	return b
}

// begin returns the first bytes of a regular file, at most n.
func begin(path string, most int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fs.ErrInvalid)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// Overwrite returns nil if a file may be written to path: path does not exist, or is siafu's
// by its first 4096 bytes. Otherwise it returns a fault of kind Usage.
func Overwrite(op, path string, ours func(head []byte) bool) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.System(op, path, err)
	case !info.Mode().IsRegular():
		return fault.New(fault.Usage, op, path, "it exists and is not a regular file").Then("give the name of a new file")
	case !ours(Head(path)):
		return fault.New(fault.Usage, op, path, "it exists and siafu did not write it, so it is not overwritten").
			Then("move it away, or give the name of a new file")
	}
	return nil
}
