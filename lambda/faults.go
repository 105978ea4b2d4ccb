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
	Crash           // the sandbox ends after receiving its payload
	Late            // the response is delayed
	Lose            // no sandbox receives the payload, and the invocation times out
	Throttle        // 429, although a slot is free
	Duplicate       // two sandboxes run it, and the second response is dropped
	Corrupt         // a byte of the result is changed
	Straggle        // the sandbox is Slowness times slower
	Start           // a new sandbox that does not start
	Kinds           // number of faults
)

// Slowness is the factor by which a straggling sandbox is slower.
const Slowness = 10

// Faults are the fractions of failing invocations, each from 0 to 1, with a sum of at most 1.
// Equal seeds give the n-th invocation the same fault.
type Faults struct {
	Seed                                                             uint64
	Crash, Late, Lose, Throttle, Duplicate, Corrupt, Straggle, Start float64
	Delay                                                            time.Duration // of late responses
}

// share is the fraction of one fault, and its name.
type share struct {
	name string
	at   *float64
}

// shares returns the fractions in the order of the faults, from Crash.
func (f *Faults) shares() []share {
	return []share{
		{"crash", &f.Crash}, {"late", &f.Late}, {"lose", &f.Lose}, {"throttle", &f.Throttle},
		{"duplicate", &f.Duplicate}, {"corrupt", &f.Corrupt}, {"straggle", &f.Straggle}, {"start", &f.Start},
	}
}

// Draw samples the fault of the n-th invocation.
func (f Faults) Draw(n uint64) Fault {
	x, sum := rand.New(rand.NewPCG(f.Seed, n)).Float64(), 0.0
	for k, s := range f.shares() {
		if sum += *s.at; x < sum {
			return Crash + Fault(k)
		}
	}
	return None
}

// defaultDelay is the delay of late responses unless the text specifies one.
const defaultDelay = time.Second

// ParseFaults reads fractions by name, such as seed=1,crash=0.1,late=0.05,delay=300ms. Empty text
// means no faults. A fault of kind Usage describes invalid text.
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

// set sets the value with a name.
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
	return fault.New(fault.Usage, "train", "", "--lambda faults=%q: "+format, append([]any{text}, args...)...).
		Then("write NAME=VALUE,…, such as seed=1,crash=0.1,lose=0.05, with the names %s", strings.Join(names, ", "))
}
