package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/safetensors"
	"siafu/internal/scratch"
	"siafu/internal/wire"
)

const opSave = "save checkpoint"

// Written is the result of Save.
type Written struct {
	Path    string        // of the checkpoint
	Bytes   int64         // of all its files
	Took    time.Duration // including Syncing
	Syncing time.Duration // from the last write to the end of the syncs
}

// Save writes a state as the checkpoint of its epoch in the folder dir, which it creates if
// necessary. It replaces an older checkpoint of the same epoch. Anything else of that name
// is a fault of kind Usage. Save returns when the checkpoint is durable. Other faults have
// kind IO; existing checkpoints then stay unchanged and no other files remain. It panics if
// the parts of the state do not match. Unless at is nil, Save calls it before each step
// with the name of the file that it writes next, and last with "rename".
func Save(dir string, s State, at func(step string)) (Written, error) {
	s.check()
	if at == nil {
		at = func(string) {}
	}
	start := time.Now()
	w := writer{state: s, at: at, final: filepath.Join(dir, folderName(s.Epoch))}
	if err := removable(opSave, w.final); err != nil {
		return Written{}, err
	}
	folder, err := durable.NewFolder(opSave, w.final)
	if err != nil {
		return Written{}, err
	}
	defer folder.Close()
	w.tmp = folder.Path
	if err := w.all(); err != nil {
		return Written{}, err
	}
	at("rename")
	if err := folder.Commit(); err != nil {
		return Written{}, err
	}
	now := time.Now()
	return Written{Path: w.final, Bytes: w.bytes, Took: now.Sub(start), Syncing: now.Sub(w.written)}, nil
}

// writer fills the hidden folder of a checkpoint.
type writer struct {
	state      State
	at         func(step string)
	tmp, final string
	open       []*output // not synced yet
	list       manifest
	bytes      int64
	written    time.Time // when all files except the manifest were written
}

// output is an open file and its entry in the manifest.
type output struct {
	*os.File
	file file
	sum  hash.Hash
}

// all writes and syncs the files, and then the manifest.
func (w *writer) all() error {
	defer w.close()
	if err := w.contents(); err != nil {
		return err
	}
	w.written = time.Now()
	if err := w.sync(); err != nil {
		return err
	}
	w.list.Format, w.list.Epoch = Format, w.state.Epoch
	slices.SortFunc(w.list.Files, func(a, b file) int { return cmp.Compare(a.Name, b.Name) })
	if err := w.put(manifestFile, w.list.encode()); err != nil {
		return err
	}
	return w.sync()
}

// contents writes every file but the manifest.
func (w *writer) contents() error {
	text, err := w.state.EncodeHead()
	if err != nil {
		return fault.New(fault.Runtime, opSave, filepath.Join(w.final, stateFile), "%v", err).
			Then("lower --lr: the loss is not a finite number")
	}
	return w.state.each(text, w.fill)
}

// each calls put for each file of the state but the manifest; text is the content of state.json.
func (s *State) each(text []byte, put func(name string, write func(io.Writer) error) error) error {
	type output struct {
		name  string
		write func(io.Writer) error
	}
	arrays := func(list []safetensors.Tensor, epoch int) func(io.Writer) error {
		return func(to io.Writer) error { return safetensors.Stream(to, list, s.metadata(epoch)) }
	}
	list := []output{{modelFile, arrays(s.Weights, s.Epoch)}, {optimizerFile, arrays(s.flatSlots(), s.Epoch)}}
	if s.Best != nil {
		list = append(list, output{bestFile, arrays(s.Best.Weights, s.Best.Line.Epoch)})
	}
	if s.History != nil {
		list = append(list, output{historyFile, content(s.History).writeTo})
	}
	if s.Parts != nil {
		list = append(list, output{partsFile, func(to io.Writer) error { return wire.WriteArrays(to, s.Parts) }})
	}
	for _, f := range append(list, output{stateFile, content(text).writeTo}) {
		if err := put(f.name, f.write); err != nil {
			return err
		}
	}
	return nil
}

// content is the content of a file.
type content []byte

func (c content) writeTo(to io.Writer) error {
	_, err := to.Write(c)
	return err
}

// metadata returns the metadata of a file with weights of an epoch.
func (s *State) metadata(epoch int) map[string]string {
	m := map[string]string{}
	maps.Copy(m, s.Metadata)
	m["epoch"] = strconv.Itoa(epoch)
	return m
}

func (w *writer) put(name string, b []byte) error { return w.fill(name, content(b).writeTo) }

// fill writes one file, which sync will make durable.
func (w *writer) fill(name string, write func(io.Writer) error) error {
	w.at(name)
	f, err := os.OpenFile(filepath.Join(w.tmp, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return w.fault(name, err)
	}
	out := &output{File: f, file: file{Name: name}, sum: sha256.New()}
	w.open = append(w.open, out)
	if err := write(out); err != nil {
		return w.fault(name, err)
	}
	out.file.SHA256 = hex.EncodeToString(out.sum.Sum(nil))
	w.list.Files = append(w.list.Files, out.file)
	w.bytes += out.file.Bytes
	return nil
}

// piece is the number of bytes that are hashed and then written, while the CPU caches have them.
const piece = 1 << 20

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	done := 0
	for part := range slices.Chunk(b, piece) {
		o.sum.Write(part)
		n, err := o.File.Write(part)
		done += n
		if err != nil {
			return done, err
		}
	}
	o.file.Bytes += int64(done)
	return done, nil
}

// sync makes the open files durable.
func (w *writer) sync() error {
	for _, f := range w.open {
		if err := f.Sync(); err != nil {
			return w.fault(f.file.Name, err)
		}
	}
	return w.close()
}

func (w *writer) close() error {
	var first error
	for _, f := range w.open {
		first = cmp.Or(first, w.fault(f.file.Name, f.Close()))
	}
	w.open = nil
	return first
}

// fault returns a fault about a file under its final name, nil if err is nil.
func (w *writer) fault(name string, err error) error {
	if err == nil {
		return nil
	}
	path := filepath.Join(w.final, name)
	f := fault.System(opSave, path, scratch.Named(path, err))
	f.Kind = fault.IO // a missing file was removed while it was written
	return f
}
