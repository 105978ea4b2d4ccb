package codec

import (
	"siafu/graph/fault"
	"siafu/kernels/task"
)

// OfTasks is the codec of a name (ByName) as tensor tasks use it, which carry rows
// from one process to another once: error feedback, which has to know what it lost
// before, is refused. It is a task.Codecs. Its faults have kind Usage.
func OfTasks(name string) (task.Codec, error) {
	c, err := ByName(name)
	if err != nil {
		return nil, err
	}
	if _, keeps := c.(Corrected); keeps {
		return nil, fault.New(fault.Usage, "codec", "", "%q keeps what was lost, and whoever does a task keeps nothing", name).
			Then("leave +ef out")
	}
	return ofTask{c}, nil
}

// ofTask encodes values of a task.
type ofTask struct{ Codec }

// Most implements task.Codec.
func (c ofTask) Most(rows, cols int) int {
	n, _ := c.Size(rows, cols)
	return max(n, maxPayload(rows, cols))
}

// Encode implements task.Codec. Each value has draws of its own.
func (c ofTask) Encode(dst []byte, x []float32, cols int, ids []uint32, k task.Key) []byte {
	v := k.Value
	layer := taskLayers + v.Layer<<valueBits | int(v.Value)
	return c.Codec.Encode(dst, Rows{X: x, Cols: cols, Len: len(ids), IDs: ids}, Key{Seed: k.Seed, Epoch: k.Epoch, Layer: layer, Backward: v.Back})
}

// Decode implements task.Codec.
func (c ofTask) Decode(x []float32, cols int, payload []byte) error {
	rows := 0
	if cols > 0 {
		rows = len(x) / cols
	}
	return c.Codec.Decode(Rows{X: x, Cols: cols, Len: rows}, payload, false)
}

// The draws of a task's values are apart from those of ghosts, which layers without
// this bit have, and from each other.
const (
	taskLayers = 1 << 22
	valueBits  = 5
)
