package lambda

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"siafu/internal/fault"
)

// Fault is an injected failure of an invocation.
type Fault int

// The faults.
const (
	None      Fault = iota
	Crash           // the sandbox ends after it has received its payload
	Late            // the answer waits
	Lose            // no sandbox ever gets the payload, and the invocation times out
	Throttle        // 429, though there is a place
	Duplicate       // two sandboxes run it, and the second response is dropped
	Corrupt         // a byte of the response is changed
	Straggle        // the sandbox is Slowness times slower
	Start           // its sandbox is a new one that does not come up
	Kinds           // their number
)

// Slowness of a sandbox that straggles.
const Slowness = 10

// Faults are the fractions of failing invocations, each from 0 to 1, with a sum of at most 1.
// Equal seeds give the n-th invocation the same fault.
type Faults struct {
	Seed                                                             uint64
	Crash, Late, Lose, Throttle, Duplicate, Corrupt, Straggle, Start float64
	Delay                                                            time.Duration // of those that are late
}

// share is one of them with its name.
type share struct {
	name string
	at   *float64
}

// shares are in the order of the kinds, from Crash.
func (f *Faults) shares() []share {
	return []share{
		{"crash", &f.Crash}, {"late", &f.Late}, {"lose", &f.Lose}, {"throttle", &f.Throttle},
		{"duplicate", &f.Duplicate}, {"corrupt", &f.Corrupt}, {"straggle", &f.Straggle}, {"start", &f.Start},
	}
}

// Draw samples the fault of the n-th invocation. It also returns the generator of the
// further random numbers of the invocation.
func (f Faults) Draw(n uint64) (Fault, *rand.Rand) {
	r := rand.New(rand.NewPCG(f.Seed, n))
	x, sum := r.Float64(), 0.0
	for k, s := range f.shares() {
		if sum += *s.at; x < sum {
			return Crash + Fault(k), r
		}
	}
	return None, r
}

// defaultDelay is that of late answers of which nothing is said.
const defaultDelay = time.Second

// ParseFaults reads shares by name, as seed=1,crash=0.1,late=0.05,delay=300ms. Empty
// text has none. A fault of kind Usage says what it cannot read.
func ParseFaults(text string) (Faults, error) {
	f := Faults{Delay: defaultDelay}
	if text == "" {
		return f, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		if err := f.set(name, value); err != nil {
			return Faults{}, unreadable(text, "%v", err)
		}
	}
	sum := 0.0
	for _, s := range f.shares() {
		sum += *s.at
	}
	if sum > 1+1e-9 { // 1 but for rounding
		return Faults{}, unreadable(text, "the fractions add up to %g, the maximum is 1", sum)
	}
	return f, nil
}

// set sets what a name stands for.
func (f *Faults) set(name, value string) (err error) {
	all := f.shares()
	k := slices.IndexFunc(all, func(s share) bool { return s.name == name })
	switch {
	case name == "seed":
		if f.Seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			return problem("seed=" + value + " is not a number of 0 or more")
		}
	case name == "delay":
		if f.Delay, err = time.ParseDuration(value); err != nil || f.Delay < 0 {
			return problem("delay=" + value + " is not a duration such as 300ms")
		}
	case k < 0:
		return problem("there is no fault " + strconv.Quote(name))
	default:
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || !(x >= 0 && x <= 1) {
			return problem(name + "=" + value + " is not a fraction from 0 to 1")
		}
		*all[k].at = x
	}
	return nil
}

type problem string

func (p problem) Error() string { return string(p) }

func unreadable(text, format string, args ...any) error {
	names := []string{"seed", "delay"}
	for _, s := range new(Faults).shares() {
		names = append(names, s.name)
	}
	return fault.New(fault.Usage, "train", "", "--lambda-faults=%q: "+format, append([]any{text}, args...)...).
		Then("write NAME=VALUE,…, such as seed=1,crash=0.1,lose=0.05, with the names %s", strings.Join(names, ", "))
}
