package simulate

import (
	"cmp"
	"math"

	"siafu/internal/fault"
	"siafu/lambda/bill"
	"siafu/lambda/local"
	"siafu/lambda/pool"
	"siafu/ranks/plan"
	"siafu/ranks/schedule"
)

// lambda is the name of tensor work in functions.
const lambda = "lambda"

// defaultHandover is the assumed time of a worker to hand over a task if none was recorded, in
// seconds: a copy of 100 KB.
const defaultHandover = 20e-6

// functions applies the flags of functions.
func (o *Options) functions(p *recordedRun, c *Cluster) error {
	in := cmp.Or(o.Tensor, p.tensor)
	switch {
	case in != lambda && p.tensor == lambda:
		return fault.New(fault.Config, op, o.Run, "--tensor %s for a run with --tensor lambda, whose timeline lacks the times of tensor tasks", in).
			Then("record a run with --tensor cpu")
	case in != lambda:
		return nil
	case o.FunctionOptions.Functions < 0 || o.Bridges < 0 || o.Bridges > mostRanks || o.ColdStart < 0 || o.LambdaMemory < 128 || o.LambdaMemory > 10240:
		return fault.New(fault.Usage, op, "", "%d functions a rank over %d bridges, with %d MB and %v to start", o.FunctionOptions.Functions, o.Bridges, o.LambdaMemory, o.ColdStart).
			Then("set 128 to 10240 MB of memory, at most %d bridges, and no negative value", mostRanks)
	}
	f := &Functions{
		AtOnce: o.FunctionOptions.Functions, Bridges: o.Bridges, Memory: o.LambdaMemory, Overhead: 0.01, Cold: o.ColdStart.Seconds(), Hand: defaultHandover,
	}
	if f.AtOnce == 0 {
		f.AtOnce = max(cmp.Or(p.atOnce, min(c.Ranks[0].Outline.Intervals, pool.Most)), 1)
	}
	var err error
	if f.Tariff, err = bill.Architecture(o.LambdaTariff); err != nil {
		return err
	}
	if o.FunctionRate != "" {
		if f.Rate, err = plan.Bandwidth(o.FunctionRate); err != nil {
			return err
		}
	}
	if p.tensor == lambda {
		o.asRecorded(p, c, f)
	} else {
		o.fromCPU(p, c, f)
	}
	if o.Invocation >= 0 {
		f.Overhead = o.Invocation.Seconds()
	}
	c.Functions = f
	return nil
}

// asRecorded sets invocations to the recorded run's mean times and bytes.
func (o *Options) asRecorded(p *recordedRun, c *Cluster, f *Functions) {
	f.Hand, f.Cold, f.Near = -1, 0, p.near
	if f.Rate == 0 {
		f.Rate = unlimitedRate
	}
	f.Of = func(rank int, _ schedule.Task, _ float64) Call {
		by := c.Ranks[rank].vertices()
		return Call{p.call.To * by, p.call.Back * by, p.call.Work * by}
	}
	f.Overhead = p.overhead(c, f)
}

// overhead returns the seconds of an invocation in addition to its work with which a replay
// has the recorded duration: the round trip to a function, less charged time that caused no
// wait.
func (p *recordedRun) overhead(c *Cluster, f *Functions) float64 {
	was, trial := *c, *f
	was.Ranks, was.Slower, was.Rates, was.Rows, was.Ghosts = p.Ranks, nil, nil, nil, nil
	was.Workers, was.Servers, was.Functions, was.Link = p.Ranks[0].Workers, p.Servers, &trial, Link{Rate: math.Inf(1)}
	if was.Staleness = -1; p.isAsync() {
		was.Staleness, was.Linger = p.staleness, p.linger
	}
	was.Rows = p.rows
	for _, k := range p.counts {
		was.Ghosts = append(was.Ghosts, k.Ghosts)
	}
	trial.Of = func(int, schedule.Task, float64) Call { return p.call }
	least, most := -p.call.Work, p.median
	for range 20 {
		trial.Overhead = (least + most) / 2
		if was.Run(len(p.Epochs)).Median > p.median {
			most = trial.Overhead
		} else {
			least = trial.Overhead
		}
	}
	return trial.Overhead
}

// unlimitedRate is a rate in bytes per second above any link's.
const unlimitedRate = 1e18

// fromCPU derives invocation times from a worker's times and their fraction of a processor.
// Their bytes are those of uncoded matrices: input of the first stage, output of the last one,
// and weights or their gradients.
func (o *Options) fromCPU(p *recordedRun, c *Cluster, f *Functions) {
	share := min(local.VCPU(f.Memory), 1)
	var recorded, ranks []*Rank
	for _, k := range p.Ranks {
		recorded = append(recorded, k.recut(true, k.Outline.Intervals))
	}
	vertices := make([]float64, len(c.Ranks))
	for n, k := range c.Ranks {
		other := *recorded[n%len(recorded)]
		other.scale = k.scale
		ranks = append(ranks, &other)
		vertices[n] = p.counts[n%len(p.counts)].Vertices * k.vertices() / float64(max(k.Outline.Intervals, 1))
	}
	c.Ranks = ranks
	f.Of = func(rank int, t schedule.Task, takes float64) Call {
		in, out := 4*vertices[rank]*p.dims[t.Layer], 4*vertices[rank]*p.dims[t.Layer+1]
		call := Call{in + c.Weights, out, takes / share}
		if t.Stage >= schedule.ApplyBackward {
			call.To, call.Back = in+out, in+c.Weights
		}
		return call
	}
}

// vertices returns the ratio of its vertices to the recorded ones.
func (k *Rank) vertices() float64 {
	if k.scale == nil {
		return 1
	}
	return k.scale.Vertices
}
