package codec

import (
	"siafu/internal/fault"
	"siafu/kernels/task"
)

// TaskCodec returns the codec with a name (ByName) for tensor tasks, which send rows between
// processes once. It refuses error feedback, which needs state from earlier messages. It
// implements task.Codecs. Its faults have kind Usage.
func TaskCodec(name string) (task.Codec, error) {
	c, err := ByName(name)
	if err != nil {
		return nil, err
	}
	if _, keeps := c.(Corrected); keeps {
		return nil, fault.New(fault.Usage, "codec", "", "%q needs error feedback, but a tensor task keeps no state", name).
			Then("leave +ef out")
	}
	return taskCodec{c}, nil
}

// TaskNames lists the names that TaskCodec accepts.
func TaskNames() string { return withoutFeedback() }

// taskCodec encodes values of a task. It implements task.Codec.
type taskCodec struct{ Codec }

func (c taskCodec) Most(rows, cols int) int {
	n, _ := c.Size(rows, cols)
	return max(n, maxPayload(rows, cols))
}

// Encode implements task.Codec. Each value has its own random numbers.
func (c taskCodec) Encode(dst []byte, x []float32, cols int, ids []uint32, k task.Key) []byte {
	v := k.Value
	layer := taskLayers + v.Layer<<valueBits | int(v.Value)
	return c.Codec.Encode(dst, Rows{X: x, Cols: cols, Len: len(ids), IDs: ids},
		Key{Seed: k.Seed, Epoch: k.Epoch, Layer: layer, Backward: v.Back})
}

func (c taskCodec) Decode(x []float32, cols int, payload []byte) error {
	rows := 0
	if cols > 0 {
		rows = len(x) / cols
	}
	return c.Codec.Decode(Rows{X: x, Cols: cols, Len: rows}, payload, false)
}

// Values of tasks have random numbers of their own, different from each other's and from those
// of ghosts, whose layers lack this bit.
const (
	taskLayers = 1 << 22
	valueBits  = 5
)
