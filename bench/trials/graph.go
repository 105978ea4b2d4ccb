package trials

import (
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

// Generated returns the graph with a name in a work folder, and generates it if missing.
func Generated(work string, o generate.Options) (Graph, error) {
	g := Graph{o.Name, filepath.Join(work, o.Name)}
	if _, err := os.Stat(filepath.Join(g.Data, "meta.json")); err == nil {
		return g, nil
	}
	_, err := generate.Write(g.Data, o, false)
	return g, err
}
