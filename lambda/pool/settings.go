package pool

import (
	"math/rand/v2"
	"time"
)

// Settings are the parameters of a Pool.
type Settings struct {
	Limit           int           // maximum of concurrent invocations
	Attempts        int           // maximum of attempts per task
	InvocationLimit time.Duration // maximum of an invocation: the time limit of the function
	Timeout         Timeout
	Backoff         Pause // after throttling, failed starts and crashes
	Breaker         Breaker
	Seed            uint64 // of the jitter
}

// Timeout determines the timeout of an attempt: Factor times the Quantile of the last Window
// durations of tasks of the same kind, limited to Floor and Ceiling. It doubles for each attempt
// after the first. Ceiling applies until Few durations are known.
type Timeout struct {
	Floor, Ceiling   time.Duration
	Quantile, Factor float64
	Window, Few      int
}

// Pause is a time that starts at First and doubles up to Most.
type Pause struct{ First, Most time.Duration }

// draw samples the n-th consecutive pause, from 1, from the upper half of its time.
func (p Pause) draw(n int, rng *rand.Rand) time.Duration {
	d := p.Most
	if n <= 32 && p.First<<(n-1)>>(n-1) == p.First { // no overflow
		d = min(p.First<<(n-1), p.Most)
	}
	return d - time.Duration(rng.Int64N(int64(d/2)+1))
}

// Breaker determines when the CPU computes all tasks.
type Breaker struct {
	Failures int   // consecutive counted failures that open the breaker; 0: never
	Rest     Pause // time until a probe
}

// Defaults returns settings for functions with durations from a tenth of a second to a minute.
func Defaults() Settings {
	return Settings{
		Limit: 100, Attempts: 6, InvocationLimit: 2 * time.Minute,
		Timeout: Timeout{Floor: 500 * time.Millisecond, Ceiling: time.Minute, Quantile: 0.75, Factor: 3, Window: 64, Few: 8},
		Backoff: Pause{100 * time.Millisecond, 20 * time.Second},
		Breaker: Breaker{Failures: 5, Rest: Pause{30 * time.Second, 10 * time.Minute}},
		Seed:    1,
	}
}

// check panics on invalid settings, which are a programmer's error.
func (s Settings) check() {
	t := s.Timeout
	switch {
	case s.Limit < 1 || s.Attempts < 1:
		panic("pool: no invocation is allowed")
	case t.Floor <= 0 || t.Ceiling < t.Floor || s.InvocationLimit < t.Ceiling:
		panic("pool: timeouts must be 0 < Floor <= Ceiling <= InvocationLimit")
	case t.Window < 1 || t.Few < 1 || t.Few > t.Window || !(t.Quantile >= 0 && t.Quantile <= 1) || !(t.Factor >= 1):
		panic("pool: invalid settings of timeouts")
	case s.Backoff.First <= 0 || s.Backoff.Most < s.Backoff.First:
		panic("pool: invalid pauses between failures")
	case s.Breaker.Failures > 0 && (s.Breaker.Rest.First <= 0 || s.Breaker.Rest.Most < s.Breaker.Rest.First):
		panic("pool: invalid rest of the breaker")
	}
}
