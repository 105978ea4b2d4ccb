package engine

import (
	"fmt"
	"time"

	"siafu/halo"
	"siafu/ranks/world"
)

// autoTerms are the terms on which rows are added up without being asked to. A sum
// is written and gathered once more than a row that is sent; an edge costs no
// more than without sums, but rows leave when their sums are there, and nothing
// overlaps that. Prices are in rows of a network with 1 GB/s, where a rank has a
// few processors.
func autoTerms() halo.SumCosts { return halo.SumCosts{MinSaving: 0.05, Sum: 1. / 4, Edge: 1. / 64} }

// reduce finds the rows that graph ranks can add up before they send them. It
// returns nil where each ghost's row is sent. Collective over the graph ranks.
func (e *Engine) reduce() (*halo.Reduction, error) {
	if !e.preAggregates() {
		return nil, nil
	}
	began, terms := time.Now(), autoTerms()
	if e.Config.PreAggregate == "on" {
		terms = halo.SumCosts{}
	}
	rows, err := halo.Reduce(e.Peers, e.Shard, terms, e.packers, e.Arena)
	if err != nil {
		return nil, err
	}
	p := rows.Plan
	all := []int64{int64(p.Ghosts), int64(rows.Rows), int64(p.Sums), int64(len(rows.Sums.Cols)), rows.Bytes}
	if err := world.SumInt64s(e.Peers, all); err != nil {
		return nil, err
	}
	e.Reporter.Note(fmt.Sprintf("pre_aggregation rows=%d without=%d sums=%d summed_edges=%d bytes=%d seconds=%.3f\n",
		all[0], all[1], all[2], all[3], all[4], time.Since(began).Seconds()))
	return rows, nil
}

// preAggregates reports whether rows may be added up before they are sent: edges carry
// coefficients, and there is an exchange in every epoch.
func (e *Engine) preAggregates() bool {
	if e.Config.Ghosts().Samples() || e.Peers.Size() == 1 || !e.Network.Adds() || e.Shard.Weighted {
		return false
	}
	each := e.network().Exchanges() && !e.Config.Alone()
	return e.Config.PreAggregate == "on" || e.Config.PreAggregate == "auto" && each
}
