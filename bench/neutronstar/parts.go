package neutronstar

import (
	"slices"

	"siafu/bench/trials"
)

// paper has what the abstract and the authors' repository (github.com/iDC-NEU/NeutronStarLite)
// publish as text.
const paper = "hybrid is 1.81 to 14.25 x as fast as DistDGL and ROC on 16 nodes (abstract). Seconds an epoch of DepCache, DepComm and " +
	"hybrid: - (the abstract has none, and the authors' repository has them only as a picture)"

// ours describes the difference from the paper.
const ours = "DepComm, DepCache and hybrid are --recompute-ghosts none, all and auto. auto chooses for all ghosts of a layer together. " +
	"GAT computes the rows of its first layer only"

func (b *bench) parts() []trials.Part {
	return []trials.Part{
		{Name: "process", Title: "ranks in one process", Paper: paper, Why: ours, Write: func(t *trials.Sheet) {
			b.write(t, "graph, network, ranks, handling, s/epoch, speed-up", []string{""},
				"ghost MB/epoch|%.2f", "arrays MB of a rank|%.2f", "setup s|%.3f", "fetch s|%.3f")
		}},
		{Name: "links", Title: "hosts with one rank each, by link", Paper: paper, Why: ours, Write: func(t *trials.Sheet) {
			b.write(t, "graph, network, hosts, link, handling, s/epoch, speed-up", b.Rates, "ghost MB/epoch|%.2f",
				"interface MB/epoch|%.2f", "peak MB of a rank|%.2f", "arrays MB|%.2f", "setup s|%.3f",
				"fetch s|%.3f", "setup MB|%.2f", "fetch MB|%.2f")
		}},
		{Name: "hosts", Title: "seconds an epoch by number of hosts",
			Paper: "seconds by number of nodes: - (as above)", Why: ours, Write: b.hosts},
	}
}

// write writes a table of costs of the handlings over links.
func (b *bench) write(t *trials.Sheet, columns string, rates []string, more ...string) {
	b.study.Write(t, trials.Comparison{Columns: columns, Settings: b.study.Settings(b.Models, b.Hosts[:1], rates...), Systems: handlings,
		Timed: true, More: more,
		Cells: func(r *trials.Row) (cells []any) {
			for _, column := range more {
				if of := fetches[column]; of != nil {
					cells = append(cells, of(r.Turns)-of(r.First.Turns))
				} else {
					cells = append(cells, costs[column](r.Turns))
				}
			}
			for _, one := range r.Turns {
				if one.Traffic != nil && one.Traffic.Missing != "" {
					t.Note("interface MB: some trainings were not counted: " + one.Traffic.Missing)
				}
			}
			return cells
		}})
	t.Note("setup: before the first epoch, without partitioning; fetch: setup minus that of " + handlings[0].Name + ", the one-time " +
		"cost of the inputs of ghosts and, for hybrid on several hosts, of measuring the links")
}

// hosts writes the seconds of an epoch, a column for each number of hosts.
func (b *bench) hosts(t *trials.Sheet) {
	counts := slices.Sorted(slices.Values(b.Hosts))
	b.study.Write(t, trials.Comparison{Columns: "graph, network, link, handling", Systems: handlings,
		Settings: b.study.Settings(b.Models, counts[:1], b.Rates[0]), More: trials.Columns("%d hosts, s/epoch|%%.4f", counts),
		Cells: func(r *trials.Row) (cells []any) {
			for _, n := range counts {
				c := r.Setting
				c.Ranks = n
				cells = append(cells, trials.PerEpoch(r.At(c), trials.Seconds))
			}
			return cells
		}})
}
