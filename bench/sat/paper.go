package sat

import (
	"slices"
	"strings"
)

// sheet has numbers of the paper: rows named "NETWORK METHOD", with "+" after the methods that
// predict, and columns named by graph.
type sheet struct {
	columns []string
	text    string
}

// test2 is table II: test F1 in percent. A column's number is that of partitions.
var test2 = sheet{[]string{"flickr 4", "reddit 4", "ogbn-arxiv 4", "ogbn-products 8", "flickr 8", "reddit 8", "ogbn-arxiv 8"}, `
gcn LLCG 50.73±0.15 62.09±0.41 69.80±0.21 76.87±0.32 50.53±0.20 61.80±0.38 69.62±0.24
gcn DistDGL 50.90±0.13 87.02±0.23 69.90±0.17 77.52±0.28 50.70±0.18 86.82±0.28 69.70±0.19
gcn BNS-GCN 51.76±0.21 93.76±0.43 55.49±0.17 78.47±0.31 51.56±0.19 96.56±0.39 55.39±0.14
gcn SANCUS 52.17±0.31 93.81±0.36 70.05±0.25 78.95±0.36 52.07±0.29 93.61±0.33 69.85±0.28
gcn DistGNN 51.89±0.21 94.23±0.43 71.54±0.23 77.36±0.42 53.38±0.17 95.03±0.39 71.90±0.19
gcn DistGNN+ 52.73±0.19 95.21±0.44 72.13±0.37 78.97±0.33 53.81±0.24 95.21±0.41 72.03±0.3
gcn DIGEST 52.92±0.32 94.55±0.37 71.90±0.16 78.56±0.29 53.00±0.28 94.35±0.34 71.80±0.23
gcn DIGEST+ 53.45±0.27 95.25±0.35 72.39±0.21 79.43±0.30 52.36±0.18 94.49±0.26 72.32±0.21
gcn PipeGCN 52.19±0.26 96.20±0.38 53.42±0.19 79.23±0.28 52.09±0.24 96.77±0.36 53.32±0.17
gcn PipeGCN+ 53.39±0.19 97.02±0.31 55.50±0.24 80.21±0.34 53.29±0.17 96.92±0.34 53.45±0.15
gat LLCG 48.69±0.32 91.10±0.17 68.84±0.22 76.87±0.32 47.95±0.38 91.03±0.18 68.75±0.29
gat DistDGL 51.50±0.27 92.88±0.15 70.44±0.20 77.72±0.32 51.39±0.31 92.80±0.18 70.32±0.24
gat SANCUS 52.09±0.29 93.46±0.21 66.64±0.37 78.75±0.33 51.96±0.27 93.41±0.23 66.59±0.33
gat DistGNN 52.38±0.25 94.29±0.33 68.08±0.38 78.26±0.26 52.31±0.29 94.20±0.21 67.93±0.31
gat DistGNN+ 53.11±0.22 94.75±0.30 70.03±0.32 79.13±0.29 53.10±0.21 94.69±0.18 68.34±0.30
gat DIGEST 53.25±0.35 94.39±0.18 71.70±0.18 77.06±0.39 53.09±0.15 94.15±0.21 69.14±0.17
gat DIGEST+ 53.65±0.32 95.11±0.35 71.89±0.25 78.57±0.30 53.57±0.23 95.02±0.27 71.77±0.21`}

// memory3 is table III: GB of a GPU's memory, by the number of layers.
var memory3 = sheet{[]string{"flickr", "ogbn-arxiv", "reddit"}, `
2 PipeGCN 0.23 0.26 0.31
2 PipeGCN+ 0.25 0.28 0.34
2 DIGEST 0.18 0.22 0.27
2 DIGEST+ 0.20 0.25 0.30
3 PipeGCN 0.26 0.28 0.35
3 PipeGCN+ 0.28 0.31 0.37
3 DIGEST 0.20 0.24 0.29
3 DIGEST+ 0.23 0.26 0.31
4 PipeGCN 0.29 0.32 0.37
4 PipeGCN+ 0.31 0.34 0.39
4 DIGEST 0.22 0.27 0.32
4 DIGEST+ 0.25 0.30 0.34`}

// test4 is table IV: test F1 in percent; "-": the paper has no memory for it.
var test4 = sheet{[]string{"flickr", "reddit", "ogbn-arxiv", "ogbn-products"}, `
gcn GraphSAGE 49.23±0.21 94.87±0.17 71.03±0.09 76.43±0.21
gcn Cluster-GCN 47.95±0.31 94.68±0.25 70.48±0.15 76.53±0.35
gcn VR-GCN 48.72±0.33 95.23±0.24 - -
gcn VR-GCN+ 49.53±0.26 95.93±0.31 - -
gcn GNNAutoScale 53.52±0.76 95.02±0.41 71.18±0.27 76.65±0.23
gcn GNNAutoScale+ 54.03±0.57 96.03±0.27 71.51±0.22 76.83±0.29
gcnii GraphSAGE 49.29±0.19 95.03±0.15 71.12±0.14 76.49±0.25
gcnii Cluster-GCN 48.95±0.34 94.76±0.22 71.48±0.14 76.62±0.26
gcnii VR-GCN 49.72±0.26 95.76±0.21 - -
gcnii VR-GCN+ 50.53±0.29 96.32±0.28 - -
gcnii GNNAutoScale 54.03±0.45 96.28±0.47 73.03±0.25 77.34±0.21
gcnii GNNAutoScale+ 55.21±0.47 97.03±0.19 73.62±0.25 78.02±0.27`}

// of returns a cell, "-" if the paper has none. The graph's name begins with that of the paper's
// graph; ranks is "" for columns without a number of partitions.
func (s sheet) of(row, graph, ranks string) string {
	k := slices.IndexFunc(s.columns, func(column string) bool {
		name, parts, _ := strings.Cut(column, " ")
		return strings.HasPrefix(graph, name) && parts == ranks
	})
	for line := range strings.Lines(s.text) {
		if numbers, ok := strings.CutPrefix(line, row+" "); ok && k >= 0 {
			return strings.Fields(numbers)[k]
		}
	}
	return "-"
}
