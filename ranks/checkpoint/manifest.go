package checkpoint

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"siafu/internal/inventory"
)

// Format is the version of the layout that Save writes, and the newest that this package
// reads. Version 2 added the identity of the dataset.
const Format = 2

// Files of a checkpoint.
const (
	modelFile     = "model.safetensors"
	optimizerFile = "optimizer.safetensors"
	bestFile      = "best.safetensors"
	historyFile   = "history.bin"
	partsFile     = "parts.bin" // State.Parts, as wire.WriteArrays writes them
	stateFile     = "state.json"
	manifestFile  = "MANIFEST.json"
)

// manifest is MANIFEST.json. Its bytes are exactly those of encode, so that any change is
// detected.
type manifest struct {
	Format int    `json:"format"`
	Epoch  int    `json:"epoch"`
	Files  []file `json:"files"` // by name, ascending
	// CRC32C is the checksum of the other fields, in 8 hex digits.
	CRC32C string `json:"crc32c"`
}

// file is one file of a checkpoint.
type file struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // in 64 hex digits
}

func (m manifest) encode() []byte { return inventory.Seal(&m, &m.CRC32C) }

// decodeManifest decodes and verifies a manifest.
func decodeManifest(b []byte) (manifest, error) {
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(b, &version); err != nil {
		return manifest{}, err
	}
	if version.Format > Format {
		return manifest{}, fmt.Errorf("it has format %d, but this siafu reads formats up to %d; use a newer siafu", version.Format, Format)
	}
	var m manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return manifest{}, err
	}
	if !bytes.Equal(m.encode(), b) {
		return manifest{}, fmt.Errorf("its checksum does not match its content")
	}
	return m, m.complete()
}

// complete returns an error unless the manifest lists exactly the files of a checkpoint.
func (m manifest) complete() error {
	var names []string
	for _, f := range m.Files {
		names = append(names, f.Name)
		if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != 32 || f.Bytes < 0 {
			return fmt.Errorf("%s of %d bytes has the checksum %q", f.Name, f.Bytes, f.SHA256)
		}
	}
	rest := slices.DeleteFunc(slices.Clone(names),
		func(n string) bool { return slices.Contains([]string{bestFile, historyFile, partsFile}, n) })
	if !slices.Equal(rest, []string{modelFile, optimizerFile, stateFile}) ||
		len(slices.Compact(slices.Clone(names))) < len(names) || m.Format < 1 || m.Epoch < 0 {
		return fmt.Errorf("it lists %s of format %d, epoch %d", strings.Join(names, ", "), m.Format, m.Epoch)
	}
	return nil
}

// find returns the entry of a file, nil if the manifest does not list it.
func (m manifest) find(name string) *file {
	for i := range m.Files {
		if m.Files[i].Name == name {
			return &m.Files[i]
		}
	}
	return nil
}
