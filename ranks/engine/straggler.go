package engine

import (
	"math/rand/v2"
	"time"

	"siafu/ranks/config"
)

// delay pauses a rank at random before gathers, for experiments with stragglers. The nil delay
// does nothing.
type delay struct {
	config.Delay
	rng *rand.Rand
}

// newDelay returns the delay of a rank, nil without one. Validate has checked the
// configuration's delay.
func newDelay(c config.Config, rank int) *delay {
	d, err := config.ParseDelay(c.Delay)
	if err != nil || !d.All && d.Rank != rank {
		return nil
	}
	return &delay{d, rand.New(rand.NewPCG(c.Seed, uint64(rank)))}
}

// beforeGather pauses before one of the parts of a gather, for 1/parts of the delay. So all modes
// lose the same time in an epoch.
func (d *delay) beforeGather(parts int) {
	if d != nil && d.rng.Float64() < d.Share {
		time.Sleep(d.Length / time.Duration(parts))
	}
}
