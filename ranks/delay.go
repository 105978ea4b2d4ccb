package ranks

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"siafu/graph/fault"
)

// delay makes a rank stand still now and then before it gathers, for
// experiments with stragglers. The nil delay does nothing.
type delay struct {
	length time.Duration
	share  float64 // of gathers
	rng    *rand.Rand
}

// newDelay reads RANK:DURATION:SHARE, where RANK may be *, for a rank.
func newDelay(text string, rank int, seed uint64) (*delay, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, ":")
	bad := fault.New(fault.Usage, "train", "", "--delay=%q", text).
		Then("it must be RANK:DURATION:SHARE, as 1:20ms:0.25, or with * for each rank")
	if len(parts) != 3 {
		return nil, bad
	}
	who, err := strconv.Atoi(parts[0])
	length, err2 := time.ParseDuration(parts[1])
	share, err3 := strconv.ParseFloat(parts[2], 64)
	if err != nil && parts[0] != "*" || who < 0 || err2 != nil || length < 0 || err3 != nil || !(share >= 0 && share <= 1) {
		return nil, bad
	}
	if parts[0] != "*" && who != rank {
		return nil, nil
	}
	return &delay{length, share, rand.New(rand.NewPCG(seed, uint64(rank)))}, nil
}

// gather stands still before one of so many parts of a gather: for its share of
// the time, so that all modes lose the same in an epoch.
func (d *delay) gather(parts int) {
	if d != nil && d.rng.Float64() < d.share {
		time.Sleep(d.length / time.Duration(parts))
	}
}
