package simulate

import (
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"siafu/bench/plan"
	"siafu/graph/fault"
	"siafu/graph/partition"
	"siafu/ranks/forecast"
)

// Options say which run to replay, and where.
type Options struct {
	Run        string        `arg:"" help:"Folder of a run with --trace, --mode pipe or nopipe."`
	Trace      string        `placeholder:"FILE" help:"Its timeline. Empty: where its configuration says."`
	Ranks      int           `default:"0" help:"Graph ranks. 0: as many as were recorded."`
	Rate       string        `default:"" help:"Rate of each rank's network card, such as 1gbit. Empty: without end."`
	Latency    time.Duration `default:"0s" help:"From when a byte leaves a rank to when it comes to another."`
	Workers    int           `default:"0" help:"Worker threads a rank. 0: as many as were recorded."`
	Processors int           `default:"0" help:"Processors that all ranks share, as those of an in-process world do. 0: each worker has one."`
	Straggler  []string      `help:"RANK:FACTOR, a graph rank all of whose work takes so many times as long."`
	Epochs     int           `default:"0" help:"Epochs to replay; those that were recorded take turns. 0: each once."`
	Data       string        `placeholder:"DIR" help:"Dataset that is partitioned for that many graph ranks: counts of vertices, edges and rows between ranks are those of its shards. Empty: ghosts are spread evenly, and other numbers of ranks follow a rule."`
	GhostPower float64       `default:"0.5" help:"The rule: with N times as many ranks, each has 1/N of the work and N to the power of -this of the ghosts."`
}

// Print replays the recorded run and prints what was recorded beside what is modelled.
func (o *Options) Print(w io.Writer) error {
	past, err := o.read()
	if err != nil {
		return err
	}
	c, err := o.cluster(past)
	if err != nil {
		return err
	}
	epochs := o.Epochs
	if epochs == 0 {
		epochs = len(past.Epochs)
	}
	return o.print(w, past, c, c.Run(epochs))
}

// cluster is where the epochs of a run are replayed.
func (o *Options) cluster(p *past) (*Cluster, error) {
	n := o.Ranks
	if n == 0 {
		n = len(p.Ranks)
	}
	switch {
	case n < 0 || n > mostRanks || o.Workers < 0 || o.Processors < 0 || o.Epochs < 0 || o.Latency < 0:
		return nil, fault.New(fault.Usage, op, "", "%d ranks with %d workers on %d processors, %d epochs, a latency of %v", n, o.Workers, o.Processors, o.Epochs, o.Latency).
			Then("ranks go to %d, and nothing is below 0", mostRanks)
	case n > 1 && len(p.Ranks) == 1:
		return nil, fault.New(fault.Config, op, o.Run, "one graph rank was recorded, which exchanges no rows").Then("record a run on 2 graph ranks or more")
	case !(o.GhostPower >= 0 && o.GhostPower <= 1):
		return nil, fault.New(fault.Usage, op, "", "--ghost-power %g", o.GhostPower).Then("it is from 0 to 1")
	}
	c := &Cluster{Ranks: p.Ranks, Workers: o.Workers, Shared: o.Processors, Bytes: p.bytes, Weights: p.weights, Servers: p.Servers, Server: p.Server}
	if c.Workers == 0 {
		c.Workers = p.Ranks[0].Workers
	}
	counts := Shares(p.counts, n, o.GhostPower)
	c.Rows = Spread(counts)
	if o.Data != "" {
		report, err := o.report(n)
		if err != nil {
			return nil, err
		}
		counts, c.Rows = ofReport(report)
	}
	if n != len(p.Ranks) {
		c.Ranks = p.Scaled(p.counts, counts)
	}
	err := o.link(c)
	if err == nil {
		err = o.slow(c)
	}
	return c, err
}

// mostRanks bounds what is simulated: in an exchange all pairs of ranks have a message
// under way at once.
const mostRanks = 1024

// report is the report of the dataset's shards.
func (o *Options) report(ranks int) (*partition.Report, error) {
	m, err := partition.Find(o.Data, ranks)
	if err != nil {
		return nil, err
	}
	if m.Report.Ranks[0].SendTo == nil {
		return nil, fault.New(fault.Data, op, o.Data, "its shards for %d ranks do not tell who sends what to whom", ranks).Then(`run "siafu partition --force --parts %d" again`, ranks)
	}
	return m.Report, nil
}

func ofReport(r *partition.Report) (counts []Counts, rows [][]float64) {
	for _, one := range r.Ranks {
		counts = append(counts, Counts{float64(one.Vertices), float64(one.Edges), float64(one.Ghosts)})
		to := make([]float64, len(one.SendTo))
		for q, n := range one.SendTo {
			to[q] = float64(n)
		}
		rows = append(rows, to)
	}
	return counts, rows
}

// link takes the flags of links.
func (o *Options) link(c *Cluster) error {
	c.Link = Link{Rate: math.Inf(1), Latency: o.Latency.Seconds()}
	if o.Rate == "" {
		return nil
	}
	rate, err := plan.Bandwidth(o.Rate)
	c.Link.Rate = rate * forecast.PayloadShare
	return err
}

// slow takes the stragglers.
func (o *Options) slow(c *Cluster) error {
	c.Slower = make([]float64, len(c.Ranks))
	for r := range c.Slower {
		c.Slower[r] = 1
	}
	for _, text := range o.Straggler {
		rank, factor, _ := strings.Cut(text, ":")
		r, bad := strconv.Atoi(rank)
		f, wrong := strconv.ParseFloat(factor, 64)
		if bad != nil || wrong != nil || r < 0 || r >= len(c.Ranks) || !(f > 0 && f <= 1e6) {
			return fault.New(fault.Usage, op, "", "--straggler %q", text).Then("it is RANK:FACTOR, with a graph rank from 0 to %d and a factor up to 1e6, such as 0:2", len(c.Ranks)-1)
		}
		c.Slower[r] = f
	}
	return nil
}
