package inventory

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
)

// Marker is the file by which siafu recognises its own folders. Its bytes are exactly those of
// Encode.
type Marker struct {
	Siafu  string            `json:"siafu"`            // the kind of folder
	ID     string            `json:"id"`               // 32 random hex digits
	Launch string            `json:"launch,omitempty"` // of the launch that made it or last went on in it
	Of     map[string]string `json:"of,omitempty"`     // the sources of the folder
	CRC32C string            `json:"crc32c"`           // of the other fields, in 8 hex digits
}

// NewMarker returns a marker with a new id.
func NewMarker(kind string) Marker { return Marker{Siafu: kind, ID: NewID()} }

// NewID returns 32 random hex digits.
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode returns the bytes of the marker file.
func (m Marker) Encode() []byte {
	m.CRC32C = ""
	m.CRC32C = fmt.Sprintf("%08x", crc32.Checksum(m.text(), castagnoli))
	return m.text()
}

func (m Marker) text() []byte {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		panic("inventory: marker without JSON")
	}
	return append(text, '\n')
}

// maxMarker is the maximum number of bytes read from a possible marker file.
const maxMarker = 1 << 16

// ReadMarker reads the marker of a kind of folder. It is nil where the file is
// missing or is not one that siafu has written.
func ReadMarker(path, kind string) *Marker {
	text, err := begin(path, maxMarker)
	if err != nil {
		return nil
	}
	return decodeMarker(text, kind)
}

func decodeMarker(text []byte, kind string) *Marker {
	m := &Marker{}
	if json.Unmarshal(text, m) != nil || m.Siafu != kind || len(m.ID) != 32 || !bytes.Equal(m.Encode(), text) {
		return nil
	}
	return m
}
