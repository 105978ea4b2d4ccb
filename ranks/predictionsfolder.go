package ranks

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"siafu/graph/durable"
	"siafu/graph/fault"
	"siafu/graph/inventory"
)

// predictionsMark is the file by which siafu knows a predictions folder again.
const predictionsMark = "predictions.json"

// predictionsKind is what the marker says of a predictions folder; the keys of
// what it is of are the files that siafu has written there.
const predictionsKind = "predictions folder"

// predictionFiles are all that siafu writes into a predictions folder.
var predictionFiles = inventory.Files(predictionsMark, classFile, probabilityFile, embeddingFile, idFile, csvFile)

// predicted are the predictions folders in a run folder.
func predicted() inventory.Folder {
	return inventory.Folder{{Name: inventory.Pattern(`.*`), In: predictionFiles, Proof: func(dir string) bool { return predictionsMarker(dir) != nil }}}
}

func predictionsMarker(dir string) *inventory.Marker {
	return inventory.ReadMarker(filepath.Join(dir, predictionsMark), predictionsKind)
}

// files are the names that a prediction writes.
func (c *PredictConfig) files() []string {
	names := []string{classFile, probabilityFile, idFile}
	if c.Embeddings {
		names = append(names, embeddingFile)
	}
	if c.CSV {
		names = append(names, csvFile)
	}
	return names
}

// vetOut fails where the files could not be written, or where one of their
// names stands for something that siafu has not written.
func (c *PredictConfig) vetOut() error {
	m := predictionsMarker(c.Out)
	if m == nil {
		return c.vetUnmarked()
	}
	for _, name := range c.files() {
		if _, own := m.Of[name]; own {
			continue
		}
		if err := absentFile(filepath.Join(c.Out, name)); err != nil {
			return err
		}
	}
	return writable(c.Out)
}

// vetUnmarked is vetOut where siafu has written nothing yet.
func (c *PredictConfig) vetUnmarked() error {
	for _, name := range append(c.files(), predictionsMark) {
		if err := absentFile(filepath.Join(c.Out, name)); err != nil {
			return err
		}
	}
	return writable(c.Out)
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
func (p *predictions) mark(files ...string) error {
	m := predictionsMarker(p.dir)
	if m == nil {
		p.first = true
		m = new(inventory.Marker)
		*m = inventory.NewMarker(predictionsKind)
	}
	if m.Of == nil {
		m.Of = map[string]string{}
	}
	for _, name := range files {
		p.first = false
		m.Of[name] = ""
	}
	return durable.Write(opPredict, filepath.Join(p.dir, predictionsMark), func(w io.Writer) error { _, err := w.Write(m.Encode()); return err })
}

// unmark takes the marker away where nothing has come of it.
func (p *predictions) unmark() {
	if p.first {
		os.Remove(filepath.Join(p.dir, predictionsMark))
	}
}
