package ranks

import (
	"math/big"
	"slices"
	"time"

	"siafu/lambda/bill"
	"siafu/ranks/runfolder"
)

// servers are the hosts that a run is paid for by the hour. Without an instance, what
// they cost is 0.
type servers struct {
	hosts    []string // different ones
	instance *bill.Instance
}

// serversOf is what carries the ranks of a run.
func serversOf(r *run) servers {
	hosts := slices.Clone(r.everyone.Hosts())
	slices.Sort(hosts)
	s := servers{hosts: slices.Compact(hosts)}
	if i, err := bill.ParseInstance(r.cfg.Instance); err == nil { // Validate has read it
		s.instance = &i
	}
	return s
}

// paid tells whether costs are counted.
func (s servers) paid() bool { return s.instance != nil }

// hourly is the dollars of a host for an hour.
func (s servers) hourly() string {
	f, _ := s.instance.Hour.USD.Float64()
	return big.NewFloat(f).Text('g', -1)
}

// cost is the dollars of so many seconds.
func (s servers) cost(seconds float64) *big.Rat {
	if !s.paid() {
		return new(big.Rat)
	}
	return bill.Bill{Servers: bill.Servers(s.hosts, *s.instance, duration(seconds))}.Total()
}

// summarise fills in what the run has cost.
func (s servers) summarise(sum *runfolder.Summary) {
	sum.Hosts = len(s.hosts)
	if !s.paid() {
		return
	}
	cost := s.cost(sum.TotalSeconds)
	sum.Instance, sum.Value = s.instance.Name, bill.Value(duration(sum.TotalSeconds), cost)
	sum.CostUSD, _ = cost.Float64()
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
