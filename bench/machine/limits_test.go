package machine

import (
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
		l := Measure(set, 2, []int{4, 64, 292}, time.Microsecond)
		if l.Threads != 2 || l.MultiplyAdds <= 0 {
			t.Errorf("%s: %+v", set, l)
		}
		for k, level := range l.Levels {
			if level.Sequential <= 0 || len(level.Rows) != 3 || slices.Contains([]float64{level.Rows[4], level.Rows[64], level.Rows[292]}, 0) {
				t.Errorf("%s: %+v", set, level)
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

func TestAtLeast(t *testing.T) {
	a, b := Limits{MultiplyAdds: 2}, Limits{MultiplyAdds: 1}
	a.Levels[1] = Level{Sequential: 3, Rows: map[int]float64{8: 1}}
	b.Levels[1] = Level{Sequential: 4, Rows: map[int]float64{8: 5}}
	if c := a.AtLeast(b); c.MultiplyAdds != 2 || c.Levels[1].Sequential != 4 || c.Levels[1].Rows[8] != 5 {
		t.Errorf("%+v", c)
	}
}

// The ids are a permutation, followed by its begin.
func TestPermutation(t *testing.T) {
	for _, rows := range []int{1, 2, 8, 1 << 12} {
		ids := permutation(rows)
		for i, id := range ids[rows:] {
			if id != ids[i%rows] {
				t.Errorf("%d rows: id %d behind the permutation is %d, want %d", rows, i, id, ids[i%rows])
			}
		}
		sorted := slices.Sorted(slices.Values(ids[:rows]))
		for i, id := range sorted {
			if int(id) != i {
				t.Fatalf("%d rows: %v is no permutation", rows, ids[:rows])
			}
		}
	}
}

// Rows of a few vectors have loops of their own.
func TestRowLoops(t *testing.T) {
	l := loopsOf(sets()[len(sets())-1])
	few := len(l.rows) / 2
	for _, tc := range []struct{ width, vectors int }{{1, 1}, {l.bytes, 1}, {l.bytes + 1, 2}, {few * l.bytes, few}} {
		if list, vectors := l.rowLoops(tc.width); vectors != tc.vectors || len(list) != 2 {
			t.Errorf("width %d: %d vectors, want %d", tc.width, vectors, tc.vectors)
		}
	}
}
