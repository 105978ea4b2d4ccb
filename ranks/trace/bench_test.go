package trace

import (
	"testing"
	"time"
)

// A task costs one reading of the clock, which its task has anyway, and this.
func BenchmarkAdd(b *testing.B) {
	r := NewRecorder(0, Capacity)
	now := time.Now()
	for b.Loop() {
		r.Add("∇AV", Place{Epoch: 1}, now, now)
	}
}
