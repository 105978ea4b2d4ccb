package device

import (
	"slices"
	"testing"
)

// TestArgs lays parameters out as the PTX ISA does: each at a multiple of its
// size.
func TestArgs(t *testing.T) {
	var a Args
	a.Ptr(0x1122334455667788).Int32(-1).Float64(1).Float32(1).Struct([]byte{9}, 1).Uint32(7)
	offsets := []int{0, 8, 16, 24, 28, 32}
	if !slices.Equal(a.Offsets(), offsets) {
		t.Errorf("offsets %v, want %v", a.Offsets(), offsets)
	}
	want := []byte{
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
		0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0xf0, 0x3f,
		0, 0, 0x80, 0x3f,
		9, 0, 0, 0,
		7, 0, 0, 0,
	}
	if !slices.Equal(a.Bytes(), want) {
		t.Errorf("bytes %x, want %x", a.Bytes(), want)
	}
	if got := testing.AllocsPerRun(100, func() { a.Reset().Ptr(1).Int32(2).Float64(3) }); got != 0 {
		t.Errorf("%v allocations a launch, want none", got)
	}
}
