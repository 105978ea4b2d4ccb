package shard_test

import (
	"os"
	"slices"
	"testing"

	"siafu/graph/shard"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/testkit/decodertest"
)

// FuzzOpen checks that Open returns a shard or a Data fault for a file with arbitrary bytes.
func FuzzOpen(f *testing.F) {
	dir := dataset(f, 12, true, true, chords(12), 2)
	path := shard.Path(dir, 2, 0)
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	// Bytes are patched into a whole file, which is too large to fuzz itself.
	f.Add(uint32(0), []byte{}, uint32(1<<31))
	f.Add(uint32(0), []byte("SIAFUARR"), uint32(8))
	f.Add(uint32(48), []byte{0, 16, 0, 0, 0, 0, 0, 0}, uint32(4096))
	f.Add(uint32(4096), []byte{1, 2, 3}, uint32(5000))
	f.Fuzz(func(t *testing.T, at uint32, patch []byte, length uint32) {
		b := slices.Clone(whole)
		copy(b[int(at)%len(b):], patch)
		if err := os.WriteFile(path, b[:min(int(length), len(b))], 0o644); err != nil {
			t.Fatal(err)
		}
		openAndUse(t, dir, path)
	})
}

// FuzzForged changes one number of a file with valid checksums. Open must reject the file, or return
// a shard in which no index is out of range.
func FuzzForged(f *testing.F) {
	dir := dataset(f, 12, true, true, chords(12), 2)
	path := shard.Path(dir, 2, 0)
	good := heapCopy(open(f, dir, 2, 0))
	for array := range uint8(15) {
		f.Add(array, uint16(1), int64(-1))
		f.Add(array, uint16(3), int64(1<<40))
		f.Add(array, uint16(0), int64(7))
	}
	f.Fuzz(func(t *testing.T, array uint8, at uint16, value int64) {
		s := heapCopy(good)
		forge(s, array, int(at), value)
		if err := shard.Write(path, s); err != nil {
			t.Fatal(err)
		}
		openAndUse(t, dir, path)
	})
}

// forge sets one number of one array of s, or shortens the array to this position.
func forge(s *shard.Shard, array uint8, at int, value int64) {
	wide := []*[]int64{&s.GhostStart, &s.SendStart, &s.In.Offsets, &s.InOwnEnd, &s.Features.Sparse.Offsets}
	narrow := []*[]uint32{&s.Own, &s.Ghosts, &s.SendRows, &s.In.Cols, &s.InDegree, &s.OutDegree, &s.Features.Sparse.Cols}
	i := int(array) % (len(wide) + len(narrow) + 2)
	switch j := i - len(wide); {
	case j < 0:
		set(wide[i], at, value)
	case j < len(narrow):
		set(narrow[j], at, uint32(value))
	case j == len(narrow):
		set(&s.Labels, at, int32(value))
	default:
		set(&s.Split, at, uint8(value))
	}
}

// set sets an element of an array. If the index is past the end, it shortens the array by one.
func set[T any](v *[]T, at int, value T) {
	if len(*v) == 0 {
		return
	}
	if at %= len(*v) + 1; at == len(*v) {
		*v = (*v)[:at-1]
		return
	}
	(*v)[at] = value
}

// openAndUse opens the shard of rank 0 of 2 ranks. If this succeeds, it uses every index.
func openAndUse(t *testing.T, dir, path string) {
	var s *shard.Shard
	var err error
	decodertest.Heap(t, 0, func() { s, err = shard.Open(dir, 2, 0) })
	if err != nil {
		expect(t, err, fault.Data, path)
		return
	}
	defer s.Close()
	a := mapped.NewArena()
	defer a.Free()
	s.Transpose(a, s.GhostEdges())
	for q := range s.Parts {
		for _, row := range s.SendRows[s.SendStart[q]:s.SendStart[q+1]] {
			_ = s.Own[row]
		}
		_ = s.Ghosts[s.GhostStart[q]:s.GhostStart[q+1]]
	}
	for v := range s.Own {
		for _, c := range s.Features.Sparse.Cols[s.Features.Sparse.Offsets[v]:s.Features.Sparse.Offsets[v+1]] {
			if int(c) >= s.FeatureDim {
				t.Fatalf("feature column %d", c)
			}
		}
	}
}
