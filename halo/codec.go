package halo

import (
	"fmt"
	"slices"
	"strings"

	"siafu/graph/fault"
)

// Key says which rows a block holds. A codec that rounds stochastically draws
// from it, so that a run is reproducible on any number of ranks.
type Key struct {
	Seed     uint64
	Epoch    int
	Layer    int
	Backward bool
	Vertices []uint32 // dataset ids of the rows; filled in by the exchange
}

// Codec turns blocks of rows into payloads and back. Its methods may be called
// by several goroutines at once.
type Codec interface {
	ID() byte
	Name() string
	// Lossless tells whether Decode gives back the very bits.
	Lossless() bool
	// Encode appends the payload of x [rows x cols] to dst.
	Encode(dst []byte, x []float32, rows, cols int, k Key) []byte
	// Decode fills dst [rows x cols]. Any payload is safe: the answer is rows
	// or an error.
	Decode(dst []float32, rows, cols int, payload []byte) error
}

// codecs are those that a name can ask for.
var codecs = []Codec{none{}, &shuffled{id: 1, name: "s2", pack: s2Pack{}}, &shuffled{id: 2, name: "zstd", pack: newZstdPack()}}

// CodecByName is the codec of that name; a Config fault lists the names.
func CodecByName(name string) (Codec, error) {
	i := slices.IndexFunc(codecs, func(c Codec) bool { return c.Name() == name })
	if i >= 0 {
		return codecs[i], nil
	}
	return nil, fault.New(fault.Config, "halo", "", "no codec is called %q", name).
		Then("use one of %s", strings.Join(CodecNames(), ", "))
}

// CodecNames lists the codecs.
func CodecNames() []string {
	var names []string
	for _, c := range codecs {
		names = append(names, c.Name())
	}
	return names
}

// none is the identity. An exchange with it sends rows as they are, without
// the frame of a block, and receives into the ghosts themselves.
type none struct{}

func (none) ID() byte       { return 0 }
func (none) Name() string   { return "none" }
func (none) Lossless() bool { return true }

func (none) Encode(dst []byte, x []float32, rows, cols int, _ Key) []byte {
	return append(dst, bytesOf(x[:rows*cols])...)
}

func (none) Decode(dst []float32, rows, cols int, payload []byte) error {
	if len(payload) != 4*rows*cols {
		return fmt.Errorf("%d bytes for %d rows of %d floats", len(payload), rows, cols)
	}
	copy(bytesOf(dst[:rows*cols]), payload)
	return nil
}
