package dorylus

import (
	"fmt"
	"slices"
	"strings"

	"siafu/bench/trials"
	"siafu/graph"
	"siafu/graph/generate"
	"siafu/internal/fault"
)

// graphOf is a graph that is trained on.
type graphOf struct {
	trials.Graph
	*paperGraph // that it represents
	known       bool
	meta        *graph.Meta
	scale       float64 // of a synthetic graph; 0: real
}

// kind describes the graph used in place of the paper's.
func (g *graphOf) kind() string {
	switch {
	case g.scale > 0:
		return fmt.Sprintf("synthetic, scale %g", g.scale)
	case g.known:
		return "given"
	}
	return "not the paper's"
}

// ratios returns the edges and the vertices of the paper's graph divided by those of this graph.
func (g *graphOf) ratios() (edges, vertices float64) {
	return g.edges / float64(g.meta.Edges), g.vertices / float64(g.meta.Vertices)
}

// findGraphs lists the graphs to train on, and makes missing synthetic ones.
func (b *bench) findGraphs() error {
	for _, data := range b.Data {
		if err := b.addData(data); err != nil {
			return err
		}
	}
	if len(b.Data) > 0 {
		return nil
	}
	if len(b.Scale) != 1 && len(b.Scale) != len(table1) {
		return fault.New(fault.Usage, op, "", "--scale=%v", b.Scale).Then("give one number, or one for each of the four graphs")
	}
	for k := range table1 {
		p := &table1[k]
		scale := b.Scale[k%len(b.Scale)]
		if scale == 0 {
			scale = p.scale
		}
		made, err := trials.Generated(b.Work, p.synthetic(scale))
		if err != nil {
			return err
		}
		if err := b.add(&graphOf{Graph: made, paperGraph: p, known: true, scale: scale}); err != nil {
			return err
		}
	}
	return nil
}

// synthetic returns the options of the graph at a scale. Its mean degree is limited to 1/70 of
// its vertices, which a scaled Reddit exceeds: in a nearly complete graph, neighbours carry no
// information about a vertex.
func (p *paperGraph) synthetic(scale float64) generate.Options {
	o := generate.Options{Like: p.name, Name: fmt.Sprintf("%s-%g", p.name, scale), Scale: scale, Seed: 1}
	if most := p.vertices * p.vertices * scale / 70; p.edges > most {
		o.Edges = int64(most)
	}
	return o
}

// addData parses NAME=DIR or DIR.
func (b *bench) addData(data string) error {
	name, dir, named := strings.Cut(data, "=")
	if !named {
		dir = data
	}
	list, err := trials.Given([]string{dir})
	if err != nil {
		return err
	}
	g := &graphOf{Graph: list[0], paperGraph: &paperGraph{name: list[0].Name}}
	if named {
		k := slices.IndexFunc(table1, func(p paperGraph) bool { return p.name == name })
		if k < 0 {
			return fault.New(fault.Usage, op, "", "--data=%s", data).
				Then("name one of reddit-small, reddit-large, amazon, friendster, or give the folder alone")
		}
		g.paperGraph, g.known = &table1[k], true
	}
	return b.add(g)
}

// Folders returns the datasets of --data without their names.
func Folders(data []string) []string {
	list := slices.Clone(data)
	for k, d := range list {
		if _, dir, named := strings.Cut(d, "="); named {
			list[k] = dir
		}
	}
	return list
}

func (b *bench) add(g *graphOf) (err error) {
	if g.meta, err = graph.ReadMeta(g.Data); err != nil {
		return err
	}
	if !g.known { // not in the paper: it represents itself
		g.vertices, g.edges = float64(g.meta.Vertices), float64(g.meta.Edges)
		g.degree = g.edges / g.vertices
	}
	b.graphs = append(b.graphs, g)
	return nil
}

// find returns the graph that represents the paper's, or nil.
func (b *bench) find(name string) *graphOf {
	for _, g := range b.graphs {
		if g.name == name {
			return g
		}
	}
	return nil
}

// works returns the rows of tables 3 and 4 with available graphs. A graph that is not in the
// paper gets the clusters of Amazon.
func (b *bench) works() (list []work) {
	for _, w := range table4 {
		if b.find(w.graph) != nil {
			list = append(list, w)
		}
	}
	for _, g := range b.graphs {
		if !g.known {
			list = append(list, work{model: "gcn", graph: g.name, cpu: cluster{"c5n.2xlarge", 8}, gpu: cluster{"p3.2xlarge", 8}})
		}
	}
	return list
}
