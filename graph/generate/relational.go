package generate

import (
	"fmt"
	"math"
	"slices"

	"siafu/graph"
	"siafu/internal/elementary"
	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/size"
)

// relationalPreset contains the published sizes of a relational graph. The vertices of its first kind have
// features and labels; the embedded preset describes them.
type relationalPreset struct {
	preset
	labelled  float64 // fraction of the vertices of the first kind; train and val are fractions of these
	kinds     []graph.VertexKind
	relations []relationPreset
}

// relationPreset describes a relation. from and to are indices of kinds.
type relationPreset struct {
	name     string
	from, to int
	edges    int64
	affinity float64 // fraction of the edges that are sampled within a class
	// Skews of the out-degrees and of the in-degrees, and the largest expected out-degree.
	fromSkew, toSkew, most float64
}

// relationalPresets: sizes and splits are from OGB (Hu et al. 2020) and OGB-LSC (Hu et al. 2021). Skews and affinities
// are our guesses. Feature noise is chosen so that a classifier that knows the centroids has the published accuracy of
// networks without edges (0.27 on ogbn-mag, 0.52 on mag240m). Label noise limits all networks to 0.5 and 0.71, near
// the published accuracies of relational networks.
var relationalPresets = []relationalPreset{
	{preset: preset{name: "ogbn-mag", vertices: 736_389, edges: 21_111_007, features: 128, classes: 349, noise: 0.46, strays: 0.5,
		train: 0.855, val: 0.088}, labelled: 1,
		kinds: []graph.VertexKind{{Name: "paper", Vertices: 736_389}, {Name: "author", Vertices: 1_134_649},
			{Name: "institution", Vertices: 8_740}, {Name: "field_of_study", Vertices: 59_965}},
		relations: []relationPreset{
			{"affiliated_with", 1, 2, 1_043_998, 0.3, 0.3, 0.75, 30},
			{"writes", 1, 0, 7_145_660, 0.4, 0.55, 0.3, 1000},
			{"cites", 0, 0, 5_416_271, 0.35, 0.4, 0.6, 300},
			{"has_topic", 0, 3, 7_505_078, 0.15, 0.1, 0.75, 40},
		}},
	{preset: preset{name: "mag240m", vertices: 121_751_666, edges: 1_728_364_232, features: 768, classes: 153, noise: 0.42, strays: 0.29,
		train: 0.796, val: 0.099}, labelled: 0.011484,
		kinds: []graph.VertexKind{{Name: "paper", Vertices: 121_751_666}, {Name: "author", Vertices: 122_383_112},
			{Name: "institution", Vertices: 25_721}},
		relations: []relationPreset{
			{"affiliated_with", 1, 2, 44_592_586, 0.2, 0.3, 0.75, 30},
			{"writes", 1, 0, 386_022_720, 0.4, 0.55, 0.3, 1000},
			{"cites", 0, 0, 1_297_748_926, 0.4, 0.4, 0.6, 300},
		}},
}

