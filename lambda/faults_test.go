package lambda

import (
	"strings"
	"testing"
	"time"

	"siafu/internal/fault"
)

// Faults have the requested rate, and are the same for the same seed.
func TestDraw(t *testing.T) {
	f := Faults{Seed: 7, Crash: 0.2, Late: 0.3, Lose: 0.1, Throttle: 0.02, Duplicate: 0.05, Corrupt: 0.03, Straggle: 0.06, Start: 0.04}
	var count [Kinds]int
	for n := range uint64(10_000) {
		a := f.Draw(n)
		if a != f.Draw(n) {
			t.Fatal("two runs with one seed differ")
		}
		count[a]++
	}
	for k, want := range []int{None: 2000, Crash: 2000, Late: 3000, Lose: 1000, Throttle: 200, Duplicate: 500,
		Corrupt: 300, Straggle: 600, Start: 400} {
		if d := count[k] - want; d < -150 || d > 150 {
			t.Errorf("fault %d comes %d times, want about %d", k, count[k], want)
		}
	}
	f.Seed++
	other := 0
	for n := range uint64(1000) {
		if f.Draw(n) != (Faults{Seed: 7, Crash: 0.2, Late: 0.3}).Draw(n) {
			other++
		}
	}
	if other == 0 {
		t.Error("another seed does the same")
	}
}

func TestParseFaults(t *testing.T) {
	f, err := ParseFaults(
		"seed=3,crash=0.1,late=0.05,delay=300ms,lose=0.05,throttle=0.1,duplicate=0.05,corrupt=0.04,straggle=0.03,start=0.58")
	want := Faults{Seed: 3, Crash: 0.1, Late: 0.05, Lose: 0.05, Throttle: 0.1, Duplicate: 0.05, Corrupt: 0.04, Straggle: 0.03, Start: 0.58,
		Delay: 300 * time.Millisecond}
	if err != nil || f != want {
		t.Errorf("%+v %v", f, err)
	}
	if f, err := ParseFaults(""); err != nil || f != (Faults{Delay: time.Second}) {
		t.Errorf("nothing: %+v %v", f, err)
	}
	for text, says := range map[string]string{
		"crush=0.1":          `no fault "crush"`,
		"crash":              "crash=",
		"crash=1.1":          "crash=1.1",
		"crash=-0.1":         "crash=-0.1",
		"crash=NaN":          "crash=NaN",
		"crash=0.6,lose=0.6": "add up to 1.2",
		"seed=-1":            "seed=-1",
		"late=0.1,delay=3":   "delay=3",
		"crash=0.1,":         `no fault ""`,
	} {
		_, err := ParseFaults(text)
		if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "--lambda faults=") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
