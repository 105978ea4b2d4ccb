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
func (m Marker) Encode() []byte { return Seal(&m, &m.CRC32C) }

// Seal returns v as lines of JSON, with a checksum in its field sum: the CRC-32C, in 8 hex
// digits, of the lines with an empty sum. It panics if v has no JSON.
func Seal(v any, sum *string) []byte {
	lines := func() []byte {
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			panic("inventory: value without JSON")
		}
		return append(text, '\n')
	}
	*sum = ""
	*sum = fmt.Sprintf("%08x", crc32.Checksum(lines(), castagnoli))
	return lines()
}

// maxMarker is the maximum number of bytes read from a possible marker file.
const maxMarker = 1 << 16

// ReadMarker reads the marker of a kind of folder. It returns nil if the file is missing, or if
// siafu did not write it.
func ReadMarker(path, kind string) *Marker {
	text, _ := begin(path, maxMarker) // an unreadable file is no marker
	return decodeMarker(text, kind)
}

func decodeMarker(text []byte, kind string) *Marker {
	m := &Marker{}
	if json.Unmarshal(text, m) != nil || m.Siafu != kind || len(m.ID) != 32 || !bytes.Equal(m.Encode(), text) {
		return nil
	}
	return m
}
