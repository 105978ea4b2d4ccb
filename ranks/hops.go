package ranks

import (
	"encoding/json"

	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/ranks/world"
)

// partHops has the counts of the hops of all parts, from the report of a partitioning.
type partHops struct {
	Assignment string // of the shards that have been counted
	Hops       [][]shard.Hop
}

// shareHops gives each graph rank the counts of its hops, if the partitioning has counted them. Rank
// 0 reads them. Collective over the world.
func (r *joined) shareHops() error {
	if r.partitions() == 1 { // no ghosts
		return nil
	}
	var mine partHops
	if r.world.Rank() == 0 {
		mine = r.readHops()
	}
	blob, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	if blob, err = world.BcastBlob(r.world, blob, 0); err != nil {
		return err
	}
	var all partHops
	if err := json.Unmarshal(blob, &all); err != nil {
		return err
	}
	if r.shard != nil && r.ownPartition() < len(all.Hops) && all.Assignment == r.shard.Assignment {
		r.hops = all.Hops[r.ownPartition()]
	}
	return nil
}

// readHops reads the counts of hops. There are none in the report of an older partitioning. An
// unreadable report counts as one without hops, because nothing else of it is used.
func (r *joined) readHops() (p partHops) {
	folder := r.shards
	if folder == "" {
		folder = shard.Folder(r.data, r.partitions())
	}
	m, err := partition.FindIn(folder, r.data, r.partitions())
	if err != nil {
		return p
	}
	p.Assignment = m.Assignment
	for _, one := range m.Report.Ranks {
		p.Hops = append(p.Hops, one.Hops)
	}
	return p
}

// counts returns the counts of the rank's shard.
func (r *joined) counts() partition.RankReport {
	c := partition.CountShard(r.shard)
	c.Hops, c.CodedBits = r.hops, r.codedBits
	return c
}
