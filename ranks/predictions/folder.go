package predictions

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"siafu/graph"
	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/inventory"
)

// markName is the file by which siafu knows a predictions folder again.
const markName = "predictions.json"

// markKind is what the marker says of a predictions folder; the keys of
// what it is of are the files that siafu has written there.
const markKind = "predictions folder"

// allFiles are all that siafu writes into a predictions folder.
var allFiles = inventory.Files(markName, ClassFile, ProbabilityFile, LogitFile, EmbeddingFile, IDFile, CSVFile, ParquetFile, PairsFile, MetricsFile)

// Folders returns the predictions folders in a run folder.
func Folders() inventory.Folder {
	return inventory.Folder{{Name: inventory.Pattern(`.*`), In: allFiles, Proof: func(dir string) bool { return marker(dir) != nil }}}
}

func marker(dir string) *inventory.Marker {
	return inventory.ReadMarker(filepath.Join(dir, markName), markKind)
}

// names are those of the files that a prediction writes.
func (o *Options) names() []string {
	names := []string{ClassFile, ProbabilityFile, IDFile, MetricsFile}
	if o.Task == graph.Links {
		names = names[2:]
	}
	if o.Pairs {
		names = append(names, PairsFile)
	}
	if o.Logits {
		names = append(names, LogitFile)
	}
	if o.EmbeddingWidth > 0 {
		names = append(names, EmbeddingFile)
	}
	if o.CSV {
		names = append(names, CSVFile)
	}
	if o.Parquet {
		names = append(names, ParquetFile)
	}
	return names
}

// Vet fails where the files could not be written, or where one of their
// names stands for something that siafu has not written.
func (o *Options) Vet() error {
	names, own := o.names(), map[string]string{}
	if m := marker(o.Dir); m != nil {
		own = m.Of
	} else {
		names = append(names, markName)
	}
	for _, name := range names {
		if _, ours := own[name]; ours {
			continue
		}
		if err := absentFile(filepath.Join(o.Dir, name)); err != nil {
			return err
		}
	}
	return writable(o.Dir)
}

func absentFile(path string) error {
	return inventory.Overwrite("predict", path, func([]byte) bool { return false })
}

// writable fails where nothing can be written into a folder, or into the one in
// which it would be made.
func writable(dir string) error {
	err := unix.Access(dir, unix.W_OK|unix.X_OK)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		err = unix.Access(dir, unix.W_OK|unix.X_OK)
	}
	info, statErr := os.Stat(dir)
	if err == nil && statErr == nil && !info.IsDir() {
		err = unix.ENOTDIR
	}
	if err != nil {
		return fault.System("predict", dir, err)
	}
	return nil
}

// mark says in the folder that siafu writes there, and which files are siafu's
// beside those that were. It comes before each of them.
func (p *Files) mark(files ...string) error {
	m := marker(p.Dir)
	if m == nil {
		p.first = true
		m = new(inventory.Marker)
		*m = inventory.NewMarker(markKind)
	}
	if m.Of == nil {
		m.Of = map[string]string{}
	}
	for _, name := range files {
		p.first = false
		m.Of[name] = ""
	}
	return durable.Write(op, filepath.Join(p.Dir, markName), func(w io.Writer) error { _, err := w.Write(m.Encode()); return err })
}

// unmark takes the marker away where nothing has come of it.
func (p *Files) unmark() {
	if p.first {
		os.Remove(filepath.Join(p.Dir, markName))
	}
}
