package predictions

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"siafu/graph"
	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/inventory"
)

// markName is the name of the marker file of a predictions folder.
const markName = "predictions.json"

// markKind is the kind in the marker. The keys of Marker.Of are the files that siafu has written
// to the folder.
const markKind = "predictions folder"

// allFiles are the files that siafu may write into a predictions folder.
var allFiles = inventory.Files(markName, ClassFile, ProbabilityFile, LogitFile, EmbeddingFile, IDFile, CSVFile,
	ParquetFile, PairsFile, MetricsFile)

// Folders returns the predictions folders in a run folder.
func Folders() inventory.Folder {
	return inventory.Folder{{Name: inventory.Pattern(`.*`), In: allFiles, Proof: func(dir string) bool { return marker(dir) != nil }}}
}

func marker(dir string) *inventory.Marker {
	return inventory.ReadMarker(filepath.Join(dir, markName), markKind)
}

// names returns the names of the files that a prediction writes.
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

// Vet returns a fault if the folder is not writable, or if a file to write exists and is not
// siafu's.
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
		if err := inventory.Overwrite(op, filepath.Join(o.Dir, name), func([]byte) bool { return false }); err != nil {
			return err
		}
	}
	return writable(o.Dir)
}

// writable returns a fault if the folder is not writable. If it does not exist, its nearest
// existing parent must be writable.
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
		return fault.System(op, dir, err)
	}
	return nil
}

// mark adds files to the marker of the folder. It must precede the writing of each file.
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
	return durable.WriteFile(op, filepath.Join(p.Dir, markName), m.Encode(), durable.Perm)
}
