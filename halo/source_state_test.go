package halo_test

import (
	"reflect"
	"testing"

	"siafu/halo"
	"siafu/internal/testkit/decodertest"
)

var exampleState = halo.SourceState{
	CodecErrors: []halo.CodecError{{Layer: 1, Cols: 2, Backward: true, Rows: []float32{0.5, -1}}},
	StoredRows: []halo.StoredRows{{
		Layer: 2, Backward: true, Rows: []float32{3, 4}, Epochs: []int32{7, 0}, Sent: []float32{5}, SentAt: []int32{6},
	}},
	Pending: []halo.PendingRows{{Layer: 1, Part: 2, Epoch: 9, Cols: 3, Backward: true,
		Blocks: []halo.RankBlock{{From: -1, Data: []byte{1, 2, 3}}, {From: 4, Data: []byte{}}}}},
}

// Invalid state is refused, and valid state is restored unchanged.
func FuzzLuggage(f *testing.F) {
	whole := exampleState.Encode(nil)
	if got, err := halo.DecodeSourceState(whole); err != nil || !reflect.DeepEqual(got, exampleState) {
		f.Fatalf("%+v comes out as %+v, %v", exampleState, got, err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(append(whole, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		var l halo.SourceState
		var err error
		decodertest.Heap(t, int64(len(b)), func() { l, err = halo.DecodeSourceState(b) })
		if err != nil {
			return
		}
		if again, err := halo.DecodeSourceState(l.Encode(nil)); err != nil || !reflect.DeepEqual(again, l) {
			t.Errorf("%+v comes out as %+v, %v", l, again, err)
		}
	})
}
