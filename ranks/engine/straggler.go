package engine

import (
	"math/rand/v2"
	"time"

	"siafu/ranks/config"
)

// delay makes a rank stand still now and then before it gathers, for
// experiments with stragglers. The nil delay does nothing.
type delay struct {
	config.Delay
	rng *rand.Rand
}

// newDelay is that of a rank, nil where it has none. Validate has read the
// configuration's.
func newDelay(c config.Config, rank int) *delay {
	d, err := config.ParseDelay(c.Delay)
	if err != nil || !d.All && d.Rank != rank {
		return nil
	}
	return &delay{d, rand.New(rand.NewPCG(c.Seed, uint64(rank)))}
}

// beforeGather stands still before one of so many parts of a gather: for its share of
// the time, so that all modes lose the same in an epoch.
func (d *delay) beforeGather(parts int) {
	if d != nil && d.rng.Float64() < d.Share {
		time.Sleep(d.Length / time.Duration(parts))
	}
}
