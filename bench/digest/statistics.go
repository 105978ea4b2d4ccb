package digest

import (
	"strings"

	"siafu/bench/trials"
	"siafu/graph"
)

// statistics has nodes, edges, features and classes of the graphs (SAT, table I, which has the
// graphs of DIGEST's table 3).
var statistics = map[string][4]string{
	"flickr":        {"89,250", "899,756", "500", "7"},
	"reddit":        {"232,965", "23,213,838", "602", "41"},
	"ogbn-arxiv":    {"169,343", "2,315,598", "128", "40"},
	"ogbn-products": {"2,449,029", "123,718,280", "100", "47"},
}

// StatisticsColumns has the columns of WriteStatistics.
var StatisticsColumns = []string{"graph", "nodes", "paper", "edges", "paper", "features", "paper", "classes", "paper"}

// WriteStatistics writes a table of the graphs here, beside the published graphs whose names are
// prefixes of theirs.
func WriteStatistics(t *trials.Sheet, graphs []trials.Graph) {
	for _, g := range graphs {
		meta, err := graph.ReadMeta(g.Data)
		t.Fail(err)
		if err != nil {
			return
		}
		paper := [4]string{"-", "-", "-", "-"}
		for name, numbers := range statistics {
			if strings.HasPrefix(g.Name, name) {
				paper = numbers
			}
		}
		t.Add(g.Name, meta.Vertices, paper[0], meta.Edges, paper[1], meta.FeatureDim, paper[2], meta.Classes, paper[3])
	}
}
