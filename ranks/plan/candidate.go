package plan

import (
	"fmt"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/internal/size"
	"siafu/kernels"
	"siafu/ranks/config"
	"siafu/ranks/forecast"
	"siafu/ranks/world"
)

// Candidate is the estimate for one partitioner.
type Candidate struct {
	Method  string          `json:"partitioner"`
	Made    bool            `json:"made"` // the shards exist
	Cut     float64         `json:"cut"`  // fraction of all edges
	Ghosts  int64           `json:"ghosts"`
	Largest int             `json:"largest_rank"` // the rank with the largest memory
	Memory  forecast.Memory `json:"memory"`       // of that rank, with the first codec
	Network string          `json:"network"`      // orders of products, as train prints them
	Codecs  []Coded         `json:"codecs"`

	// Bytes of activations and their gradients on the rank with the largest memory, without and
	// with --recompute; 0 in bounded asynchrony, which stores all.
	Kept       int64 `json:"activation_bytes_kept"`
	Recomputed int64 `json:"activation_bytes_recomputed"`

	// Pairs is the traffic of the pairs' ends, in link prediction.
	Pairs *forecast.PairTraffic `json:"pairs,omitempty"`

	// Invocations of an epoch with an evaluation, and of the run, with --tensor lambda.
	Functions *Functions `json:"functions,omitempty"`

	fixed  int64 // memory of a rank without vertices
	report *partition.Report
	made   *partition.Meta // of existing shards, or nil
	whole  bool            // the only rank uses the dataset's edges and features
}

// Coded is the estimate for a partitioner with a codec.
type Coded struct {
	Codec   string           `json:"codec"`
	Peak    int64            `json:"peak_bytes"` // of the largest rank, including the program
	Fits    bool             `json:"fits"`
	Traffic forecast.Traffic `json:"traffic"`
	Epoch   forecast.Epoch   `json:"epoch"`
	Slices  int              `json:"slices,omitempty"` // in which columns are gathered (--memory slices=N)
	// Ghosts is --recompute-ghosts if ranks on several hosts may choose. Counted reports whether ghosts of
	// all hops are counted; otherwise auto does not choose it. Fetched has the bytes of the ghosts' inputs,
	// once before the first epoch.
	Ghosts  string `json:"recompute_ghosts,omitempty"`
	Counted bool   `json:"counted,omitempty"`
	Fetched int64  `json:"fetched_bytes,omitempty"`
	// Choices has the estimates of all values of --recompute-ghosts. Other is the shortest epoch with another
	// value that may be chosen, if times are estimated.
	Choices []Coded         `json:"ghost_choices,omitempty"`
	Other   *forecast.Epoch `json:"other_epoch,omitempty"`

	forecast *forecast.Forecast
	memory   forecast.Memory // of the largest rank
	whole    int64           // its peak with all pages of files
	largest  int
	network  string
}

// Functions is the cost of invocations.
type Functions struct {
	Epoch forecast.Functions `json:"epoch"`
	Run   forecast.Functions `json:"run"`
}

// candidate counts the parts of a partitioner and estimates a run on them.
func (q *request) candidate(ds *graph.Dataset, method string) (*Candidate, error) {
	c := &Candidate{Method: method}
	q.steps.begin(fmt.Sprintf("estimating %d graph ranks with --partitioner %s", q.view.Ranks, method))
	if err := c.count(q, ds, q.Config.Partitions(q.view.Parts)); err != nil {
		return nil, err
	}
	c.report = q.scaled(c.report)
	c.Cut, c.Ghosts = c.report.Cut, c.report.Ghosts
	for _, name := range q.codecs {
		coded := q.Config
		coded.Codec = name
		one, err := c.coded(q, coded)
		if err != nil {
			return nil, err
		}
		if err := c.ghostChoices(q, coded, &one); err != nil {
			return nil, err
		}
		if len(c.Codecs) == 0 {
			c.Pairs = one.forecast.PairTraffic(c.report.Ranks)
			c.describe(q, one)
		}
		if q.Config.Tensor == config.TensorLambda && c.Functions == nil {
			if c.Functions, err = q.functions(one.forecast, c.report.Ranks); err != nil {
				return nil, err
			}
		}
		c.Codecs = append(c.Codecs, one)
	}
	return c, nil
}

// coded estimates a run of a configuration with one codec, and chooses how edges are stored as train does.
func (c *Candidate) coded(q *request, one config.Config) (Coded, error) {
	if one.Edges != config.AutoEdges {
		return c.codedWith(q, one)
	}
	one.Edges = config.PlainEdges
	plain, err := c.codedWith(q, one)
	if err != nil || plain.whole <= q.memory || !one.CanCodeEdges(one.NetworkOf(q.sized)) {
		return plain, err
	}
	one.Edges = config.CodedEdges
	if coded, err := c.codedWith(q, one); err == nil && coded.whole <= q.memory {
		return coded, nil
	}
	return plain, nil // also if there is too little disk space for coded edges
}

