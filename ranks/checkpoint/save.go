package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"siafu/graph/fault"
	"siafu/ranks/safetensors"
)

const opSave = "save checkpoint"

// Written is what Save did.
type Written struct {
	Path    string        // of the checkpoint
	Bytes   int64         // of all its files
	Took    time.Duration // all of it
	Syncing time.Duration // the part in which the disk was waited for, after the last byte was handed over
}

// Save writes a state as the checkpoint of its epoch in the folder dir, which
// it makes where it is missing; an older checkpoint of that epoch is replaced.
// It returns when the checkpoint is durable. Faults have kind IO; then the
// checkpoints that are there stay as they are and nothing else is left. It
// panics where the parts of the state do not belong together.
func Save(dir string, s State) (Written, error) {
	return SaveInSteps(dir, s, func(string) {})
}

// SaveInSteps is Save that tells what it does next: the name of the file that
// it writes, and at last "rename".
func SaveInSteps(dir string, s State, at func(step string)) (Written, error) {
	s.check()
	start := time.Now()
	w := writer{state: s, at: at, final: filepath.Join(dir, folderName(s.Epoch))}
	if err := makeDurable(dir); err != nil {
		return Written{}, fault.System(opSave, dir, err)
	}
	me := self()
	w.tmp = filepath.Join(dir, hiddenName(s.Epoch, "new", me))
	defer os.RemoveAll(w.tmp)
	if err := w.all(); err != nil {
		return Written{}, err
	}
	at("rename")
	if err := replace(w.tmp, w.final, filepath.Join(dir, hiddenName(s.Epoch, "old", me))); err != nil {
		return Written{}, fault.System(opSave, w.final, unnamed(err))
	}
	now := time.Now()
	return Written{Path: w.final, Bytes: w.bytes, Took: now.Sub(start), Syncing: now.Sub(w.handedOver)}, nil
}

// makeDurable makes a folder and syncs its name.
func makeDurable(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(dir))
}

// writer fills the hidden folder of a checkpoint.
type writer struct {
	state      State
	at         func(step string)
	tmp, final string
	open       []*output // not synced yet
	list       manifest
	bytes      int64
	handedOver time.Time
}

// output is one file and what the manifest will say of it.
type output struct {
	*os.File
	file file
	sum  hash.Hash
}

// all writes, and then syncs, every file and the folder. The manifest comes
// when the others are durable.
func (w *writer) all() error {
	defer w.close()
	_ = os.RemoveAll(w.tmp) // of a Save that could not even tidy up
	if err := os.Mkdir(w.tmp, 0o755); err != nil {
		return w.fault("", err)
	}
	if err := w.contents(); err != nil {
		return err
	}
	w.handedOver = time.Now()
	if err := w.sync(); err != nil {
		return err
	}
	w.list.Format, w.list.Epoch = Format, w.state.Epoch
	slices.SortFunc(w.list.Files, func(a, b file) int { return cmp.Compare(a.Name, b.Name) })
	if err := w.put(manifestFile, w.list.encode()); err != nil {
		return err
	}
	if err := w.sync(); err != nil {
		return err
	}
	return w.fault("", syncFolder(w.tmp))
}

// contents writes every file but the manifest.
func (w *writer) contents() error {
	s := &w.state
	if err := w.tensors(modelFile, s.Weights, s.metadata(s.Epoch)); err != nil {
		return err
	}
	if err := w.tensors(optimizerFile, s.flatSlots(), s.metadata(s.Epoch)); err != nil {
		return err
	}
	if s.Best != nil {
		if err := w.tensors(bestFile, s.Best.Weights, s.metadata(s.Best.Line.Epoch)); err != nil {
			return err
		}
	}
	text, err := s.encode()
	if err != nil {
		return fault.New(fault.Runtime, opSave, filepath.Join(w.final, stateFile), "%v", err).
			Then("lower --lr: the loss is no longer a number")
	}
	return w.put(stateFile, text)
}

// metadata is that of a file of weights, which epoch's they are included.
func (s *State) metadata(epoch int) map[string]string {
	m := maps.Clone(s.Metadata)
	if m == nil {
		m = map[string]string{}
	}
	m["epoch"] = strconv.Itoa(epoch)
	return m
}

func (w *writer) tensors(name string, list []safetensors.Tensor, md map[string]string) error {
	return w.fill(name, func(to io.Writer) error { return safetensors.Stream(to, list, md) })
}

func (w *writer) put(name string, b []byte) error {
	return w.fill(name, func(to io.Writer) error { _, err := to.Write(b); return err })
}

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

// piece is written and summed at a time, so that it is still in the cache.
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
		if err := f.Close(); err != nil && first == nil {
			first = w.fault(f.file.Name, err)
		}
	}
	w.open = nil
	return first
}

// fault is err about a file under its final name, nil for none.
func (w *writer) fault(name string, err error) error {
	if err == nil {
		return nil
	}
	f := fault.System(opSave, filepath.Join(w.final, name), unnamed(err))
	f.Kind = fault.IO // what is missing here was removed under our hands
	return f
}

// unnamed drops the hidden name from an error: the user knows the other.
func unnamed(err error) error {
	var pe *os.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	}
	return err
}

// replace gives the hidden folder tmp its final name, durably. Where final
// exists the two change places in one step; file systems that cannot do that
// (NFS) have it step aside first.
func replace(tmp, final, aside string) error {
	err := unix.Renameat2(unix.AT_FDCWD, tmp, unix.AT_FDCWD, final, unix.RENAME_EXCHANGE)
	if err != nil {
		if err = os.Rename(final, aside); err == nil || errors.Is(err, os.ErrNotExist) {
			if err = os.Rename(tmp, final); err != nil {
				_ = os.Rename(aside, final) // nothing more can be done than to put it back
			}
		}
	}
	if err != nil {
		return err
	}
	_ = os.RemoveAll(aside) // Prune tries again
	return syncFolder(filepath.Dir(final))
}
