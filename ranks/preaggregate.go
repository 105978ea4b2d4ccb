package ranks

import (
	"time"

	"siafu/halo"
	"siafu/ranks/config"
	"siafu/ranks/world"
)

// unasked are the terms on which rows are added up without being asked to. A sum
// is written and gathered once more than a row that is sent; an edge costs no
// more than without sums, but rows leave when their sums are there, and nothing
// overlaps that. Prices are in rows of a network with 1 GB/s, where a rank has a
// few processors.
func unasked() halo.Terms { return halo.Terms{Least: 0.05, Sum: 1. / 4, Edge: 1. / 64} }

// reduce finds the rows that graph ranks can add up before they send them.
// Collective over the graph ranks.
func (r *run) reduce() error {
	if !r.sums() {
		return nil
	}
	began, terms := time.Now(), unasked()
	if r.cfg.PreAggregate == "on" {
		terms = halo.Terms{}
	}
	var err error
	if r.rows, err = halo.Reduce(r.peers, r.shard, terms, r.packers, r.arena); err != nil {
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
	each := (r.net.Layers() > 1 || !r.net.CacheInput) && r.cfg.Refresh != config.Never
	return r.cfg.PreAggregate == "on" || r.cfg.PreAggregate == "auto" && each
}
