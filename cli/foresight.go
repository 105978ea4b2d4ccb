package cli

import (
	"fmt"
	"slices"

	"siafu/cli/commandline"
	"siafu/graph"
	"siafu/graph/partition"
	"siafu/internal/fault"
	"siafu/internal/size"
	"siafu/ranks/config"
	"siafu/ranks/forecast"
	"siafu/ranks/world"
)

// Errors that would end a job in its first minute are reported before submission.

// foresee returns a fault for runs that cannot start: the dataset is missing, --ranks is set,
// or --mem is less than their permanent memory. It reports the number of servers of a small
// job.
func (c *submitCmd) foresee(io commandline.Console, data string, runs []*config.Config) error {
	meta, err := graph.ReadMeta(data)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.Ranks != 0 {
			return fault.New(fault.Usage, "submit", "", "--ranks=%d after --", r.Ranks).
				Then("leave it out: a job has --nodes times --ntasks-per-node ranks, here %d", c.Options.Ranks())
		}
		v, err := r.View(c.Options.Ranks())
		if err != nil {
			return err
		}
		if err := c.foreseeMemory(io, data, meta, r, v); err != nil {
			return err
		}
	}
	v, err := runs[0].View(c.Options.Ranks())
	if err == nil && v.Servers > 0 && c.Options.Ranks() <= fewRanks {
		fmt.Fprintf(io.Err, "siafu: %d tasks: %s, %s, which has no part of the graph; add --servers 0 after -- to train on all of them\n",
			c.Options.Ranks(), counted(v.Ranks, "graph rank"), counted(v.Servers, "server"))
	}
	return err
}

// fewRanks is the maximum number of tasks for which foresee reports that servers take part of
// the job.
const fewRanks = 8

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// foreseeMemory compares the memory of the first node's ranks with --mem. If the shards do not
// exist yet, each counts as an equal part of the graph without ghosts. This underestimates the
// memory.
func (c *submitCmd) foreseeMemory(io commandline.Console, data string, meta *graph.Meta, r *config.Config, v world.View) error {
	has, err := c.Options.Memory()
	if has == 0 || err != nil {
		return err
	}
	f, _, err := forecast.Of(*r, meta, v.Parts, v.Servers, false)
	if err != nil {
		return err
	}
	parts := r.Partitions(v.Parts)
	n := int64(parts)
	reports := slices.Repeat([]partition.RankReport{
		{Vertices: meta.Vertices / n, Edges: meta.Edges / n, FeatureNNZ: meta.FeatureNNZ / n}}, parts)
	place := partition.Place{Data: data, Root: r.PartsDir}
	if m := place.Made(partition.Options{Method: r.Partitioner, Order: r.VertexOrder, Parts: parts}); m != nil &&
		m.Fingerprint == meta.Fingerprint() {
		reports = m.Report.Ranks
	}
	var peak, certain int64
	for rank := range min(c.Options.TasksPerNode, v.Ranks) {
		for _, part := range v.Carried(rank) {
			m := f.GraphRank(part, reports[part/max(v.Stages, 1)])
			peak, certain = size.Sum(peak, m.Peak()), size.Sum(certain, m.Certain())
		}
		peak = size.Sum(peak, forecast.Program)
	}
	said := fmt.Sprintf("the ranks of a node need about %d MB, %d MB of them permanently, but --mem=%s provides %d MB",
		peak/1e6, certain/1e6, c.Options.Mem, has/1e6)
	if certain > has {
		return fault.New(fault.Config, "submit", data, "%s", said).
			Then(`increase --mem or --nodes; "siafu plan" prints the memory needed`)
	}
	if peak > has {
		fmt.Fprintf(io.Err, "siafu: warning: %s\n", said)
	}
	return nil
}
