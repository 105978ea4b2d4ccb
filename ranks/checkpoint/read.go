package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"siafu/internal/fault"
	"siafu/internal/safetensors"
)

// Problem is a checkpoint that was skipped, and the reason.
type Problem struct {
	Path string
	Err  error // a fault that names the file
}

// Latest reads the newest valid checkpoint in the folder dir, nil if there is none.
// Problems lists the newer checkpoints that are not valid. The error reports a folder that
// cannot be read.
func Latest(dir string) (*State, []Problem, error) {
	entries, err := list(dir)
	if err != nil {
		return nil, nil, err
	}
	var skipped []Problem
	for _, e := range entries {
		s, err := read(e.path)
		if err == nil && s.Epoch != e.epoch {
			err = damaged(filepath.Join(e.path, manifestFile), "it records epoch %d, but its folder has another epoch", s.Epoch)
		}
		if err == nil {
			return s, skipped, nil
		}
		skipped = append(skipped, Problem{e.path, err})
	}
	return nil, skipped, nil
}

// Open reads the checkpoint at path. path is a checkpoint, which must be valid, or a run
// folder or its folder of checkpoints, whose Latest is read. Faults have kind Missing if
// there is no checkpoint, and Data if none is valid.
func Open(path string) (*State, []Problem, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, nil, fault.System(opResume, path, err)
	case !info.IsDir():
		return nil, nil, fault.New(fault.Usage, opResume, path, "it is a file").
			Then("name a checkpoint folder or a run folder; --init takes the weights of a file")
	case isCheckpoint(path):
		s, err := read(path)
		return s, nil, err
	case holds(path, Dir):
		path = filepath.Join(path, Dir)
	}
	s, skipped, err := Latest(path)
	switch {
	case err != nil || s != nil:
		return s, skipped, err
	case len(skipped) > 0:
		return nil, skipped, skipped[0].Err
	}
	return nil, nil, fault.New(fault.Missing, opResume, path, "it contains no checkpoint").
		Then("name a run that has saved a checkpoint")
}

// isCheckpoint reports whether a folder is a checkpoint, possibly damaged, not a folder of
// checkpoints.
func isCheckpoint(path string) bool {
	return epochOf(filepath.Base(path)) >= 0 || holds(path, manifestFile) || holds(path, stateFile)
}

func holds(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// damaged returns a fault about a file of a checkpoint.
func damaged(path, format string, args ...any) *fault.Error {
	return fault.New(fault.Data, opResume, path, format, args...).
		Then("resume from an older checkpoint")
}

// read reads and verifies one checkpoint.
func read(path string) (*State, error) {
	m, err := readManifest(path)
	if err != nil {
		return nil, err
	}
	text, err := m.bytes(path, stateFile)
	if err != nil {
		return nil, err
	}
	s, err := decodeState(text)
	if err != nil {
		return nil, damaged(filepath.Join(path, stateFile), "%v", err)
	}
	if s.Epoch != m.Epoch || (s.Best != nil) != (m.find(bestFile) != nil) {
		return nil, damaged(filepath.Join(path, stateFile), "it does not match its manifest")
	}
	s.Path = path
	return &s, s.readTensors(m)
}

func readManifest(path string) (manifest, error) {
	name := filepath.Join(path, manifestFile)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return manifest{}, damaged(name, "it is missing: the checkpoint is incomplete")
	}
	if err != nil {
		return manifest{}, fault.System(opResume, name, err)
	}
	m, err := decodeManifest(text)
	if err != nil {
		return m, damaged(name, "%v", err)
	}
	return m, nil
}

// bytes reads a file and compares it with the manifest.
func (m manifest) bytes(path, name string) ([]byte, error) {
	want, name := m.find(name), filepath.Join(path, name)
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damaged(name, "it is missing")
	}
	if err != nil {
		return nil, fault.System(opResume, name, err)
	}
	if info.Size() != want.Bytes {
		return nil, damaged(name, "it has %d bytes, but the manifest lists %d", info.Size(), want.Bytes)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fault.System(opResume, name, err)
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != want.SHA256 {
		return nil, damaged(name, "its SHA-256 begins with %x, but the manifest lists %.8s", sum[:4], want.SHA256)
	}
	return b, nil
}

// readTensors fills in all fields that state.json does not contain.
func (s *State) readTensors(m manifest) error {
	var err error
	if s.Weights, err = s.tensors(m, modelFile); err != nil {
		return err
	}
	slots, err := s.tensors(m, optimizerFile)
	if err != nil {
		return err
	}
	if err := s.takeSlots(slots); err != nil {
		return damaged(filepath.Join(s.Path, optimizerFile), "%v", err)
	}
	if m.find(historyFile) != nil {
		if s.History, err = m.bytes(s.Path, historyFile); err != nil {
			return err
		}
	}
	if m.find(partsFile) != nil {
		b, err := m.bytes(s.Path, partsFile)
		if err != nil {
			return err
		}
		if s.Parts, err = readParts(b); err != nil {
			return damaged(filepath.Join(s.Path, partsFile), "%v", err)
		}
	}
	if s.Best == nil {
		return nil
	}
	if s.Best.Weights, err = s.tensors(m, bestFile); err == nil && !sameShapes(s.Best.Weights, s.Weights) {
		err = damaged(filepath.Join(s.Path, bestFile), "its weights differ from those of %s", modelFile)
	}
	return err
}

func (s *State) tensors(m manifest, name string) ([]safetensors.Tensor, error) {
	b, err := m.bytes(s.Path, name)
	if err != nil {
		return nil, err
	}
	list, _, err := safetensors.Decode(b)
	if err != nil {
		return nil, damaged(filepath.Join(s.Path, name), "%v", err)
	}
	return list, nil
}
