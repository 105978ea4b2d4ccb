package plan

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/internal/fault"
	"siafu/lambda/bill"
	"siafu/lambda/local"
	"siafu/lambda/pool"
	"siafu/ranks/config"
	"siafu/ranks/forecast"
)

// Advice is a recommended configuration of a run, and the estimated cost of its epoch.
type Advice struct {
	GraphRanks  int     `json:"graph_ranks"`
	Servers     int     `json:"servers"`
	Hosts       int     `json:"hosts"`
	Partitioner string  `json:"partitioner"`
	Codec       string  `json:"codec"`
	Exact       bool    `json:"exact"`                      // the codec is lossless
	Ghosts      string  `json:"recompute_ghosts,omitempty"` // empty: no choice
	Tensor      string  `json:"tensor"`
	Seconds     float64 `json:"seconds"` // of an epoch
	USD         float64 `json:"usd"`     // of an epoch
}

// String returns the advice as flags of train.
func (a *Advice) String() string {
	flags := fmt.Sprintf("--ranks %d --servers %d", a.GraphRanks+a.Servers, a.Servers)
	if a.GraphRanks > 1 {
		flags += fmt.Sprintf(" --partitioner %s --codec %s", a.Partitioner, a.Codec)
		if !a.Exact {
			flags += " (not exact)"
		}
	}
	if a.Ghosts != "" {
		flags += " --recompute-ghosts " + a.Ghosts
	}
	return flags + " --tensor " + a.Tensor
}

// advise finds the fastest and the cheapest configuration for several numbers of graph ranks. The
// plan's own number is tried with all candidates, other numbers with the best partitioner.
func (q *request) advise(ds *graph.Dataset, p *Plan, c *calibration) error {
	if !p.Timed {
		return nil
	}
	var list []*Advice
	counts := append(slices.Clone(q.Try), q.view.Ranks)
	if q.Config.Parts > 0 || q.Config.Bridges > 0 {
		counts = []int{q.view.Ranks}
	}
	slices.Sort(counts)
	method := p.Candidates[p.Best].Method
	if q.view.Ranks == 1 { // all partitioners are equal
		method = q.methods[max(slices.Index(q.methods, partition.Default), 0)]
	}
	for _, ranks := range slices.Compact(counts) {
		other, at := q, p
		if ranks != q.view.Ranks {
			if q.steps.over() {
				q.steps.skip(fmt.Sprintf("%d graph ranks", ranks))
				continue
			}
			var err error
			if other, at, err = q.with(ds, c, ranks, method); err != nil {
				return err
			}
			if at == nil {
				continue
			}
		}
		list = append(list, other.ways(at, at.Candidates[at.Best].Method)...)
	}
	if q.unknown != nil {
		p.Verdict = append(p.Verdict, fmt.Sprintf("Not compared with %v graph ranks: this large graph has no shards for them with %s "+
			"(siafu partition --parts N %s).", q.unknown, method, ds.Dir))
	}
	p.Host = q.price().Name
	p.Fastest = least(list, func(a *Advice) float64 { return a.Seconds })
	p.Cheapest = least(list, func(a *Advice) float64 { return a.USD })
	return nil
}

// with returns the plan for another number of graph ranks, with the given number of servers or
// the default of such a run. It returns nil if such a run is invalid.
func (q *request) with(ds *graph.Dataset, c *calibration, ranks int, method string) (*request, *Plan, error) {
	o := *q
	o.Config.Ranks = ranks + max(q.Config.Servers, 0)
	if q.Config.Servers < 0 && ranks > 1 {
		o.Config.Ranks = ranks + 1
	}
	var err error
	if o.view, err = o.Config.View(o.Config.Ranks); err != nil {
		return nil, nil, nil
	}
	if !ds.Verified() && !o.stored(o.Config.Partitions(o.view.Parts), []string{method}) {
		q.unknown = append(q.unknown, ranks) // to partition them would read all edges
		return nil, nil, nil
	}
	o.link.View, o.link.RanksPerHost = o.view, min(q.RanksPerHost, o.Config.Ranks)
	one, err := o.candidate(ds, method)
	if kind := fault.KindOf(err); err != nil && (kind == fault.Config || kind == fault.Usage) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	p := o.plan(q.sized)
	p.Candidates = []*Candidate{one}
	return &o, p, c.epochs(&o, p)
}

