package task

import (
	"errors"

	"siafu/internal/size"
	"siafu/kernels/model"
)

// Form is the encoding of a task and its result.
type Form struct {
	// Halves sends what depends on rows in two halves, so that whoever does the task
	// begins when the first one is there (Dorylus, OSDI'21, §6: Lambda-internal
	// streaming).
	Halves bool
	// Codec encodes values and dense features; nil: they are sent unencoded.
	// Weights and their gradients, labels, sparse features and an ÂX in bfloat16
	// are always sent unencoded.
	Codec Codec
}

// Codec makes bytes of rows of float32, and rows of the bytes. It keeps nothing from
// one call to the next, and is safe for several goroutines.
type Codec interface {
	// Name is what a message says of it.
	Name() string
	// Most bounds the bytes of rows x cols floats.
	Most(rows, cols int) int
	// Encode appends x [len(ids) x cols], rows of vertices with these dataset ids.
	Encode(dst []byte, x []float32, cols int, ids []uint32, k Key) []byte
	// Decode sets x [rows x cols]. After an error any of it may have been written.
	Decode(x []float32, cols int, payload []byte) error
}

// Key is what a codec that rounds at random draws by, beside the ids of rows, so that
// every attempt at a task has the same bytes.
type Key struct {
	Seed  uint64
	Epoch int
	Value model.Ref // of the features, the first layer's Input
}

// key is that of a value of a task.
func (t *Task) key(r model.Ref) Key {
	return Key{Seed: t.Frame.Network.Spec.Seed, Epoch: t.Epoch, Value: r}
}

// features are named as the value that they are.
var features = model.Ref{Layer: 0, Value: model.Input}

// Codecs finds the codec of a name.
type Codecs func(name string) (Codec, error)

// find is the codec of a name that a message has; none where it has none.
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

// line is how many rows of any matrix are whole cache lines.
const line = 16

// first is how many of the rows come first: all, or half of them and what is missing
// of a cache line, so that the rows of both halves lie as in the whole, and share
// kernels.Grids as there.
func (f Form) first(rows int) int {
	if !f.Halves {
		return rows
	}
	return min(size.RoundUp((rows+1)/2, line), rows)
}