func findRelational(name string) *relationalPreset {
	i := slices.IndexFunc(relationalPresets, func(p relationalPreset) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return &relationalPresets[i]
}

// maxIDFeatures is the default maximum number of vertices of a kind that get one-hot ids as features.
const maxIDFeatures = 1 << 16

// blockVertices is the minimum average number of vertices in a block, except for the first kind. With fewer,
// the hubs of a block run out of partners.
const blockVertices = 32

// content returns the dataset. Vertices of each kind are in blocks. A vertex in block b has the classes b, b +
// blocks, … Edges within a class connect vertices that have the class.
func (p *relationalPreset) content(asked Options) (*graph.Content, error) {
	if asked.Vertices != 0 || asked.Edges != 0 || asked.EdgeFeatures != 0 || asked.Communities != 0 || asked.Skew != 0 ||
		asked.Task != "" || asked.Labels != 0 || asked.Directed {
		return nil, fault.New(fault.Usage, op, "", "--like %s is relational", p.name).
			Then("omit --vertices, --edges, --edge-features, --communities, --skew, --task, --labels and --directed; use --scale")
	}
	o, err := asked.withPreset()
	if err != nil {
		return nil, err
	}
	affinity := o.Homophily
	o.fill()
	if err := o.check(); err != nil {
		return nil, err
	}
	of, kinds, edges := &graph.Relations{}, []relationEnd(nil), relatedEdges(nil)
	for k, kind := range p.kinds {
		kind.Vertices = max(int64(math.Round(float64(kind.Vertices)*o.Scale)), 2)
		set := planted{blocks: uint64(o.Classes), vertices: uint64(kind.Vertices),
			ids: newShuffle(uint64(kind.Vertices), newStream(o.Seed, purposeKinds+uint64(k)))}
		if k > 0 {
			set.blocks = min(max(set.vertices/blockVertices, 1), set.blocks)
		}
		of.Kinds, kinds = append(of.Kinds, kind), append(kinds, relationEnd{planted: set, first: uint64(of.First(k))})
	}
	n := of.First(len(of.Kinds))
	if err := host.RequireMemory(op, "", size.Product(n, 4+1+8), "set a smaller --scale"); err != nil {
		return nil, err
	}
	for i, x := range p.relations {
		if affinity != 0 {
			x.affinity = max(affinity, 0)
		}
		x.edges = int64(math.Round(float64(x.edges) * o.Scale))
		s := relationSampler{from: kinds[x.from], to: kinds[x.to], loops: x.from == x.to, classes: uint64(o.Classes),
			random: newStream(o.Seed, purposeRelations+uint64(i))}
		if err := s.fit(x); err != nil {
			return nil, err
		}
		edges = append(edges, s)
		of.Relations = append(of.Relations, graph.Relation{Name: x.name, From: x.from, To: x.to, Inverse: -1})
	}
	for i := range p.relations {
		of.AddReverse(i)
	}
	c := &graph.Content{
		Name: o.Name, Synthetic: true, Vertices: n, Relations: of, Edges: of.WithReverse(edges.each), EdgeMemory: int64(o.Memory) << 20,
		Labels: labels(&kinds[0].planted, o), Classes: o.Classes, Split: split(&kinds[0].planted, o), IDs: of.LocalIDs(),
	}
	random := newStream(o.Seed, purposeLabelled)
	for v := range c.Labels {
		if unit(random.at(uint64(v))) >= p.labelled {
			c.Labels[v], c.Split[v] = graph.Unlabelled, graph.SplitNone
		}
	}
	others := int(n) - len(c.Labels)
	c.Labels = append(c.Labels, slices.Repeat([]int32{graph.Unlabelled}, others)...)
	c.Split = append(c.Split, make([]uint8, others)...)
	features := make([]graph.Features, len(of.Kinds))
	features[0] = graph.Features{Rows: int(o.Vertices), Dim: o.Features, NonZeros: paperFeatures(&kinds[0].planted, o)}
	c.Features = of.JoinFeatures(features, o.IDFeatures, false)
	c.Source = fmt.Sprintf("generate: synthetic graph like %s, scale %g: noise %g, strays %g, homophily %.3g (0: the preset's), seed %d",
		o.Like, o.Scale, o.Noise, o.Strays, affinity, o.Seed)
	return c, nil
}

// paperFeatures returns the features of the vertices of the first kind: the centroid of the class plus noise.
func paperFeatures(set *planted, o Options) func(v int, yield func(col uint32, x float32)) {
	m := newMixture(o.Noise, o.Features, int(set.blocks), newStream(o.Seed, purposeCentroids), newStream(o.Seed, purposeNoise))
	row := make([]float32, m.dim)
	return func(v int, yield func(col uint32, x float32)) {
		m.draw(row, int(set.block(uint64(v))), uint64(v*m.dim))
		for j, x := range row {
			if x != 0 {
				yield(uint32(j), x)
			}
		}
	}
}

// relatedEdges samples the edges of a relational graph.
type relatedEdges []relationSampler

// relationEnd is a kind of vertices as one end of a relation.
type relationEnd struct {
	planted
	first uint64 // vertex of the kind
	all   *ranks // of the samples outside of classes, among all slots of the kind
}

// relationSampler samples the edges of a relation.
type relationSampler struct {
	from, to      relationEnd
	loops         bool // both ends are of one kind
	classes       uint64
	random        stream
	inside, draws uint64 // the samples 0..inside-1 are within a class
}

// setDegrees sets the ranks for a number of edges, and returns the probabilities within a block and among all slots.
func (e *relationEnd) setDegrees(edges, skew, most float64) (inside, outside []bin) {
	mean := edges / float64(e.vertices)
	most = max(most, 2*mean)
	e.ranks = newRanks(int64((e.vertices+e.blocks-1)/e.blocks), skew, mean, most)
	e.all = newRanks(int64(e.vertices), skew, mean, most)
	return e.ranks.bins(), e.all.bins()
}

// fit computes the number of samples of a relation.
//
// The edges of a class connect a pair of blocks; the classes have lcm(blocks) different pairs, at most one each.
// Samples outside of classes connect any vertices. Their hubs are those of the whole kind, and have the largest
// degrees. That the few pairs of vertices with both kinds of samples count twice here makes a graph with fewer
// edges than requested, by 2 % at most if a tenth of all pairs are edges.
func (s *relationSampler) fit(x relationPreset) error {
	edges := float64(x.edges)
	from, allFrom := s.from.setDegrees(edges, x.fromSkew, x.most)
	to, allTo := s.to.setDegrees(edges, x.toSkew, edges/x.most)
	a, b := s.from.blocks, s.to.blocks
	cells := float64(min(s.classes, a/gcd(a, b)*b))
	draws, ok := drawsFor(edges, func(m float64) float64 {
		return float64(cells*pairs(from, to, m*x.affinity/cells, s.loops)) + pairs(allFrom, allTo, m*(1-x.affinity), s.loops)
	})
	if !ok {
		return config("%d edges of %s cannot be sampled between %d and %d vertices", x.edges, x.name, s.from.vertices, s.to.vertices).
			Then("set a larger --scale, fewer --classes or a smaller --homophily")
	}
	s.draws, s.inside = draws, uint64(math.Round(float64(draws)*x.affinity))
	return nil
}

func gcd(a, b uint64) uint64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// sample appends the edges of samples to pairs. It implements sampler.
func (s *relationSampler) sample(pairs []uint32, from, to uint64) []uint32 {
	for i := from; i < to; i++ {
		x, y := s.random.at(2*i), s.random.at(2*i+1)
		var a, b uint64
		if i < s.inside {
			class := elementary.Mix(x^y) % s.classes
			a, b = s.from.slot(class%s.from.blocks, x), s.to.slot(class%s.to.blocks, y)
		} else {
			a, b = uint64(s.from.all.at(x)), uint64(s.to.all.at(y))
		}
		if !s.loops || a != b {
			pairs = append(pairs, uint32(s.from.first+s.from.ids.at(a)), uint32(s.to.first+s.to.ids.at(b)))
		}
	}
	return pairs
}

// each is graph.RelatedSource.EachRelation.
func (e relatedEdges) each(yield func(u, v uint32, relation uint16) error) error {
	for r := range e {
		s := &e[r]
		err := inChunks(s.draws, func(u, v uint32) error { return yield(u, v, uint16(r)) }, func() sampler { return s.sample })
		if err != nil {
			return err
		}
	}
	return nil
}
