package plan

import (
	"runtime"

	"siafu/graph"
	"siafu/halo/codec"
	"siafu/internal/host"
	"siafu/kernels"
	"siafu/ranks/forecast"
)

// The amount of measured work.
const (
	sampleRows  = 1 << 15
	sampleBytes = 1 << 30 // size of the rows that a gather reads
)

// calibration measures this host with the threads of all ranks that share it.
type calibration struct {
	forecast.Host
	// ordered: the sample's vertices are in the order of a shard.
	ordered bool

	known  map[string]forecast.Rates // by orders of products
	coding map[string]codec.Cost
	copies float64 // bytes/s, 0 before the measurement
}

// peakMemory returns the largest memory of any measurement of a plan, and completes the plan's
// description of the network.
func (c *calibration) peakMemory(p *Plan) (most int64) {
	for _, one := range p.Candidates {
		f := one.Codecs[0].forecast
		p.network(f)
		most = max(most, c.Need(f))
	}
	return most
}

func (q *request) calibration(ds *graph.Dataset) (*calibration, error) {
	threads := runtime.NumCPU()
	if q.Config.Threads > 0 {
		threads = min(threads, q.Config.Threads*min(q.link.RanksPerHost, q.view.Ranks))
	}
	in, ordered, done := q.inOrder(ds)
	s := newSample(in, q.Config.Hidden, ordered)
	s.Spread = int(q.Scale)
	done()
	c := &calibration{
		Host: forecast.Host{Team: kernels.NewTeam(threads), Features: ds.Features, Labels: ds.Labels, Split: ds.Split, Sample: s,
			Rows: int(min(ds.Meta.Vertices, sampleRows)), Memory: host.AvailableMemory() / 2},
		ordered: ordered, known: map[string]forecast.Rates{}, coding: map[string]codec.Cost{},
	}
	err := c.check(ds)
	if err == nil {
		err = c.Team.Use(q.Config.KernelVariant())
	}
	if err != nil {
		c.Team.Close()
		return nil, err
	}
	return c, nil
}
