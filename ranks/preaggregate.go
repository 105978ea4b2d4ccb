package ranks

import (
	"time"

	"siafu/halo"
	"siafu/ranks/world"
)

// Sums are made unasked where, their price taken off, they save leastSaving of
// the rows between two ranks. A sum is written and gathered once more than a row
// that is sent; an edge costs no more than without sums, but rows leave when
// their sums are there, and nothing overlaps that. In rows of a network with 1
// GB/s, where the vertices of a rank have a few processors:
const (
	leastSaving = 0.05
	sumPrice    = 1. / 4
	edgePrice   = 1. / 64
)

// pays tells whether sums are worth their price.
func pays(s halo.Saving) bool {
	return float64(s.Saved)-sumPrice*float64(s.Sums)-edgePrice*float64(s.Edges) >= leastSaving*float64(s.Rows)
}

// reduce finds the rows that graph ranks can add up before they send them.
// Collective over the graph ranks.
func (r *run) reduce() error {
	if !r.sums() {
		return nil
	}
	began, pays := time.Now(), pays
	if r.cfg.PreAggregate == "on" {
		pays = halo.Any
	}
	var err error
	if r.rows, err = halo.Reduce(r.peers, r.shard, pays, r.packers, r.arena); err != nil {
		return err
	}
	p := r.rows.Plan
	all := []int64{int64(p.Ghosts), int64(r.rows.Rows), int64(p.Sums), int64(len(r.rows.Sums.Cols)), r.rows.Bytes}
	if err := world.SumInt64s(r.peers, all); err != nil {
		return err
	}
	r.voice.log("pre_aggregation rows=%d without=%d sums=%d summed_edges=%d bytes=%d seconds=%.3f",
		all[0], all[1], all[2], all[3], all[4], time.Since(began).Seconds())
	return nil
}

// sums tells whether rows may be added up before they are sent: edges carry
// coefficients, and there is an exchange in every epoch.
func (r *run) sums() bool {
	if r.Graph == 1 || !r.net.Propagates() || r.cfg.Model == "gat" {
		return false
	}
	each := r.net.Layers() > 1 || !r.net.CacheInput
	return r.cfg.PreAggregate == "on" || r.cfg.PreAggregate == "auto" && each
}
