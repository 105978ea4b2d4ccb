package generate

import "slices"

// preset is the published size of a graph. Edges are directed, as stored.
type preset struct {
	name              string
	vertices, edges   int64
	features, classes int
	homophily         float64
}

// presets: the first four from Dorylus (Thorpe et al., OSDI 2021) table 1,
// whose figures are rounded (reddit-small's vertices are those of Hamilton et
// al. 2017, which it rounds to 232.9K); the others from SAT table I (Bai et
// al., "Staleness-Alleviated Distributed GNN Training via Online Dynamic-
// Embedding Prediction").
//
// Those tables do not publish homophily. Where it is widely reported for the
// graph (reddit, flickr, ogbn-arxiv, ogbn-products) it is that to one digit;
// elsewhere it is a guess of ours, and Friendster, which has no labels of its
// own, gets a weak one so that there is something to learn.
//
// yelp is from GraphSAINT (Zeng et al., ICLR 2020) table 1, whose 6,977,410 edges have
// no direction. Its vertices have any number of its 100 labels there; here each has
// one class, so that accuracies of the two have nothing to do with each other.
var presets = []preset{
	{"reddit-small", 232_965, 114_800_000, 602, 41, 0.8},
	{"reddit-large", 1_100_000, 1_300_000_000, 301, 50, 0.7},
	{"amazon", 9_200_000, 313_900_000, 300, 25, 0.6},
	{"friendster", 65_600_000, 3_600_000_000, 32, 50, 0.3},
	{"flickr", 89_250, 899_756, 500, 7, 0.3},
	{"ogbn-arxiv", 169_343, 2_315_598, 128, 40, 0.7},
	{"ogbn-products", 2_449_029, 123_718_280, 100, 47, 0.8},
	{"ogbn-papers100m", 111_059_956, 1_615_685_872, 128, 172, 0.6},
	{"yelp", 716_847, 13_954_820, 300, 100, 0.5},
}

// Presets are the names that Options.Like knows.
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
