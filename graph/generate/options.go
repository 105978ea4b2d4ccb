package generate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
)

const op = "generate"

// Options are the flags of "siafu generate". A zero field takes the value of the preset Like,
// else a default. For Homophily, Skew, Noise and Strays a negative value means zero.
//
// Skew is the exponent s of a vertex's weight (rank+r)^-s, 0 <= s < 1. The density of degrees d
// falls like d^-(1+1/s). Noise is the standard deviation of a feature row's noise along any
// direction, divided by half the distance between two centroids. With noise 1, a linear
// classifier of two classes errs on 16 % of the vertices. Strays is the fraction of vertices
// with label noise. It limits the accuracy on graphs with many edges, where sums over
// neighbours average out the feature noise.
type Options struct {
	Like          string  `help:"Published graph whose statistics the synthetic graph has. Values: reddit-small, reddit-large, amazon, friendster, flickr, ogbn-arxiv, ogbn-products, ogbn-papers100m, yelp; relational: ogbn-mag, mag240m."`
	Scale         float64 `default:"1" help:"Factor for the numbers of vertices and edges."`
	Name          string  `help:"Name of the dataset. Empty: the name in --like followed by -like, else the name of its folder."`
	Vertices      int64   `help:"Number of vertices; required without --like."`
	Edges         int64   `help:"Number of directed edges; required without --like."` // distinct, as stored
	Features      int     `help:"Number of features of a vertex; 64 without --like."`
	FeatureFormat string  `name:"feature-format" default:"float32" enum:"float32,bf16" help:"Number format of the features of vertices: float32 or bf16."`
	EdgeFeatures  int     `name:"edge-features" help:"Number of features of an edge; 0: none. They encode whether both ends have the same class, with noise --noise."`
	Classes       int     `help:"Number of classes; 8 without --like."`
	Homophily     float64 `help:"Fraction of edges within a class. 0 selects 0.6; a negative value means 0."`
	Skew          float64 `help:"Skew of the degree distribution, 0 to 1. 0 selects 0.6; a negative value means 0."`
	Noise         float64 `help:"Feature noise, relative to the distance between classes. 0: the value of --like, else 1; negative: none."`
	Strays        float64 `help:"Fraction of vertices with label noise. Edges and features of such a vertex follow a class other than its label. 0: the value of --like, else none; negative: none."`
	Communities   int     `help:"Communities of each class, with their own edges and features. The last of several communities is in the test set only. 0: the value of --like, else 1."`
	Task          string  `enum:",multiclass,multilabel,regression" default:"" help:"Task of the labels: multiclass, multilabel or regression. multilabel: labels depend on the class; regression: targets are the values of the class plus noise. Empty: multiclass."`
	Labels        int     `help:"Labels (multilabel) or numeric columns (regression) of a vertex. 0: 8 labels or 1 column."`
	Directed      bool    `help:"Store each edge in one direction only."`
	IDFeatures    int64   `name:"id-features" help:"Relational graphs: maximum number of vertices of a kind without features that get one-hot ids as features. Vertices of larger kinds get a constant feature. 0 selects 65536; a negative value means 0."`
	Seed          uint64  `default:"1" help:"Random seed. Equal seeds generate equal graphs."`
	Memory        int     `default:"2048" help:"Memory for edges during sorting, in MiB. Larger graphs are sorted in parts; all edges are generated again for each part."`

	flips      float64 // Strays, for tasks in which label noise does not change the class
	Train, Val float64 `kong:"-"` // fractions of the vertices, the rest is test; zero: the preset's, else 0.6 and 0.2
}