// ways returns the fitting candidates of a plan, and one with tensor work in functions.
func (q *request) ways(p *Plan, method string) (list []*Advice) {
	hosts := (q.view.Ranks + q.view.Servers + q.link.RanksPerHost - 1) / q.link.RanksPerHost
	for _, one := range p.Candidates {
		for k, coded := range one.Codecs {
			if !coded.Fits {
				continue
			}
			a := Advice{
				GraphRanks: q.view.Ranks, Servers: q.view.Servers, Hosts: hosts, Partitioner: one.Method, Codec: coded.Codec,
				Tensor: "cpu", Exact: coded.forecast.Codecs[0].Lossless(), Seconds: coded.Epoch.Seconds(p.Mode),
				Ghosts: coded.Ghosts,
			}
			a.USD = q.price().USD(hosts, a.Seconds)
			list = append(list, &a)
			if k == 0 && one.Method == method {
				if b, err := q.inFunctions(one, a, coded.Epoch.Tensor); err == nil {
					list = append(list, b)
				}
			}
		}
	}
	return list
}

// errNone reports that a run cannot have its tensor work in functions.
var errNone = errors.New("no functions")

// inFunctions returns the configuration with tensor work in functions. The number of concurrent
// functions is the initial one of a run.
func (q *request) inFunctions(one *Candidate, a Advice, tensor float64) (*Advice, error) {
	c := q.Config
	c.Tensor, c.Lambda = config.TensorLambda, "local"
	// the messages of a scaled graph are many
	if c.Asynchronous() || q.Config.Tensor == config.TensorCUDA || q.Scale > 1 || c.Validate() != nil {
		return nil, errNone
	}
	f, _, err := forecast.Of(c, q.sized, q.view.Parts, q.view.Servers, q.fitsInput(q.sized, one.report))
	if err != nil {
		return nil, err
	}
	all, err := q.functions(f, one.report.Ranks)
	if err != nil {
		return nil, err
	}
	e := all.Epoch
	work := e.GBSeconds / float64(c.LambdaMemory) * 1024
	atOnce := 0
	for _, part := range one.report.Ranks {
		atOnce += min(c.IntervalsOf(f.Net, int(part.Vertices), part.Edges), pool.MaxInitial)
	}
	takes := work + float64(e.Invocations)*local.Overhead + 8*float64(e.To+e.From)/local.Bandwidth(atOnce)
	link := float64(max(e.To, e.From)) / float64(a.Hosts) / (forecast.PayloadShare * q.link.Bandwidth)
	a.Tensor = config.TensorLambda
	a.Seconds += max(takes/float64(max(atOnce, 1)), link) - tensor
	a.USD = q.price().USD(a.Hosts, a.Seconds) + e.USD
	return &a, nil
}

// least returns the minimum by a measure. A later element must be 10 % less, which is the
// smallest error of a forecast.
func least(list []*Advice, by func(*Advice) float64) (best *Advice) {
	for _, a := range list {
		if best == nil || by(a) < 0.9*by(best) {
			best = a
		}
	}
	return best
}

// priced has instances by their number of processors, for users who give no price.
var priced = []struct {
	processors int
	instance   string
}{{2, "c5.large"}, {4, "c5.xlarge"}, {8, "c5.2xlarge"}, {16, "c5.4xlarge"}, {math.MaxInt, "c5.9xlarge"}}

// price returns the instance whose price a host is assumed to have.
func (q *request) price() bill.Instance {
	name := q.Config.Instance
	for _, p := range priced {
		if name == "" && runtime.NumCPU() <= p.processors {
			name = p.instance
		}
	}
	i, err := bill.ParseInstance(name)
	if err != nil {
		panic("plan: an instance without a price") // Validate has parsed the user's instance
	}
	return i
}

// recommend returns up to three lines: the fastest configuration, the cheapest one, and the
// assumptions.
func (p *Plan) recommend() (lines []string) {
	f, c := p.Fastest, p.Cheapest
	if f == nil {
		return nil
	}
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	run := func(a *Advice) string {
		n := float64(p.Epochs)
		return fmt.Sprintf("%s an epoch, %s and %.2g USD for %d epochs", duration(a.Seconds), duration(n*a.Seconds), n*a.USD, p.Epochs)
	}
	say("fastest:   %v: %s", f, run(f))
	if *c == *f {
		say("cheapest:  the same")
	} else {
		say("cheapest:  %v: %s, %.0f %% of the money for %.1f times the time", c, run(c), 100*c.USD/f.USD, c.Seconds/f.Seconds)
	}
	say("basis:     rates measured here on %d threads, %d ranks per host, links of %s and %s, hosts at the price of "+
		"%s; times may be off by 25%%",
		p.Threads, p.RanksPerHost, rate(p.Bandwidth), duration(p.Latency), p.Host)
	return lines
}
