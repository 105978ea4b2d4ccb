package engine

import (
	"fmt"
	"time"

	"siafu/halo"
	"siafu/ranks/world"
)

// autoTerms has the costs for automatic pre-aggregation. A sum is written and gathered once more
// than a sent row. An edge costs the same as without sums, but its work precedes the sending of rows
// and cannot overlap with it. Costs are in rows of a network with 1 GB/s, on a rank with a few
// processors.
var autoTerms = halo.SumCosts{MinSaving: 0.05, Sum: 1. / 4, Edge: 1. / 64}

// reduce finds the rows that graph ranks can sum before they send them. It returns nil if each
// ghost's row is sent. Collective over the graph ranks.
func (e *Engine) reduce() (*halo.Reduction, error) {
	if !e.preAggregates() {
		return nil, nil
	}
	began, terms := time.Now(), autoTerms
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

// preAggregates reports whether rows may be summed before they are sent: edges have
// coefficients, every epoch has an exchange, and rows are neither predicted nor sent before their dropout.
// Rows of a relational graph have columns in several orders.
func (e *Engine) preAggregates() bool {
	if e.Config.Ghosts().Samples() || e.Config.Predicts() || e.Network.WholeRows || e.Peers.Size() == 1 ||
		!e.Network.Adds() || e.Shard.Weighted || e.Shard.Relations != nil {
		return false
	}
	each := e.network().Exchanges() && !e.Config.Alone()
	return e.Config.PreAggregate == "on" || e.Config.PreAggregate == "auto" && each
}
