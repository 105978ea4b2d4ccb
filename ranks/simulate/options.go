package simulate

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"siafu/graph/partition"
	"siafu/internal/fault"
	"siafu/ranks/config"
	"siafu/ranks/forecast"
	"siafu/ranks/plan"
)

// Options define the run to replay, and the cluster.
type Options struct {
	Run        string        `arg:"" help:"Folder of a run with --trace. It must have --mode pipe, nopipe or async, and --tensor cpu or lambda."`
	Trace      string        `placeholder:"FILE" help:"Timeline of the run. Empty: the file in its configuration."`
	Mode       string        `default:"" enum:",async" help:"Schedule. async: replay a synchronous run with bounded asynchrony. Empty: as recorded."`
	Staleness  int           `default:"-1" help:"Staleness bound of bounded asynchrony, in epochs. Negative: as recorded, 0 for a synchronous run."`
	Cluster    string        `placeholder:"NAME" help:"Hosts: INSTANCE:N, such as c5n.2xlarge:8, or a Dorylus cluster. Clusters: reddit-small, reddit-large, amazon, friendster, reddit-small-gat, amazon-gat. Sets defaults of --ranks, --workers and --rate, and prices."`
	Ranks      int           `default:"0" help:"Number of graph ranks. 0: as recorded."`
	Servers    int           `default:"-1" help:"Number of parameter servers. Negative: as recorded."`
	Rate       string        `default:"" help:"Rate of each rank's network card, such as 1gbit. Empty: unlimited."`
	SlowLink   []string      `help:"Graph rank with another rate of its network card, as RANK:RATE."`
	Latency    time.Duration `default:"0s" help:"Network latency between two ranks."`
	Copy       string        `default:"" help:"Copy rate between a worker and its network card, such as 8gbit. Workers copy rows between two tasks. Empty: unlimited."`
	DiskRate   string        `default:"" placeholder:"RATE" help:"Bytes a second that each rank reads from its disk, such as 1GB, for a run with --memory. Empty: fetches of files take the recorded time."`
	Workers    int           `default:"0" help:"Worker threads of each rank. 0: as recorded."`
	Processors int           `default:"0" help:"Processors shared by all ranks, as in an in-process world. 0: one for each worker."`
	Straggler  []string      `help:"Slow graph rank, as RANK:FACTOR. FACTOR multiplies the time of all its work."`
	Epochs     int           `default:"0" help:"Epochs to replay, cycling through the recorded epochs. 0: each recorded epoch once, fewer with many ranks."`
	Least      bool          `help:"Each task takes the least of its recorded times. Set it if other work ran during the recording."`
	Intervals  int           `default:"0" help:"Intervals of each rank's vertices. 0: as recorded, for any --ranks and --scale."`
	Scale      float64       `default:"1" help:"Factor for the work and the rows of the graph."`
	Data       string        `placeholder:"DIR" help:"Dataset whose shards give counts of vertices, edges and sent rows. It must be partitioned for the simulated graph ranks. Empty: ghost rows are spread evenly; --ghost-power scales them to other numbers of ranks."`
	GhostPower float64       `default:"0.5" help:"Exponent P of the scaling of ghost rows with the number of ranks. With N times as many ranks, each has 1/N of the work and N^-P of the ghost rows."`

	FunctionOptions
	FailureOptions
}

// FunctionOptions define where tensor work runs.
type FunctionOptions struct {
	Tensor       string        `default:"" enum:",cpu,lambda" help:"Where tensor work runs. lambda: in invocations of functions. Empty: as recorded."`
	Functions    int           `default:"0" help:"Concurrency of a graph rank's invocations. 0: as recorded, else one for each interval, at most 100."`
	Bridges      int           `default:"0" help:"Bridge ranks, which transfer tasks and results. 0: every graph rank invokes functions directly."`
	Invocation   time.Duration `default:"-1ns" help:"Overhead of an invocation, without work and transfer. Negative: 10ms, or none if functions were recorded."`
	ColdStart    time.Duration `default:"200ms" help:"Additional time of the first invocation of each sandbox."`
	FunctionRate string        `default:"" help:"Rate of a function, such as 400mbit. Empty: 800 Mbit/s for one function, falling to 200 for 100 or more (Dorylus, section 6); unlimited if functions were recorded."`
	LambdaMemory int           `default:"192" help:"Memory of a function in MB. Processors are in proportion: one at 1,769 MB."`
	LambdaTariff string        `default:"x86_64" help:"Prices: x86_64, arm64 or x86_64-100ms. x86_64-100ms: the prices at the time of the Dorylus paper."`
}

