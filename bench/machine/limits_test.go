package machine

import (
	"math"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/cpu"
)

// sets returns the sets of instructions that this processor has.
func sets() []string {
	list := []string{"go"}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		list = append(list, "avx2")
	}
	if cpu.X86.HasAVX512F {
		list = append(list, "avx512")
	}
	return list
}

// Every loop of the best set runs with rows of one vector, of a part of one and of many, at both ends of the array.
func TestMeasure(t *testing.T) {
	for _, set := range sets()[len(sets())-1:] {
		var l Limits
		l.Measure(set, 2, Caches(set), []int{0, 4, 64, 292}, time.Microsecond)
		if l.Threads != 2 || l.MultiplyAdds <= 0 || l.Exponentials <= 0 {
			t.Errorf("%s: %+v", set, l)
		}
		for k, level := range l.Levels {
			for _, width := range []int{0, 4, 64, 292} {
				if level.Reads[width] <= 0 {
					t.Errorf("%s: no rate of rows of %d bytes in %+v", set, width, level)
				}
			}
			if isMemory := k == Levels-1; isMemory != (level.Bytes == 0) || !isMemory && k > 0 && level.Bytes <= l.Levels[k-1].Bytes {
				t.Errorf("%s: sizes of %+v", set, l.Levels)
			}
		}
	}
}

// A loop adds to elements as often as its name says, which its time shows: it is at least that of the additions
// at two vectors a cycle and 8 GHz, which no processor reaches.
func TestMultiplyAddsAreMade(t *testing.T) {
	const steps = 1 << 20
	for _, set := range sets() {
		l := loopsOf(set)
		start := time.Now()
		l.multiplyAdds(steps, 1, 1)
		if least := float64(steps*l.elements) / float64(l.bytes/4) / 2 / 8e9; time.Since(start).Seconds() < least {
			t.Errorf("%s: %v for %d steps, at least %v s", set, time.Since(start), steps, least)
		}
	}
}

// The limit is that of exponentials of float32 precision.
func TestExponentials(t *testing.T) {
	for _, set := range sets() {
		l := loopsOf(set)
		x, got := make([]float32, 1024), make([]float32, 1024)
		for i := range x {
			x[i] = float32(i-512) / 6
		}
		l.exponentials(&got[0], &x[0], len(x)*4/l.bytes, &constants[0])
		for i, v := range x {
			if want := math.Exp(float64(v)); math.Abs(float64(got[i])-want) > 1e-5*want {
				t.Errorf("%s: e^%v is %v, want %v", set, v, got[i], want)
			}
		}
	}
}

// Rates never decrease, nor do those of a copy change.
func TestLimitsOnlyRise(t *testing.T) {
	l := Limits{MultiplyAdds: 1e18, Exponentials: 1}
	l.Levels[1].Reads = map[int]float64{0: 1e18, 8: 1}
	before := l
	l.Measure("go", 1, [Levels]int{1 << 14, 1 << 15, 1 << 16}, []int{0, 8}, time.Microsecond)
	if reads := l.Levels[1].Reads; l.MultiplyAdds != 1e18 || l.Exponentials <= 1 || reads[0] != 1e18 || reads[8] <= 1 {
		t.Errorf("%+v", l)
	}
	if before.Levels[1].Reads[8] != 1 {
		t.Error("a copy has changed")
	}
}

// The ids are permutations, one behind the other.
func TestRandomIDs(t *testing.T) {
	for _, rows := range []int{1, 2, 8, 1 << 15} {
		ids := randomIDs(rows)
		for at := 0; at+rows <= len(ids); at += rows {
			for i, id := range slices.Sorted(slices.Values(ids[at : at+rows])) {
				if int(id) != i {
					t.Fatalf("%d rows: no permutation from id %d on", rows, at)
				}
			}
		}
	}
}
