package dorylus

import (
	"fmt"
	"math"

	"siafu/bench/trials"
)

// table1 writes the paper's graphs and the graphs trained on.
func (b *bench) table1(s *trials.Sheet) {
	for _, g := range b.graphs {
		printed := []any{short(g.vertices), short(g.edges), g.features, g.labels, trials.Number(g.degree, 1)}
		if !g.known {
			printed = []any{"-", "-", "-", "-", "-"}
		}
		m := g.meta
		s.Add(g.name, printed, g.kind(), short(float64(m.Vertices)), short(float64(m.Edges)), m.FeatureDim, m.Classes,
			float64(m.Edges)/float64(m.Vertices))
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
	base := unknown
	for _, row := range table2 {
		each, on := unknown, cpuOnly
		if row.backend == "GPU" {
			on = gpuOnly
		}
		if g := b.find(row.graph); g != nil {
			each = b.spent(b.modelOf(s, g, "gcn"), row.cluster, 1, on)
		}
		if row.first {
			base = each
		}
		s.Add(row.backend, row.graph, row.String(), row.hour(), row.value, each.seconds, each.usd, each.value()/base.value())
	}
}

// table3 writes the clusters, and how many servers siafu's arrays would need.
func (b *bench) table3(s *trials.Sheet) {
	for _, w := range b.works() {
		g := b.find(w.graph)
		t := b.time(s, g, w.model, cpuOnly, nopipe)
		memory := machines[w.cpu.instance].memory
		arrays, servers, device := math.NaN(), math.NaN(), math.NaN()
		if t.run != nil {
			_, vertexRatio := g.ratios()
			arrays = 0
			for _, r := range t.run.Summary.PerRank {
				arrays += float64(r.ArrayBytes)
			}
			arrays = (vertexRatio*arrays + g.bytes()) / (1 << 30)
			servers = float64(int(arrays/memory) + 1)
			if m := b.modelOf(s, g, w.model); m.covers(gpuOnly) {
				device = m.GPU.memory(w.gpu.count) / 1e9
			}
		}
		s.Add(w.model, w.graph, w.cpu.String(), w.gpu.String(), w.cpu.hour(), w.gpu.hour(), memory*float64(w.cpu.count), arrays, servers,
			device, gpus[w.gpu.instance].bytes/1e9)
	}
}

// bytes returns the size of the graph's shards at its published size: offsets, neighbours and
// dense features.
func (g *graphOf) bytes() float64 {
	return 8*g.vertices + 4*g.edges + 4*g.vertices*float64(g.meta.FeatureDim)
}
