package ranks

import (
	"fmt"
	"math/big"
	"slices"

	"siafu/lambda/bill"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
	"siafu/ranks/tensor"
)

// account is the cost of a run: its hosts, paid by the hour, and its invocations. The zero
// value has no prices, and all costs are zero.
type account struct {
	hosts     []string            // distinct hosts
	instance  *bill.Instance      // type of each host; nil: hosts cost nothing
	functions *bill.Functions     // invocations since the run resumed or began; nil: no invocations
	begun     int64               // number of invocations since the run resumed or began
	again     int64               // invocations after the first of a task
	out, back int64               // bytes of tasks and results
	before    runfolder.Functions // invocations before the checkpoint that the run resumed from
}

// accountOf returns the account of a new run.
func accountOf(r *member) account {
	a := account{hosts: slices.Clone(r.everyone.Hosts())}
	slices.Sort(a.hosts)
	a.hosts = slices.Compact(a.hosts)
	if i, err := bill.ParseInstance(r.cfg.Instance); err == nil { // checked by Validate
		a.instance = &i
	}
	if r.cfg.Tensor == config.TensorLambda {
		a.functions = &bill.Functions{Tariff: r.cfg.Tariff(), Memory: r.cfg.LambdaMemory}
	}
	return a
}

// paid reports whether anything has a price.
func (a *account) paid() bool { return a.instance != nil || a.functions != nil }

// add adds the cost of all ranks' invocations, and returns the GB-seconds of s.
func (a *account) add(s tensor.Spent) (gbSeconds float64) {
	a.begun += s.Invocations
	a.again += s.Again
	a.out += s.Out
	a.back += s.Back
	if a.functions == nil {
		return 0
	}
	a.functions.Usage.Add(s.Usage)
	f := bill.Functions{Tariff: a.functions.Tariff, Memory: a.functions.Memory, Usage: s.Usage}
	return f.GBSeconds()
}

// invocations returns the totals of the invocations of the whole run.
func (a *account) invocations() runfolder.Functions {
	sum := a.before
	sum.LambdaInvocations += a.begun
	sum.LambdaAgain += a.again
	sum.LambdaBytesSent += a.out
	sum.LambdaBytesReceived += a.back
	if f := a.functions; f != nil {
		sum.LambdaWasted += f.Usage[bill.Wasted].Invocations
		sum.LambdaGBSeconds += f.GBSeconds()
		sum.LambdaWastedGBSeconds += f.WastedGBSeconds()
		sum.LambdaUSD += f.USD()
	}
	return sum
}

// hostUSD returns the price in dollars of the hosts for a time in seconds.
func (a *account) hostUSD(seconds float64) float64 {
	if a.instance == nil {
		return 0
	}
	return a.instance.USD(len(a.hosts), seconds)
}

// total returns the dollars of a run that has taken a time in seconds.
func (a *account) total(seconds float64) float64 {
	return a.hostUSD(seconds) + a.invocations().LambdaUSD
}

// summarise fills in the cost of the run. Without the price of the hosts, the value (performance per
// dollar, Dorylus) is omitted, because it would cover only a part of the cost.
func (a *account) summarise(s *runfolder.Summary) {
	s.Hosts, s.Functions = len(a.hosts), a.invocations()
	s.ServerUSD, s.CostUSD = a.hostUSD(s.TotalSeconds), a.total(s.TotalSeconds)
	if a.instance != nil {
		s.Instance, s.Value = a.instance.Name, bill.Value(s.TotalSeconds, s.CostUSD)
	}
}

// line returns the printed bill.
func (a *account) line(s *runfolder.Summary) string {
	line := "bill"
	if a.instance != nil {
		f, _ := a.instance.Hour.USD.Float64()
		line += fmt.Sprintf(" instance=%s usd_an_hour=%s hosts=%d", s.Instance, big.NewFloat(f).Text('g', -1), s.Hosts)
	}
	if f := a.functions; f != nil {
		line += fmt.Sprintf(" tariff=%s memory_mb=%d invocations=%d again=%d wasted=%d gb_seconds=%.3f server_usd=%.6f lambda_usd=%.6f",
			f.Tariff.Name, f.Memory, s.LambdaInvocations, s.LambdaAgain, s.LambdaWasted, s.LambdaGBSeconds, s.ServerUSD, s.LambdaUSD)
	}
	line += fmt.Sprintf(" usd=%.6f", s.CostUSD)
	if a.instance != nil {
		line += fmt.Sprintf(" value=%.6g", s.Value)
	}
	return line
}
