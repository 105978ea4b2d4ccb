package bill

import (
	"math/big"
	"time"
)

// USD returns the price of a number of machines for some seconds: the hours, including fractions, times the
// price of an hour.
func (i Instance) USD(machines int, seconds float64) float64 {
	usd, _ := i.Hour.USD.Float64()
	return float64(machines) * usd * seconds / 3600
}

// Class is the outcome of an invocation.
type Class uint8

// Each invocation belongs to one class.
const (
	FirstUsed Class = iota // its result was used, and it was the first attempt
	Retried                // its result was used, and it was a later attempt
	Wasted                 // it failed, or the result of another attempt came first
	numClasses
)

// Usage is the billed usage of invocations by class.
type Usage [numClasses]Used

// Used is the number of invocations and the sum of their rounded durations.
type Used struct {
	Invocations int64
	Billed      time.Duration
}

// Add adds what others were charged for.
func (u *Usage) Add(v Usage) {
	for c := range u {
		u[c].Invocations += v[c].Invocations
		u[c].Billed += v[c].Billed
	}
}

// Numbers returns the usage as a vector that can be summed over ranks: for each class, the
// invocations and their billed milliseconds.
func (u Usage) Numbers() []float64 {
	var list []float64
	for _, x := range u {
		list = append(list, float64(x.Invocations), float64(x.Billed)/float64(time.Millisecond))
	}
	return list
}

// NumUsage is the length of Usage.Numbers.
const NumUsage = 2 * int(numClasses)

// UsageOf returns the inverse of Numbers, for NumUsage numbers.
func UsageOf(numbers []float64) (u Usage) {
	for c := range u {
		u[c] = Used{int64(numbers[2*c]), time.Duration(numbers[2*c+1] * float64(time.Millisecond))}
	}
	return u
}

// Functions are the invocations of a function, with its tariff.
type Functions struct {
	Tariff Tariff
	Memory int // MB
	Usage
}

// Billed returns the billed duration of an invocation: its initialisation, if it had one, plus its
// work, rounded up to the tariff's step. Lambda has always billed the initialisation of a custom
// runtime.
func (t Tariff) Billed(initialised, worked time.Duration) time.Duration {
	steps := (initialised + worked + t.Step - 1) / t.Step
	return steps * t.Step
}

// Take adds an invocation with the tariff t.
func (u *Usage) Take(t Tariff, c Class, initialised, worked time.Duration) {
	u[c].Invocations++
	u[c].Billed += t.Billed(initialised, worked)
}

// Add adds an invocation.
func (f *Functions) Add(c Class, initialised, worked time.Duration) {
	f.Usage.Take(f.Tariff, c, initialised, worked)
}

// gbSeconds returns the memory of a class times its billed time. A GB is 1024 MB.
func (f *Functions) gbSeconds(c Class) *big.Rat {
	gb := big.NewRat(int64(f.Memory), 1024)
	return gb.Mul(gb, big.NewRat(int64(f.Usage[c].Billed), int64(time.Second)))
}

// GBSeconds returns the memory of all invocations times their billed time. A GB is 1024 MB.
func (f *Functions) GBSeconds() float64 { return f.sum(f.gbSeconds) }

// WastedGBSeconds is GBSeconds of the class Wasted.
func (f *Functions) WastedGBSeconds() float64 {
	wasted, _ := f.gbSeconds(Wasted).Float64()
	return wasted
}

// cost returns the price of the invocations of a class in dollars.
func (f *Functions) cost(c Class) *big.Rat {
	sum := f.gbSeconds(c)
	sum.Mul(sum, f.Tariff.GBSecond.USD)
	requests := new(big.Rat).SetInt64(f.Usage[c].Invocations)
	return sum.Add(sum, requests.Mul(requests, f.Tariff.Request.USD))
}

// USD returns the price of all invocations in dollars.
func (f *Functions) USD() float64 { return f.sum(f.cost) }

// sum adds a number of each class.
func (f *Functions) sum(of func(Class) *big.Rat) float64 {
	sum := new(big.Rat)
	for c := range numClasses {
		sum.Add(sum, of(c))
	}
	x, _ := sum.Float64()
	return x
}

// Value returns 1/(T×C) for a training time T in seconds and a cost C in dollars. It is Dorylus's
// performance per dollar (§7.1), and 0 for a cost of 0.
func Value(seconds, usd float64) float64 {
	if seconds <= 0 || usd <= 0 {
		return 0
	}
	return 1 / (seconds * usd)
}
