package generate

import "slices"

// preset contains the published size of a graph and the remaining parameters of a synthetic
// graph. Edges are directed, as stored.
type preset struct {
	name              string
	vertices, edges   int64
	features, classes int
	homophily         float64
	noise, strays     float64
	train, val        float64 // fractions of the vertices; the rest is test
	communities       int     // per class; 0 means 1
}

// presets: the first four are from Dorylus (Thorpe et al., OSDI 2021) table 1, which rounds its
// figures. The number of vertices of reddit-small is from Hamilton et al. 2017; Dorylus rounds
// it to 232.9K. The others are from SAT table I (Bai et al., "Staleness-Alleviated Distributed
// GNN Training via Online Dynamic-Embedding Prediction"). The fractions of training and
// validation vertices are from Hamilton et al. for reddit-small, GraphSAINT (Zeng et al., ICLR
// 2020) for flickr and yelp, and OGB (Hu et al. 2020) for the ogbn graphs. Graphs without
// published fractions use the fractions of reddit-small.
//
// These tables do not publish homophily. If it is widely reported for the graph (reddit,
// flickr, ogbn-arxiv, ogbn-products), the preset has this value to one digit. Otherwise it is
// our guess. Friendster has no labels and gets a low homophily, so that a network can learn its
// synthetic labels.
//
// Noise and label noise are chosen so that a GCN comes near its published accuracy: 94.96 % on
// reddit-small, 60.07 on reddit-large and 64.08 on amazon (Dorylus, figure 5), 49.2 on flickr
// (GraphSAINT, table 2), 71.74 on ogbn-arxiv (OGB). On ogbn-products the published accuracies
// are 92.00 on the validation set and 75.64 on the test set. Its split is by sales rank: most
// products with low sales differ from the training data. Here the sixth community of each class
// models these products. It has its own edges and features, and all its vertices are in the
// test set.
//
// yelp is from GraphSAINT (Zeng et al., ICLR 2020) table 1, whose 6,977,410 edges are
// undirected. There, a vertex has any number of 100 labels. Here, each vertex has one class, so
// the accuracies cannot be compared.
var presets = []preset{
	{"reddit-small", 232_965, 114_800_000, 602, 41, 0.8, 1, 0.05, 0.66, 0.1, 0},
	{"reddit-large", 1_100_000, 1_300_000_000, 301, 50, 0.27, 1, 0.38, 0.66, 0.1, 0},
	{"amazon", 9_200_000, 313_900_000, 300, 25, 0.3, 1, 0.33, 0.66, 0.1, 0},
	{"friendster", 65_600_000, 3_600_000_000, 32, 50, 0.3, 1, 0, 0.66, 0.1, 0},
	{"flickr", 89_250, 899_756, 500, 7, 0.3, 1, 0, 0.5, 0.25, 0},
	{"ogbn-arxiv", 169_343, 2_315_598, 128, 40, 0.7, 2.6, 0, 0.54, 0.18, 0},
	{"ogbn-products", 2_449_029, 123_718_280, 100, 47, 0.8, 1, 0.07, 0.08, 0.02, 6},
	{"ogbn-papers100m", 111_059_956, 1_615_685_872, 128, 172, 0.4, 1, 0.3, 0.011, 0.001, 0},
	{"yelp", 716_847, 13_954_820, 300, 100, 0.5, 1, 0, 0.75, 0.1, 0},
}

// Presets returns the valid names for Options.Like.
func Presets() (names []string) {
	for _, p := range presets {
		names = append(names, p.name)
	}
	for _, p := range relationalPresets {
		names = append(names, p.name)
	}
	return names
}

func findPreset(name string) (preset, bool) {
	if p := findRelational(name); p != nil {
		return p.preset, true
	}
	i := slices.IndexFunc(presets, func(p preset) bool { return p.name == name })
	if i < 0 {
		return preset{}, false
	}
	return presets[i], true
}
