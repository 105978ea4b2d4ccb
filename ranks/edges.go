package ranks

import (
	"siafu/internal/host"
	"siafu/ranks/config"
	"siafu/ranks/forecast"
	"siafu/ranks/graphwork"
	"siafu/ranks/world"
)

// chooseEdges resolves --memory edges=auto: columns are coded if a rank does not fit in memory with plain ones and
// all ranks fit with coded ones. A rank that has joined the run knows an earlier choice, which all ranks
// then keep. of estimates the run. Collective over the world.
func (r *joined) chooseEdges(of func() (*forecast.Forecast, error)) error {
	votes := []int64{0, 0} // members with coded edges, and with plain ones
	switch r.cfg.Edges {
	case config.AutoEdges:
	case config.CodedEdges:
		votes[0] = 1
	default:
		votes[1] = 1
	}
	if err := world.SumInt64s(r.world, votes); err != nil {
		return err
	}
	switch {
	case votes[0] > 0:
		r.cfg.Edges = config.CodedEdges
	case votes[1] > 0:
		r.cfg.Edges = config.PlainEdges
	default:
		if err := r.chooseEdgesByMemory(of); err != nil {
			return err
		}
	}
	if r.cfg.Edges != config.CodedEdges {
		r.codedBits = 0 // of a sample for the choice
	}
	r.sampleEdges()
	return nil
}

// chooseEdgesByMemory resolves --memory edges=auto on all ranks. Collective over the world.
func (r *joined) chooseEdgesByMemory(of func() (*forecast.Forecast, error)) error {
	plain, coded := true, false
	var err error
	if r.cfg.CanCodeEdges(r.net) {
		if plain, err = r.fitsWith(config.PlainEdges, of); err != nil {
			return err
		}
	}
	if !plain {
		if coded, err = r.fitsWith(config.CodedEdges, of); err != nil {
			return err
		}
	}
	if r.cfg.Edges = config.PlainEdges; coded {
		r.cfg.Edges = config.CodedEdges
	}
	return nil
}

// sampleEdges estimates the size of coded columns, if the run uses them.
func (r *joined) sampleEdges() {
	if r.cfg.Edges == config.CodedEdges && r.shard != nil && r.codedBits == 0 {
		r.codedBits = graphwork.EstimateCodedBits(r.shard)
	}
}

// fitsWith reports whether all ranks fit in memory with columns stored in this way. Files count, because
// an epoch reads them several times. Collective over the world.
func (r *joined) fitsWith(edges string, of func() (*forecast.Forecast, error)) (bool, error) {
	r.cfg.Edges = edges
	r.sampleEdges()
	f, err := of()
	if err := agree(r.world, err); err != nil {
		return false, err
	}
	here, _, err := r.hostNeed(f)
	if err != nil {
		return false, err
	}
	exceeds := []int64{0}
	if limit := r.memoryLimit(); limit > 0 {
		f.Limit = limit
		if !r.isServer() && r.partEstimate(f, r.rank, r.counts()).Unlimited() > limit {
			exceeds[0] = 1
		}
	} else if here.peak > host.AvailableMemory() {
		exceeds[0] = 1
	}
	err = world.SumInt64s(r.world, exceeds)
	return exceeds[0] == 0, err
}
