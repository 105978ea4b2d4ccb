package history_test

import (
	"testing"

	"siafu/halo"
	"siafu/halo/history"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// A store restores any checkpoint completely or returns an error.
func FuzzUnpack(f *testing.F) {
	err := inproc.Run(1, func(c world.Comm) error {
		o := history.Options{
			Comm: c, Shapes: []halo.Shape{{Layer: 1, Width: 3}}, Format: history.Int8,
			Plan: &halo.Plan{Parts: 1, Own: 2, OwnIDs: []uint32{7, 3}, SendStart: []int64{0, 0}, RecvStart: []int64{0, 0}},
		}
		s := history.New(o, mapped.NewArena())
		s.Push(1, 4, 1, 0, []float32{1, 2, 3, 4, 5, 6})
		good := s.Pack()
		f.Add(good)
		f.Add(good[:len(good)-3])
		f.Add(append(good[:len(good):len(good)], good...))
		f.Fuzz(func(t *testing.T, b []byte) {
			arena := mapped.NewArena()
			defer arena.Free()
			again := history.New(o, arena)
			if err := again.Unpack(b); err != nil && fault.KindOf(err) != fault.Data {
				t.Error(err)
			}
		})
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
}
