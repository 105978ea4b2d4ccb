package elementary

import "testing"

// The first numbers of java.util.SplittableRandom with seed 0.
func TestMix(t *testing.T) {
	golden := uint64(Golden)
	for i, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		if got := Mix(uint64(i+1) * golden); got != want {
			t.Errorf("number %d is %#x, want %#x", i, got, want)
		}
	}
}
