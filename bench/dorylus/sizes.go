package dorylus

import (
	"fmt"

	"siafu/bench/trials"
)

// table1 writes the paper's graphs and the graphs trained on.
func (b *bench) table1(s *trials.Sheet) {
	s.Row("graph", "|V| paper", "|E| paper", "# features", "# labels", "avg. degree", "here", "|V|", "|E|",
		"# features", "# labels", "avg. degree")
	for _, g := range b.graphs {
		printed := []string{short(g.vertices), short(g.edges), text(g.features), text(g.labels), trials.Number(g.degree, 1)}
		if !g.known {
			printed = []string{"-", "-", "-", "-", "-"}
		}
		m := g.meta
		s.Row(append(append([]string{g.name}, printed...), g.kind(), short(float64(m.Vertices)), short(float64(m.Edges)),
			text(m.FeatureDim), text(m.Classes),
			trials.Number(float64(m.Edges)/float64(m.Vertices), 1))...)
	}
}

// short formats a count like the paper.
func short(x float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "B"}, {1e6, "M"}, {1e3, "K"}} {
		if x >= unit.size {
			return fmt.Sprintf("%.1f%s", x/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.0f", x)
}

func (c cluster) String() string { return fmt.Sprintf("%s (%d)", c.instance, c.count) }

func (c cluster) hour() float64 { return c.dollars(3600) }

// table2 writes the relative value of instance types.
func (b *bench) table2(s *trials.Sheet) {
	s.Row("backend", "graph", "instance type", "$/h", "relative value, paper", "s/epoch, modelled",
		"$/epoch, modelled", "relative value, modelled")
	base := unknown
	for _, row := range table2 {
		cells := []string{row.backend, row.graph, row.String(), trials.Number(row.hour(), 3), trials.Number(row.value, 2)}
		g := b.find(row.graph)
		each, on := unknown, cpuOnly
		if row.backend == "GPU" {
			on = gpuOnly
		}
		if g != nil {
			each = b.spent(b.modelOf(s, g, "gcn"), row.cluster, 1, on)
		}
		if row.first {
			base = each
		}
		s.Row(append(cells, trials.Number(each.seconds, 4), number(each.usd), trials.Number(each.value()/base.value(), 2))...)
	}
	b.reasons(s)
}

// table3 writes the clusters, and how many servers siafu's arrays would need.
func (b *bench) table3(s *trials.Sheet) {
	s.Row("model", "graph", "CPU cluster", "GPU cluster", "CPU $/h", "GPU $/h", "GiB of the CPU cluster",
		"siafu's arrays and shards GiB, scaled", "servers that these need, scaled", "GB of a GPU, modelled", "of")
	for _, w := range b.works() {
		g := b.find(w.graph)
		t := b.time(s, g, w.model, cpuOnly, nopipe)
		memory := machines[w.cpu.instance].memory
		need, servers, device := "-", "-", "-"
		if t.run != nil {
			_, vertexRatio := g.ratios()
			arrays := 0.0
			for _, r := range t.run.Summary.PerRank {
				arrays += float64(r.ArrayBytes)
			}
			arrays = (vertexRatio*arrays + g.bytes()) / (1 << 30)
			if m := b.modelOf(s, g, w.model); m.covers(gpuOnly) {
				device = trials.Number(m.GPU.memory(w.gpu.count)/1e9, 1)
			}
			need, servers = trials.Number(arrays, 1), trials.Number(float64(int(arrays/memory)+1), 0)
		}
		s.Row(w.model, w.graph, w.cpu.String(), w.gpu.String(), trials.Number(w.cpu.hour(), 3), trials.Number(w.gpu.hour(), 2),
			trials.Number(memory*float64(w.cpu.count), 0), need, servers, device, trials.Number(gpus[w.gpu.instance].bytes/1e9, 0))
	}
	b.reasons(s)
}

// bytes returns the size of the graph's shards at its published size: offsets, neighbours and
// dense features.
func (g *graphOf) bytes() float64 {
	return 8*g.vertices + 4*g.edges + 4*g.vertices*float64(g.meta.FeatureDim)
}

// number formats dollars and other numbers of any size.
func number(x float64) string {
	if s := trials.Number(x, 0); s == "-" || s == "never" {
		return s
	}
	return fmt.Sprintf("%.3g", x)
}
