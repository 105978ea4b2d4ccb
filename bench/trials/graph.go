package trials

import (
	"fmt"
	"os"
	"path/filepath"

	"siafu/graph"
	"siafu/graph/generate"
)

// Graph is a graph to train on.
type Graph struct{ Name, Data string }

// Given returns the graphs of dataset folders, by their own names.
func Given(data []string) (list []Graph, err error) {
	for _, dir := range data {
		meta, err := graph.ReadMeta(dir)
		if err != nil {
			return nil, err
		}
		list = append(list, Graph{meta.Name, dir})
	}
	return list, nil
}

// GivenOr returns the graphs of dataset folders. Without folders it returns synthetic graphs with the
// statistics of the named ones, scaled, which it generates in a work folder if missing.
func GivenOr(data []string, work string, scale float64, likes ...string) (list []Graph, err error) {
	if len(data) > 0 {
		return Given(data)
	}
	for _, like := range likes {
		g, err := Generated(work, generate.Options{Like: like, Name: fmt.Sprintf("%s-%g", like, scale), Scale: scale, Seed: 1})
		if err != nil {
			return nil, err
		}
		list = append(list, g)
	}
	return list, nil
}

// Generated returns the graph with a name in a work folder, and generates it if missing.
func Generated(work string, o generate.Options) (Graph, error) {
	g := Graph{o.Name, filepath.Join(work, o.Name)}
	if _, err := os.Stat(filepath.Join(g.Data, "meta.json")); err == nil {
		return g, nil
	}
	_, err := generate.Write(g.Data, o, false)
	return g, err
}
