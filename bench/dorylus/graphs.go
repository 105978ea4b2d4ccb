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
	*paperGraph // that it stands for
	known       bool
	meta        *graph.Meta
	scale       float64 // of a synthetic graph; 0: real
}

// kind says what stands for the paper's graph.
func (g *graphOf) kind() string {
	switch {
	case g.scale > 0:
		return fmt.Sprintf("look-alike, scale %g", g.scale)
	case g.known:
		return "given"
	}
	return "not the paper's"
}

// larger is how many times as many edges, and vertices, the paper's graph has.
func (g *graphOf) larger() (edges, vertices float64) {
	return g.edges / float64(g.meta.Edges), g.vertices / float64(g.meta.Vertices)
}

// findGraphs names what is trained on, and makes missing synthetic graphs.
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

// synthetic is the graph at a scale. Its mean degree is at most a 70th of its vertices,
// which Reddit's are not when scaled down: in a graph nearly all of whose pairs are edges
// neighbours say nothing of a vertex.
func (p *paperGraph) synthetic(scale float64) generate.Options {
	o := generate.Options{Like: p.name, Name: fmt.Sprintf("%s-%g", p.name, scale), Scale: scale, Seed: 1}
	if most := p.vertices * p.vertices * scale / 70; p.edges > most {
		o.Edges = int64(most)
	}
	return o
}

// addData takes NAME=DIR or DIR.
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
			return fault.New(fault.Usage, op, "", "--data=%s", data).Then("name one of reddit-small, reddit-large, amazon, friendster, or give the folder alone")
		}
		g.paperGraph, g.known = &table1[k], true
	}
	return b.add(g)
}

// Folders are the datasets of --data without their names.
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
	if !g.known { // it stands for itself
		g.vertices, g.edges = float64(g.meta.Vertices), float64(g.meta.Edges)
		g.degree = g.edges / g.vertices
	}
	b.graphs = append(b.graphs, g)
	return nil
}

// find is the graph that stands for the paper's, nil where there is none.
func (b *bench) find(name string) *graphOf {
	for _, g := range b.graphs {
		if g.name == name {
			return g
		}
	}
	return nil
}

// works are the rows of tables 3 and 4 whose graphs there are. A graph that the paper
// has not gets the clusters of Amazon.
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
