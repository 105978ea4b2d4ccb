package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"siafu/internal/fault"
	"siafu/internal/safetensors"
	"siafu/internal/wire"
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
	s, err := readFiles(path, func(name string) ([]byte, error) {
		if m.find(name) == nil {
			return nil, nil
		}
		return m.bytes(path, name)
	})
	if err == nil && s.Epoch != m.Epoch {
		err = damaged(filepath.Join(path, stateFile), "it does not match its manifest")
	}
	return s, err
}

// readFiles reads the state whose files content returns, nil for a file that the state does not have. path
// is the place of the files.
func readFiles(path string, content func(name string) ([]byte, error)) (*State, error) {
	s := new(State)
	for _, name := range []string{stateFile, modelFile, optimizerFile, historyFile, partsFile, bestFile} {
		b, err := content(name)
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		if err := s.read(name, b); err != nil {
			return nil, damaged(filepath.Join(path, name), "%v", err)
		}
	}
	if s.Best != nil && s.Best.Weights == nil {
		return nil, damaged(filepath.Join(path, stateFile), "it does not match its manifest: it has a best evaluation without %s", bestFile)
	}
	s.Path = path
	return s, nil
}

// read sets the fields that a file has. state.json is read first, then the weights.
func (s *State) read(name string, b []byte) (err error) {
	var list []safetensors.Tensor
	if strings.HasSuffix(name, ".safetensors") {
		list, _, err = safetensors.Decode(b)
	}
	switch {
	case err != nil:
	case name == stateFile:
		*s, err = DecodeHead(b)
	case name == modelFile:
		s.Weights = list
	case name == optimizerFile:
		err = s.takeSlots(list)
	case name == historyFile:
		s.History = b
	case name == partsFile:
		s.Parts, err = wire.Arrays(b)
	case s.Best == nil:
		err = fmt.Errorf("%s does not have its evaluation", stateFile)
	case !sameShapes(list, s.Weights):
		err = fmt.Errorf("its weights differ from those of %s", modelFile)
	default:
		s.Best.Weights = list
	}
	return err
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
