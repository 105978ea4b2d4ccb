package task

import (
	"errors"

	"siafu/internal/size"
	"siafu/kernels/model"
)

// Form is the encoding of a task and its result.
type Form struct {
	// Halves sends the data of rows in two halves, so that the receiver starts when the first
	// one has arrived (Dorylus, OSDI'21, §6: Lambda-internal streaming).
	Halves bool
	// Codec encodes values and dense features; nil: they are sent unencoded.
	// Weights and their gradients, labels, sparse features and an ÂX in bfloat16
	// are always sent unencoded.
	Codec Codec
}

// Codec encodes rows of float32 as bytes, and decodes them. It is stateless, and safe for
// concurrent use.
type Codec interface {
	// Name returns the codec's name in messages.
	Name() string
	// Most bounds the bytes of rows x cols floats.
	Most(rows, cols int) int
	// Encode appends x [len(ids) x cols], rows of vertices with these dataset ids.
	Encode(dst []byte, x []float32, cols int, ids []uint32, k Key) []byte
	// Decode sets x [rows x cols]. After an error any of it may have been written.
	Decode(x []float32, cols int, payload []byte) error
}

// Key determines, with the ids of rows, the random numbers of a codec, so that every attempt
// at a task has the same bytes.
type Key struct {
	Seed  uint64
	Epoch int
	Value model.Ref // of the features, the first layer's Input
}

// key returns the key of a value of a task.
func (t *Task) key(r model.Ref) Key {
	return Key{Seed: t.Frame.Network.Spec.Seed, Epoch: t.Epoch, Value: r}
}

// features is the name of the features as a value.
var features = model.Ref{Layer: 0, Value: model.Input}

// Codecs returns the codec with a name.
type Codecs func(name string) (Codec, error)

// find returns the codec with the name in a message; none for an empty name.
func (c Codecs) find(name string) (Codec, error) {
	switch {
	case name == "":
		return nil, nil
	case c == nil:
		return nil, errors.New("the values are encoded, but no codec is given")
	}
	return c(name)
}

// mostName bounds the name of a codec.
const mostName = 64

// line is a number of rows whose size is a multiple of a cache line for any matrix.
const line = 16

// first returns the number of rows in the first half: all, or half of them rounded up to line,
// so that rows are aligned, and share kernels.Grids, as in the whole.
func (f Form) first(rows int) int {
	if !f.Halves {
		return rows
	}
	return min(size.RoundUp((rows+1)/2, line), rows)
}
