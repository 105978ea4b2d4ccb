package bill

import (
	"math/big"
	"slices"
	"time"
)

// Server is a machine that a run has had for a time.
type Server struct {
	Host  string
	Ranks []int // which it carried, ascending
	Instance
	Time time.Duration
}

// Servers are the machines of a run, in the order of their first ranks: hosts are
// those of all ranks, and a host of several ranks is paid once.
func Servers(hosts []string, i Instance, d time.Duration) []Server {
	var list []Server
	for rank, host := range hosts {
		k := slices.IndexFunc(list, func(s Server) bool { return s.Host == host })
		if k < 0 {
			k, list = len(list), append(list, Server{Host: host, Instance: i, Time: d})
		}
		list[k].Ranks = append(list[k].Ranks, rank)
	}
	return list
}

// Cost is dollars: the hours, in their fractions, by the price of one.
func (s Server) Cost() *big.Rat {
	return new(big.Rat).Mul(big.NewRat(int64(s.Time), int64(time.Hour)), s.Hour.USD)
}

// Class is what became of an invocation.
type Class uint8

// Invocations are in one class each.
const (
	Counted Class = iota // its result was used, and it was the first attempt
	Retried              // its result was used, and it was a later attempt
	Wasted               // it came to nothing, or somebody else's result came before
	numClasses
)

// Functions are the invocations of a function.
type Functions struct {
	Tariff Tariff
	Memory int // MB
	used   [numClasses]usage
}

// usage is what is paid for: billed is the sum of rounded durations.
type usage struct {
	invocations int64
	billed      time.Duration
}

// Billed is what an invocation is charged for: its initialisation, where it had one,
// and its work, together rounded up to the tariff's step. A function with a runtime
// of its own has always paid for its initialisation.
func (t Tariff) Billed(initialised, worked time.Duration) time.Duration {
	steps := (initialised + worked + t.Step - 1) / t.Step
	return steps * t.Step
}

// Add takes an invocation down.
func (f *Functions) Add(c Class, initialised, worked time.Duration) {
	f.used[c].invocations++
	f.used[c].billed += f.Tariff.Billed(initialised, worked)
}

// Invocations is how many there were of a class.
func (f *Functions) Invocations(c Class) int64 { return f.used[c].invocations }

// GBSeconds is the memory of a class by the time for which it is charged. A GB is
// 1024 MB.
func (f *Functions) GBSeconds(c Class) *big.Rat {
	gb := big.NewRat(int64(f.Memory), 1024)
	return gb.Mul(gb, big.NewRat(int64(f.used[c].billed), int64(time.Second)))
}

// Cost is the dollars of a class.
func (f *Functions) Cost(c Class) *big.Rat {
	sum := f.GBSeconds(c)
	sum.Mul(sum, f.Tariff.GBSecond.USD)
	requests := new(big.Rat).SetInt64(f.used[c].invocations)
	return sum.Add(sum, requests.Mul(requests, f.Tariff.Request.USD))
}

// Bill is that of a run.
type Bill struct {
	Servers   []Server
	Functions []Functions
}

// Total is all of it, in dollars.
func (b Bill) Total() *big.Rat {
	sum := new(big.Rat)
	for _, s := range b.Servers {
		sum.Add(sum, s.Cost())
	}
	for _, f := range b.Functions {
		for c := range numClasses {
			sum.Add(sum, f.Cost(c))
		}
	}
	return sum
}

// Value is 1/(T×C) of a training time T in seconds and a cost C in dollars, Dorylus's
// performance per dollar (§7.1). It is 0 where nothing was paid.
func Value(t time.Duration, cost *big.Rat) float64 {
	if t <= 0 || cost.Sign() <= 0 {
		return 0
	}
	product := big.NewRat(int64(t), int64(time.Second))
	v, _ := product.Inv(product.Mul(product, cost)).Float64()
	return v
}
