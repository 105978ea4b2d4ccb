package codec_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"siafu/halo/codec"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels/model"
	"siafu/kernels/task"
)

// Values of tasks are restored within the codec's bound, identically in every attempt. Their
// size is as announced, and each value has its own random numbers.
func TestValuesOfTasks(t *testing.T) {
	const cols = 41
	x := kinds(cols)
	rows := len(x) / cols
	ids := make([]uint32, rows)
	for i := range ids {
		ids[i] = uint32(7 * i)
	}
	for _, name := range names {
		c, err := codec.TaskCodec(name)
		if err != nil || c.Name() != name {
			t.Fatalf("%s: %v", name, err)
		}
		k := task.Key{Seed: 1, Epoch: 2, Value: model.Ref{Layer: 1, Value: model.Gathered}}
		payload := c.Encode([]byte("before"), x, cols, ids, k)[len("before"):]
		if !bytes.Equal(payload, c.Encode(nil, x, cols, ids, k)) || len(payload) > c.Most(rows, cols) {
			t.Errorf("%s: %d bytes of %d, or others in another attempt", name, len(payload), c.Most(rows, cols))
		}
		got := make([]float32, len(x))
		if err := c.Decode(got, cols, payload); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, v := range got {
			row := x[i/cols*cols:][:cols]
			if d := math.Abs(float64(v) - float64(x[i])); finite(row) && !(d <= bound(named(t, name), row, x[i])) {
				t.Fatalf("%s: %v becomes %v, bound %v", name, x[i], v, bound(named(t, name), row, x[i]))
			}
		}
		if lossless := named(t, name).Lossless(); lossless && !slices.Equal(mapped.Bytes(got), mapped.Bytes(x)) {
			t.Errorf("%s: other bits", name)
		}
		k.Value.Back = true
		if drawn := name == "int4"; drawn && bytes.Equal(payload, c.Encode(nil, x, cols, ids, k)) {
			t.Errorf("%s: two values have the same draws", name)
		}
		if err := c.Decode(got, cols, payload[:len(payload)-1]); err == nil {
			t.Errorf("%s: a payload that is cut off is decoded", name)
		}
		if err := c.Decode(nil, cols, c.Encode(nil, nil, cols, nil, k)); err != nil {
			t.Errorf("%s: no row: %v", name, err)
		}
	}
}

// Tasks refuse a codec that needs state from earlier messages.
func TestTasksKeepNothing(t *testing.T) {
	for _, name := range []string{"int8+ef", "bf16+s2+ef", "auto", "float32", ""} {
		if _, err := codec.TaskCodec(name); fault.KindOf(err) != fault.Usage {
			t.Errorf("%q: %v", name, err)
		}
	}
}
