package neutronstar

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

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
		{Name: "process", Title: "ranks in one process", Paper: paper, Why: ours, Write: b.process},
		{Name: "links", Title: "hosts with one rank each, by link", Paper: paper, Why: ours, Write: b.links},
		{Name: "hosts", Title: "seconds an epoch by number of hosts",
			Paper: "seconds by number of nodes: - (as above)", Why: ours, Write: b.hosts},
	}
}

func (b *bench) process(t *trials.Sheet) {
	t.Row("graph", "network", "ranks", "handling", "s/epoch", "speed-up", "ghost MB/epoch", "arrays MB of a rank", "setup s", "fetch s")
	for _, c := range b.settings(b.Hosts[0], 0) {
		list := b.costs(t, c)
		for k, x := range list {
			t.Row(c.Graph.Name, c.Model, strconv.Itoa(c.Ranks), handlings[k].name, trials.Number(x.epoch, 4),
				trials.Number(list[0].epoch/x.epoch, 2),
				megabytes(x.rows), megabytes(x.arrays), trials.Number(x.setup, 3), trials.Number(x.setup-list[0].setup, 3))
		}
	}
	explain(t)
}

func (b *bench) links(t *trials.Sheet) {
	t.Row("graph", "network", "hosts", "link", "handling", "s/epoch", "speed-up", "ghost MB/epoch", "interface MB/epoch",
		"peak MB of a rank", "arrays MB", "setup s", "fetch s", "setup MB", "fetch MB")
	uncounted := ""
	for i, rate := range b.rates {
		for _, c := range b.settings(b.Hosts[0], rate) {
			list := b.costs(t, c)
			for k, x := range list {
				t.Row(c.Graph.Name, c.Model, strconv.Itoa(c.Ranks), b.Rates[i], handlings[k].name, trials.Number(x.epoch, 4),
					trials.Number(list[0].epoch/x.epoch, 2),
					megabytes(x.rows), megabytes(x.sent), megabytes(x.resident), megabytes(x.arrays),
					trials.Number(x.setup, 3), trials.Number(x.setup-list[0].setup, 3), megabytes(x.setupBytes),
					megabytes(x.setupBytes-list[0].setupBytes))
				uncounted = cmp.Or(uncounted, x.uncounted)
			}
		}
	}
	if uncounted != "" {
		fmt.Fprintf(t, "interface MB: some trainings were not counted: %s\n", uncounted)
	}
	explain(t)
}

// hosts writes the seconds of an epoch, a column for each number of hosts.
func (b *bench) hosts(t *trials.Sheet) {
	counts := slices.Sorted(slices.Values(b.Hosts))
	t.Row(append([]string{"graph", "network", "link", "handling"}, trials.Columns("%d hosts, s/epoch", counts)...)...)
	for _, c := range b.settings(0, b.rates[0]) {
		rows := make([][]string, len(handlings))
		for k, h := range handlings {
			rows[k] = []string{c.Graph.Name, c.Model, b.Rates[0], h.name}
		}
		for _, n := range counts {
			c.Ranks = n
			for k, x := range b.costs(t, c) {
				rows[k] = append(rows[k], trials.Number(x.epoch, 4))
			}
		}
		for _, cells := range rows {
			t.Row(cells...)
		}
	}
}

// explain writes the meaning of the columns about the time before the first epoch.
func explain(t *trials.Sheet) {
	fmt.Fprintf(t, "setup: before the first epoch, without partitioning; fetch: setup minus that of %s, the one-time cost of the inputs "+
		"of ghosts and, for hybrid on several hosts, of measuring the links\n", handlings[0].name)
}

// megabytes returns bytes as text, "-" for NaN.
func megabytes(bytes float64) string { return trials.Number(bytes/1e6, 2) }