// codedWith estimates a run of a configuration with one codec and a given storage of edges.
func (c *Candidate) codedWith(q *request, run config.Config) (Coded, error) {
	if run.Edges == config.CodedEdges {
		for rank := range c.report.Ranks {
			c.report.Ranks[rank].CodedBits = q.codedBits()
		}
	}
	limit := q.memory / int64(max(1, q.view.Parts/q.view.Ranks))
	estimate := func(run config.Config) (one Coded, err error) {
		one.forecast, one.network, err = forecast.Of(run, q.sized, q.view.Parts, q.view.Servers, q.fitsInput(q.sized, c.report))
		if err == nil {
			one.forecast.Limit, one.forecast.Whole = limit, c.whole
			one.largest, one.memory = c.largestRank(one.forecast, q.view)
		}
		return one, err
	}
	run.Slices = forecast.FitSlices(run, q.memory, func(try config.Config) (int64, error) {
		one, err := estimate(try)
		return one.memory.Resident(), err
	})
	one, err := estimate(run)
	if err != nil {
		return one, err
	}
	one.Codec, one.Slices, one.Traffic = run.Codec, run.Slices, one.forecast.Traffic(c.report.Ranks)
	one.Peak, one.whole = size.Sum(one.memory.Peak(), forecast.Program), one.memory.Unlimited()
	if run.Scratch != "" {
		one.Peak = one.memory.Resident()
		err = forecast.CheckDisk(op, run.Scratch, size.Product(one.memory.Of(forecast.Disk), int64(q.link.RanksPerHost)))
	}
	one.Fits = one.Peak <= q.memory || run.Memory != "" && one.memory.Resident() <= q.memory // as train decides
	return one, err
}

// describe sets what the candidate reports of its first codec.
func (c *Candidate) describe(q *request, one Coded) {
	c.Network, c.Largest, c.Memory = one.network, one.largest, one.memory
	c.Kept, c.Recomputed = c.activations(one.forecast, q.view.Carried(one.largest))
	c.fixed = carried(one.forecast, q.view, one.largest, func(int) partition.RankReport { return partition.RankReport{} }).Peak()
}

// functions estimates invocations. A function computes on one processor at most.
func (q *request) functions(f *forecast.Forecast, parts []partition.RankReport) (*Functions, error) {
	ops := kernels.NewTeam(1)
	defer ops.Close()
	if err := ops.Use(q.Config.KernelVariant()); err != nil {
		return nil, err
	}
	epoch, run, err := f.Functions(parts, ops)
	return &Functions{epoch, run}, err
}

// count reads the counts of existing shards of this method and dataset. Without such shards it
// computes the assignment, or for one part counts without reading edges.
func (c *Candidate) count(q *request, ds *graph.Dataset, parts int) error {
	c.made = q.made(c.Method, parts)
	c.Made = c.made != nil
	any, order := c.made, q.Config.VertexOrder
	if parts == 1 && any == nil {
		any = q.made("", 1)
	}
	natural := any == nil && !q.ordered || any != nil && any.Report.Order.Name == "natural"
	c.whole = parts == 1 && (order == "natural" || natural)
	o := partition.Options{Method: c.Method, Parts: parts, Seed: 1}
	switch {
	case any != nil:
		c.report = any.Report
	case parts == 1:
		c.report = partition.CountWhole(ds, o)
	default:
		owner, err := partition.Assign(ds, o)
		if err != nil {
			return err
		}
		c.report = partition.Count(ds, owner, o)
	}
	return nil
}

// made returns the description of existing shards with complete counts, or nil. An empty method
// stands for any.
func (q *request) made(method string, parts int) *partition.Meta {
	m, err := partition.Find(q.Data, parts)
	if err != nil || m.Checksum == "" || !m.Serves(partition.Options{Method: method}) || m.Fingerprint != q.meta.Fingerprint() ||
		m.Report.Ranks[0].SendTo == nil {
		return nil
	}
	return m
}

// fitsInput reports whether ÂX fits into every rank's memory, by the rule of train.
func (q *request) fitsInput(m *graph.Meta, r *partition.Report) bool {
	if q.Config.Scratch != "" {
		return true
	}
	for member, p := range r.Ranks {
		here := len(q.view.Carried(q.view.Rank(member)))
		bytes := forecast.CachedInputBytes(q.Config, q.Config.NetworkOf(m), p.Vertices, p.Ghosts)
		if size.Product(bytes, int64(here)) > q.memory/2 {
			return false
		}
	}
	return true
}

// largestRank returns the rank with the largest memory.
func (c *Candidate) largestRank(f *forecast.Forecast, v world.View) (rank int, most forecast.Memory) {
	for r := range v.Ranks {
		m := carried(f, v, r, func(part int) partition.RankReport { return c.report.Ranks[part/max(v.Stages, 1)] })
		if m.Peak() > most.Peak() {
			rank, most = r, m
		}
	}
	return rank, most
}

// activations returns the bytes of activations on a rank with these parts, without and with
// --recompute.
func (c *Candidate) activations(f *forecast.Forecast, parts []int) (kept, again int64) {
	vertices := int64(0)
	for _, part := range parts {
		vertices += c.report.Ranks[part/max(f.Config.Pipelining().Stages, 1)].Vertices
	}
	return f.Activations(vertices)
}

// carried returns the memory of a rank's parts.
func carried(f *forecast.Forecast, v world.View, rank int, of func(part int) partition.RankReport) forecast.Memory {
	parts := v.Carried(rank)
	m := f.GraphRank(parts[0], of(parts[0]))
	for _, part := range parts[1:] {
		m = m.And(f.GraphRank(part, of(part)))
	}
	return m
}
