package ranks

import (
	"fmt"

	"siafu/graph/fault"
	"siafu/graph/partition"
	"siafu/ranks/forecast"
	"siafu/ranks/world"
)

// checkMemory foretells what the ranks on this host will take together, warns
// where that is more than there is, and refuses where the arrays alone, which
// the system cannot take back, are. Collective over the world.
func (r *run) checkMemory(out IO) error {
	f, _, err := r.cfg.Forecast(r.meta, r.Graph, r.Servers, r.net.CacheInput)
	if err != nil {
		return err
	}
	mine := r.foretold(f)
	all := make([]int64, 2*r.world.Size())
	all[2*r.rank], all[2*r.rank+1] = mine.Peak(), mine.Certain()
	if err := world.SumInt64s(r.world, all); err != nil {
		return err
	}
	hosts, peak, certain := r.world.Hosts(), int64(0), int64(0)
	for q, host := range hosts {
		if host == hosts[r.rank] {
			peak, certain = peak+all[2*q], certain+all[2*q+1]
		}
	}
	there := availableMemory()
	text := fmt.Sprintf("the ranks on %s will take about %d MB, %d of them for good, where %d MB are available",
		hosts[r.rank], peak/1e6, certain/1e6, there/1e6)
	switch judgeMemory(peak+forecast.Program, certain, there) {
	case refuse:
		if !r.cfg.ForceMemory {
			err = fault.New(fault.Config, "train", r.data, "%s", text).
				Then(`see "siafu plan" for what fits, or train all the same with --force-memory`)
			break
		}
		fallthrough
	case doubts:
		if r.firstHere() {
			fmt.Fprintf(out.Err, "siafu: warning: %s\n", text)
		}
	}
	return agree(r.world, err)
}

// judgement is what a host says to a forecast.
type judgement int

const (
	fits judgement = iota
	doubts
	refuse
)

// judgeMemory compares the peak of a forecast, and what of it is certain, with
// what a host has; 0 is a host that does not tell.
func judgeMemory(peak, certain, there int64) judgement {
	switch {
	case there == 0 || peak <= there:
		return fits
	case certain <= there:
		return doubts // files leave memory when it is needed elsewhere
	}
	return refuse
}

// firstHere tells whether this is the first rank of its host.
func (r *run) firstHere() bool {
	hosts := r.world.Hosts()
	for q := range r.rank {
		if hosts[q] == hosts[r.rank] {
			return false
		}
	}
	return true
}

// foretold is what this rank will take.
func (r *run) foretold(f *forecast.Forecast) forecast.Memory {
	if r.isServer() {
		return f.ServerRank(len(r.Ranks(r.rank - r.Graph)))
	}
	return f.GraphRank(partition.CountShard(r.shard))
}
