package engine

import (
	"math/rand/v2"
	"time"

	"siafu/ranks/config"
)

// delay pauses a rank at random before one of the parts of a gather, for 1/parts of its length. So
// all modes lose the same time in an epoch. It is for experiments with stragglers.
type delay func(parts int)

// newDelay returns the delay of a rank. Validate has checked the configuration's delay.
func newDelay(c config.Config, rank int) delay {
	d, err := config.ParseDelay(c.Delay)
	if err != nil || !d.All && d.Rank != rank {
		return noDelay
	}
	rng := rand.New(rand.NewPCG(c.Seed, uint64(rank)))
	return func(parts int) {
		if rng.Float64() < d.Share {
			time.Sleep(d.Length / time.Duration(parts))
		}
	}
}

func noDelay(int) {}