// resolve applies preset and defaults and checks the result. fitted is the original homophily
// if resolve reduced it, else 0.
func (o Options) resolve() (r Options, fitted float64, err error) {
	asked := o.Homophily != 0
	if o, err = o.withPreset(); err != nil {
		return o, 0, err
	}
	o.fill()
	if err := o.check(); err != nil {
		return o, 0, err
	}
	most := o.mostHomophily()
	switch {
	case o.blocks() == 1:
		o.Homophily = 1 // there is only one community
	case o.Homophily <= most:
	case asked:
		return o, 0, config("a homophily of %g needs %.0f edges within classes of %d vertices, where %.0f can be sampled",
			o.Homophily, o.ofClass()*float64(o.Edges), o.Vertices/int64(o.blocks()), min(o.classRoom(), float64(o.Edges))).
			Then("set a homophily of at most %.2g, fewer edges, fewer classes, less label noise or more vertices", most)
	default:
		fitted, o.Homophily = o.Homophily, most
	}
	if out := (1 - o.ofClass()) * float64(o.Edges); out > roomy*o.otherPairs() {
		return o, 0, config("%d edges between %d vertices are too many to sample", o.Edges, o.Vertices).
			Then("set fewer edges or more vertices")
	}
	return o, fitted, nil
}

// withPreset sets zero fields from the preset and scales the preset's sizes.
func (o Options) withPreset() (Options, error) {
	if o.Like != "" {
		p, ok := findPreset(o.Like)
		if !ok {
			return o, fault.New(fault.Usage, op, "", "no preset %q", o.Like).Then("use one of %s", strings.Join(Presets(), ", "))
		}
		o.Vertices, o.Edges = cmp.Or(o.Vertices, p.vertices), cmp.Or(o.Edges, p.edges)
		o.Features, o.Classes = cmp.Or(o.Features, p.features), cmp.Or(o.Classes, p.classes)
		o.Homophily, o.Noise, o.Strays = cmp.Or(o.Homophily, p.homophily), cmp.Or(o.Noise, p.noise), cmp.Or(o.Strays, p.strays)
		o.Communities = cmp.Or(o.Communities, p.communities)
		if o.Train == 0 && o.Val == 0 {
			o.Train, o.Val = p.train, p.val
		}
		o.Name = cmp.Or(o.Name, o.Like+"-like")
	}
	if o.Scale = cmp.Or(o.Scale, 1); !(o.Scale > 0 && o.Scale <= 1e6) {
		return o, config("scale %g, expected above 0 and at most 1e6", o.Scale)
	}
	o.Vertices = int64(math.Round(float64(o.Vertices) * o.Scale))
	o.Edges = int64(math.Round(float64(o.Edges) * o.Scale))
	return o, nil
}

func (o *Options) fill() {
	o.Name = strings.ToLower(o.Name)
	o.Features, o.Classes, o.Communities = cmp.Or(o.Features, 64), cmp.Or(o.Classes, 8), cmp.Or(o.Communities, 1)
	o.Memory = cmp.Or(o.Memory, graph.EdgeMemory>>20)
	o.IDFeatures = cmp.Or(o.IDFeatures, maxIDFeatures)
	o.Homophily = max(cmp.Or(o.Homophily, 0.6), 0)
	o.Skew = max(cmp.Or(o.Skew, 0.6), 0)
	o.Noise, o.Strays = max(cmp.Or(o.Noise, 1), 0), max(o.Strays, 0)
	if o.Train == 0 && o.Val == 0 {
		o.Train, o.Val = 0.6, 0.2
	}
	o.fillTask()
}

