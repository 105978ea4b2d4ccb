package generate

import "slices"

// preset is the published size of a graph, and what a synthetic graph needs beside it. Edges
// are directed, as stored.
type preset struct {
	name              string
	vertices, edges   int64
	features, classes int
	homophily         float64
	noise, strays     float64
	train, val        float64 // shares of the vertices; the rest is test
	communities       int     // of each class; 0 for one
}

// presets: the first four from Dorylus (Thorpe et al., OSDI 2021) table 1,
// whose figures are rounded (reddit-small's vertices are those of Hamilton et
// al. 2017, which it rounds to 232.9K); the others from SAT table I (Bai et
// al., "Staleness-Alleviated Distributed GNN Training via Online Dynamic-
// Embedding Prediction"). Shares of training and validation vertices are those of
// Hamilton et al. for reddit-small, of GraphSAINT (Zeng et al., ICLR 2020) for flickr and
// yelp, of OGB (Hu et al. 2020) for its own; where none are published, as reddit-small's.
//
// Those tables do not publish homophily. Where it is widely reported for the
// graph (reddit, flickr, ogbn-arxiv, ogbn-products) it is that to one digit;
// elsewhere it is a guess of ours, and Friendster, which has no labels of its
// own, gets a weak one so that there is something to learn.
//
// Noise and label noise are chosen so that a GCN comes near the accuracy published for
// it: 94.96 % on reddit-small, 60.07 on reddit-large and 64.08 on amazon (Dorylus,
// figure 5), 49.2 on flickr (GraphSAINT, table 2), 71.74 on ogbn-arxiv (OGB). The 92.00 on
// ogbn-products' validation set and 75.64 on its test set are those of a split by sales
// rank: most of what sells worse is unlike what a network has learnt from. Here the
// sixth community of each class stands for that, with edges and features of its own,
// and of which no vertex is in the other sets.
//
// yelp is from GraphSAINT (Zeng et al., ICLR 2020) table 1, whose 6,977,410 edges have
// no direction. Its vertices have any number of its 100 labels there; here each has
// one class, so that accuracies of the two have nothing to do with each other.
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

// Presets returns the names that Options.Like knows.
func Presets() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.name
	}
	return names
}

func findPreset(name string) (preset, bool) {
	i := slices.IndexFunc(presets, func(p preset) bool { return p.name == name })
	if i < 0 {
		return preset{}, false
	}
	return presets[i], true
}