// Print replays the recorded run and prints recorded and modelled times side by side.
func (o *Options) Print(w io.Writer) error {
	past, c, err := o.load()
	if err != nil {
		return err
	}
	fails, err := o.failures(len(c.Ranks))
	if err != nil {
		return err
	}
	return o.print(w, past, c, c.Run(o.epochs(past, c)), fails)
}

// load reads the recorded run, and returns the cluster on which its epochs are replayed.
func (o *Options) load() (past *recordedRun, c *Cluster, err error) {
	if past, err = o.read(); err == nil {
		c, err = o.cluster(past)
	}
	return past, c, err
}

// Replay returns the modelled epochs that Print prints, and the dollars of an epoch: those of a named
// cluster's hosts and of functions.
func (o *Options) Replay() (m Result, usd float64, err error) {
	past, c, err := o.load()
	if err != nil {
		return m, 0, err
	}
	m = c.Run(o.epochs(past, c))
	return m, o.hostCost(c, m.Epoch) + m.USD, nil
}

// epochs returns the number of epochs to replay.
func (o *Options) epochs(p *recordedRun, c *Cluster) int {
	if o.Epochs > 0 {
		return o.Epochs
	}
	return min(len(p.Epochs), max(2048/len(c.Ranks), 1))
}

// cluster returns the cluster on which the epochs of a run are replayed.
func (o *Options) cluster(p *recordedRun) (*Cluster, error) {
	if err := o.applyCluster(); err != nil {
		return nil, err
	}
	n := cmp.Or(o.Ranks, len(p.Ranks))
	switch {
	case n < 0 || n > mostRanks || o.Workers < 0 || o.Processors < 0 || o.Epochs < 0 || o.Epochs > mostEpochs ||
		o.Latency < 0 || o.Servers > mostRanks:
		return nil, fault.New(fault.Usage, op, "", "%d ranks with %d workers on %d processors, %d servers, %d epochs, a latency of %v", n,
			o.Workers, o.Processors, o.Servers, o.Epochs, o.Latency).
			Then("set at most %d ranks and servers, at most %d epochs, and no negative value", mostRanks, mostEpochs)
	case n > 1 && len(p.Ranks) == 1:
		return nil, fault.New(fault.Config, op, o.Run, "the recorded run has one graph rank, which exchanges no rows").
			Then("record a run on 2 graph ranks or more")
	case !(o.GhostPower >= 0 && o.GhostPower <= 1):
		return nil, fault.New(fault.Usage, op, "", "--ghost-power %g", o.GhostPower).Then("set a value from 0 to 1")
	case o.Intervals < 0 || o.Intervals > config.MostIntervals || o.Intervals > 0 && p.tensor == lambda:
		return nil, fault.New(fault.Usage, op, "", "--intervals %d", o.Intervals).
			Then("set 1 to %d, or 0 for the recorded intervals; tensor work in functions requires 0", config.MostIntervals)
	case !(o.Scale > 0 && o.Scale <= 1e9):
		return nil, fault.New(fault.Usage, op, "", "--scale %g", o.Scale).Then("set a value above 0 and at most 1e9")
	}
	if o.Intervals > 0 {
		p = p.recutIntervals(o.Intervals)
	}
	c := &Cluster{Ranks: p.Ranks, Workers: cmp.Or(o.Workers, p.Ranks[0].Workers), Shared: o.Processors, Bytes: p.bytes, Weights: p.weights,
		Servers: p.Servers, Server: p.Server}
	if o.Servers >= 0 {
		c.Servers = min(o.Servers, n)
	}
	if err := o.placeRanks(p, c, n); err != nil {
		return nil, err
	}
	for _, take := range []func(*recordedRun, *Cluster) error{o.setMode, o.setLinks, o.setDisk, o.setStragglers, o.functions} {
		if err := take(p, c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// placeRanks makes n ranks with their parts of the graph.
func (o *Options) placeRanks(p *recordedRun, c *Cluster, n int) error {
	counts := Shares(p.counts, n, o.GhostPower)
	if n == len(p.Ranks) {
		for _, to := range p.rows {
			c.Rows = append(c.Rows, slices.Clone(to))
		}
	}
	if o.Data != "" {
		report, err := o.report(n)
		if err != nil {
			return err
		}
		counts, c.Rows = ofReport(report)
	}
	for r := range counts {
		counts[r] = counts[r].times(o.Scale)
		c.Ghosts = append(c.Ghosts, counts[r].Ghosts)
	}
	for _, to := range c.Rows {
		for q := range to {
			to[q] *= o.Scale
		}
	}
	if n != len(p.Ranks) || o.Scale != 1 {
		c.Ranks = p.Scaled(p.counts, counts)
	}
	return nil
}

// Limits of ranks, of ranks in bounded asynchrony, and of epochs. In bounded asynchrony each
// interval sends messages to all ranks.
const (
	mostRanks  = 4096
	mostPaced  = 256
	mostEpochs = 100_000
)

// async is the mode of bounded asynchrony.
const async = "async"

// setMode applies the flags of modes.
func (o *Options) setMode(p *recordedRun, c *Cluster) error {
	c.Staleness = -1
	if !p.paced() && o.Mode != async {
		return nil
	}
	c.Linger = p.linger
	if c.Staleness = o.Staleness; c.Staleness < 0 {
		c.Staleness = p.staleness
	}
	if len(c.Ranks) > mostPaced {
		return fault.New(fault.Usage, op, "", "bounded asynchrony on %d ranks, where intervals send messages to all other ranks",
			len(c.Ranks)).Then("model at most %d ranks", mostPaced)
	}
	return nil
}

// report returns the report of the dataset's shards.
func (o *Options) report(ranks int) (*partition.Report, error) {
	m, err := partition.Find(o.Data, ranks)
	if err != nil {
		return nil, err
	}
	if m.Report.Ranks[0].SendTo == nil {
		return nil, fault.New(fault.Data, op, o.Data, "its shards for %d ranks lack the send lists", ranks).
			Then(`run "siafu partition --force --parts %d" again`, ranks)
	}
	return m.Report, nil
}

func ofReport(r *partition.Report) (counts []Counts, rows [][]float64) {
	for _, one := range r.Ranks {
		counts = append(counts, Counts{float64(one.Vertices), float64(one.Edges), float64(one.Ghosts)})
		rows = append(rows, floats(one.SendTo))
	}
	return counts, rows
}

// rateOf returns the bytes per second of messages over a link.
func rateOf(text string) (float64, error) {
	if text == "" {
		return math.Inf(1), nil
	}
	rate, err := plan.Bandwidth(text)
	return rate * forecast.PayloadShare, err
}

// setLinks applies the flags of links.
func (o *Options) setLinks(_ *recordedRun, c *Cluster) (err error) {
	c.Link.Latency = o.Latency.Seconds()
	if c.Link.Rate, err = rateOf(o.Rate); err != nil {
		return err
	}
	if o.Copy != "" {
		rate, err := plan.Bandwidth(o.Copy)
		if err != nil {
			return err
		}
		c.Copy = 1 / rate
	}
	c.Rates = slices.Repeat([]float64{c.Link.Rate}, len(c.Ranks))
	for _, text := range o.SlowLink {
		r, rate, ok := ofRank(text, len(c.Ranks))
		if !ok {
			return fault.New(fault.Usage, op, "", "--slow-link %q", text).
				Then("write RANK:RATE with a graph rank from 0 to %d, such as 0:200mbit", len(c.Ranks)-1)
		}
		if c.Rates[r], err = rateOf(rate); err != nil {
			return err
		}
	}
	return nil
}

// ofRank splits RANK:REST.
func ofRank(text string, ranks int) (rank int, rest string, ok bool) {
	number, rest, ok := strings.Cut(text, ":")
	rank, err := strconv.Atoi(number)
	return rank, rest, ok && rest != "" && err == nil && rank >= 0 && rank < ranks
}

// setStragglers applies the flags of stragglers.
func (o *Options) setStragglers(_ *recordedRun, c *Cluster) error {
	c.Slower = slices.Repeat([]float64{1}, len(c.Ranks))
	for _, text := range o.Straggler {
		r, factor, ok := ofRank(text, len(c.Ranks))
		f, err := strconv.ParseFloat(factor, 64)
		if !ok || err != nil || !(f > 0 && f <= 1e6) {
			return fault.New(fault.Usage, op, "", "--straggler %q", text).
				Then("write RANK:FACTOR with a graph rank from 0 to %d and a factor up to 1e6, such as 0:2", len(c.Ranks)-1)
		}
		c.Slower[r] = f
	}
	return nil
}