// check returns a fault for options that cannot be generated. The comparisons are written so
// that NaN fails them.
func (o *Options) check() error {
	for _, c := range []struct {
		ok   bool
		name string
		got  any
		want string
	}{
		{o.Vertices >= 2 && o.Vertices <= 1<<32, "vertices", o.Vertices, "2 to 4294967296"},
		{o.Edges >= 0, "edges", o.Edges, "0 or more"},
		{o.Classes >= 1 && int64(o.Classes) <= o.Vertices/2, "classes", o.Classes, "1 to half the number of vertices"},
		{o.Communities >= 1 && int64(o.Communities) <= o.Vertices/2/int64(max(o.Classes, 1)), "communities", o.Communities,
			"1 to half the number of vertices of a class"},
		{o.Memory >= 1 && o.Memory <= 1<<30, "memory", o.Memory, "1 to 1073741824 MiB"},
		{o.EdgeFeatures >= 0 && o.EdgeFeatures <= graph.MaxEdgeDim, "edge-features", o.EdgeFeatures, fmt.Sprint("0 to ", graph.MaxEdgeDim)},
		{o.Features >= 0 && o.Features <= 1<<20, "features", o.Features, "1 to 1048576"},
		{o.Homophily <= 1, "homophily", o.Homophily, "at most 1"},
		{o.Skew < 1, "skew", o.Skew, "below 1"},
		{o.Strays < 0.9, "strays", o.Strays, "below 0.9"},
		{o.flips < 0.5, "strays", o.flips, "below 0.5 with --task " + o.Task},
		{o.Task == graph.MultiClass && o.Labels == 0 || o.Task != graph.MultiClass && o.Labels >= 1 && o.Labels <= 1<<16, "labels",
			o.Labels, "1 to 65536 with --task multilabel or regression, and none without"},
		{slices.Contains([]string{graph.MultiClass, graph.MultiLabel, graph.Regression}, o.Task), "task", o.Task,
			"multiclass, multilabel or regression"},
		{o.Noise <= 1e6, "noise", o.Noise, "at most 1e6"},
		{o.Train >= 0 && o.Val >= 0 && o.Train+o.Val <= o.seen(), "train and val", fmt.Sprint(o.Train, " ", o.Val),
			"fractions with a sum of at most 1, less the fraction of communities that only the test set has"},
	} {
		if !c.ok {
			return config("%s %v, expected %s", c.name, c.got, c.want)
		}
	}
	return nil
}

// roomy is the maximum fraction of all ordered pairs, within classes or across classes, that
// can be sampled as distinct edges. Sampling becomes expensive when nearly all pairs are used,
// and hubs run out of partners first.
const roomy = 0.5

// blocks returns the number of communities of all classes.
func (o *Options) blocks() int { return o.Classes * o.Communities }

// seen returns the fraction of the vertices that are in communities which are not entirely in
// the test set.
func (o *Options) seen() float64 {
	if o.Communities <= 1 {
		return 1
	}
	return float64(o.Communities-1) / float64(o.Communities)
}

// classRoom returns the number of directed edges that can be sampled within classes.
func (o *Options) classRoom() float64 { return roomy * o.classPairs() }

// classPairs returns the number of ordered pairs within classes.
func (o *Options) classPairs() float64 {
	size := float64(o.Vertices) / float64(o.blocks())
	return float64(o.Vertices) * (size - 1)
}

// otherPairs returns the number of ordered pairs across classes.
func (o *Options) otherPairs() float64 {
	n := float64(o.Vertices)
	return float64(n*(n-1)) - o.classPairs()
}

// mostHomophily returns the largest homophily for which the edges within classes can be sampled.
func (o *Options) mostHomophily() float64 {
	if o.Edges == 0 {
		return 1
	}
	same, other := o.agreement()
	class := min(1, o.classRoom()/float64(o.Edges))
	return float64(class*same) + float64((1-class)*other)
}

// ofClass returns the fraction of edges to sample within classes so that the labels have the
// requested homophily.
func (o *Options) ofClass() float64 {
	same, other := o.agreement()
	return min(max((o.Homophily-other)/(same-other), 0), 1)
}

// agreement returns the probability that two vertices of the same community, and two vertices
// of different communities, have the same label.
func (o *Options) agreement() (same, other float64) {
	if o.Classes == 1 {
		return 1, 0
	}
	s, others := o.Strays, float64(o.Classes-1)
	same = float64((1-s)*(1-s)) + s*s/others
	sisters := float64(o.Communities-1) / float64(o.blocks()-1)
	return same, float64(sisters*same) + (1-sisters)*(1-same)/others
}

func config(format string, args ...any) *fault.Error {
	return fault.New(fault.Config, op, "", format, args...)
}
