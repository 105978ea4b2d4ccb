package plan

import (
	"io"
	"slices"
	"strings"
	"time"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/halo/codec"
	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/ranks/config"
	"siafu/ranks/forecast"
	"siafu/ranks/tune"
	"siafu/ranks/world"
)

// Flags are those of train. They are checked after lists in them are split, not by the command
// line.
type Flags config.Config

// Options define what to plan. The flags of the run are those of train; --partitioner and --codec
// may be lists.
type Options struct {
	Data         string        `arg:"" help:"Dataset folder."`
	RanksPerHost int           `default:"1" help:"Ranks that share a host's processors, memory and link."`
	Bandwidth    string        `default:"10gbit" help:"Rate of a host's link in each direction. Units: kbit, mbit, gbit, tbit."`
	Latency      string        `default:"50us" help:"Latency of a message between hosts."`
	Try          []int         `default:"1,2,4,8" help:"Numbers of graph ranks to compare, in addition to --ranks. The plan names the fastest and the cheapest."`
	DiskRate     string        `default:"auto" placeholder:"RATE" help:"Bytes a second that a host reads from and writes to its disk, such as 1GB, with --memory scratch=DIR. auto: measured with the dataset's largest file."`
	Scale        float64       `default:"1" help:"Factor for vertices, edges and ghosts of the dataset, as of a graph with the same degrees and cut. Work per edge is measured on the dataset."`
	MaxTime      time.Duration `default:"5m" placeholder:"DURATION" help:"Time after which no other partitioner and number of ranks is estimated. The plan names what is missing. 0: no limit."`
	All          bool          `help:"Print all tables: memory, traffic and epoch time."`
	JSON         bool          `name:"json" help:"Print the plan as JSON."`
	Config       Flags         `embed:""`

	Progress io.Writer `kong:"-"` // receives a line every few seconds; nil: none
}

// request has the parsed Options.
type request struct {
	Options
	Config  config.Config // with one partitioner and codec
	view    world.View
	meta    *graph.Meta // of the dataset, once it is open
	ordered bool        // partitioning orders the vertices
	methods []string
	codecs  []string
	steps   *steps
	link    forecast.Link
	memory  int64       // available memory of a rank in bytes
	large   int64       // size in bytes from which a dataset is not verified
	sized   *graph.Meta // meta times --scale
	unknown []int       // numbers of graph ranks without shards, if the dataset has not been verified
	disk    float64     // bytes/s of a host's disk, 0 without --memory scratch=DIR
	// codedBits returns the estimated bits per edge of coded columns.
	codedBits func() float64
}

// parse parses options. Its faults have kind Usage or Config.
func (o Options) parse() (*request, error) {
	q := &request{Options: o, Config: config.Config(o.Config), large: large, steps: newSteps(o.MaxTime)}
	q.methods, q.codecs = list(o.Config.Partitioner), list(o.Config.Codec)
	if len(q.methods) == 0 {
		q.methods = partition.Methods()
	}
	if slices.Equal(q.codecs, []string{"none"}) {
		q.codecs = codec.Kinds()
	}
	if len(q.codecs) == 1 {
		all, err := tune.Candidates(q.codecs[0])
		if err != nil {
			return nil, err
		}
		if all != nil {
			q.codecs = all
		}
	}
	q.Config.Partitioner, q.Config.Codec, q.Config.Ranks = "", "none", max(o.Config.Ranks, 1)
	if err := q.Config.Validate(); err != nil {
		return nil, err
	}
	if q.Config.Tensor == config.TensorLambda && q.Config.Asynchronous() {
		return nil, fault.New(fault.Usage, op, "", "--tensor=lambda with --mode=async").
			Then("use another --mode or --tensor: a plan estimates invocations of synchronous runs only")
	}
	if o.RanksPerHost < 1 {
		return nil, fault.New(fault.Usage, op, "", "--ranks-per-host=%d", o.RanksPerHost).Then("set 1 or more")
	}
	if o.MaxTime < 0 {
		return nil, fault.New(fault.Usage, op, "", "--max-time=%v", o.MaxTime).Then("set a duration such as 5m, or 0 for no limit")
	}
	if q.Scale == 0 {
		q.Scale = 1
	}
	if !(q.Scale >= 1 && q.Scale <= 1e9) {
		return nil, fault.New(fault.Usage, op, "", "--scale=%g", o.Scale).Then("set 1 to 1e9")
	}
	for _, n := range o.Try {
		if n < 1 {
			return nil, fault.New(fault.Usage, op, "", "--try=%d", n).Then("set 1 or more graph ranks")
		}
	}
	if _, _, err := q.diskRate(); err != nil {
		return nil, err
	}
	var err error
	if q.view, err = q.Config.View(q.Config.Ranks); err != nil {
		return nil, err
	}
	q.link.View = q.view
	q.link.RanksPerHost = min(o.RanksPerHost, q.Config.Ranks)
	if q.link.Bandwidth, err = Bandwidth(o.Bandwidth); err != nil {
		return nil, err
	}
	if q.link.Latency, err = latency(o.Latency); err != nil {
		return nil, err
	}
	q.memory, err = q.available()
	return q, err
}

// available returns the available memory of a rank.
func (q *request) available() (int64, error) {
	if q.Config.Memory != "" {
		return Bytes(q.Config.Memory)
	}
	return host.AvailableMemory() / int64(q.link.RanksPerHost), nil
}

// list returns the words between commas.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}
