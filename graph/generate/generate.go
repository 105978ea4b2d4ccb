package generate

import (
	"fmt"
	"math"

	"siafu/graph"
	"siafu/graph/fault"
	"siafu/graph/mapped"
)

// Purposes of the random streams of a seed. Their numbers are part of what a
// seed means.
const (
	purposeIDs = iota + 1
	purposeEdges
	purposeCentroids
	purposeNoise
	purposeSplit
	purposeStrays
)

// Write generates a dataset folder at dir, which must not exist unless force
// is set. The number of distinct edges is within 2 % of what was asked, and
// the report has it. Where the homophily of a preset or the default does not
// fit a scaled-down graph (there are too few pairs within classes) the largest
// that does is taken, and the dataset's Source says so.
//
// Options that cannot be fulfilled are Usage and Config faults.
func Write(dir string, o Options, force bool) (*graph.WriteReport, error) {
	arena := mapped.NewArena()
	defer arena.Free()
	c, err := content(o, arena)
	if err != nil {
		return nil, err
	}
	return graph.Write(dir, *c, force)
}

// content is the dataset; its features lie in the arena.
func content(asked Options, arena *mapped.Arena) (*graph.Content, error) {
	o, fitted, err := asked.resolve()
	if err != nil {
		return nil, err
	}
	e, err := newEdges(o)
	if err != nil {
		return nil, err
	}
	n := int(o.Vertices)
	labels := make([]int32, n)
	for slot := range uint64(n) {
		labels[e.ids.at(slot)] = int32(slot % e.classes)
	}
	x, err := reserve(arena, n, o.Features)
	if err != nil {
		return nil, err
	}
	features(x, o.Features, labels, o.Classes, o.Noise, o.Seed)
	stray(labels, o) // the edges' classes do not come from labels
	return &graph.Content{
		Name:       o.Name,
		Source:     o.source(fitted),
		Synthetic:  true,
		Vertices:   o.Vertices,
		Edges:      e,
		Symmetrise: !o.Directed,
		Features:   graph.Features{Rows: n, Dim: o.Features, Dense: x},
		Labels:     labels,
		Classes:    o.Classes,
		Split:      split(n, o),
	}, nil
}

// source says for meta.json what was generated.
func (o *Options) source(fitted float64) string {
	s := "generate"
	if o.Like != "" {
		s += fmt.Sprintf(": a look-alike of %s, scale %g", o.Like, o.Scale)
	}
	s += fmt.Sprintf(": %d vertices, %d edges asked, homophily %.3g", o.Vertices, o.Edges, o.Homophily)
	if fitted > 0 {
		s += fmt.Sprintf(" (%.3g does not fit into classes of %d)", fitted, o.Vertices/int64(o.Classes))
	}
	s += fmt.Sprintf(", skew %g, noise %g", o.Skew, o.Noise)
	if o.Strays > 0 {
		s += fmt.Sprintf(", strays %g", o.Strays)
	}
	return s + fmt.Sprintf(", seed %d", o.Seed)
}

// newEdges plans the draws for resolved options.
func newEdges(o Options) (*edges, error) {
	n, c := float64(o.Vertices), float64(o.Classes)
	size := (o.Vertices + int64(o.Classes) - 1) / int64(o.Classes)
	mean := float64(o.Edges) / n
	// √E is the largest expected degree for which the probabilities of the
	// Chung–Lu model stay below one.
	most := max(math.Sqrt(float64(o.Edges)), 2*mean)
	e := &edges{
		classes:  uint64(o.Classes),
		vertices: uint64(o.Vertices),
		ids:      newShuffle(uint64(o.Vertices), newStream(o.Seed, purposeIDs)),
		ranks:    newRanks(size, o.Skew, mean, most),
		random:   newStream(o.Seed, purposeEdges),
	}
	bs := e.ranks.bins()
	inside, ok1 := drawsFor(o.ofClass()*float64(o.Edges), func(m float64) float64 { return within(bs, c, m, o.Directed) })
	outside, ok2 := drawsFor((1-o.ofClass())*float64(o.Edges), func(m float64) float64 { return across(bs, c, m, o.Directed) })
	if !ok1 || !ok2 {
		return nil, config("%d edges do not come together with a skew of %g and a homophily of %g", o.Edges, o.Skew, o.Homophily).
			Then("ask for a smaller skew or fewer edges")
	}
	e.inside, e.draws = inside, inside+outside
	return e, nil
}

// stray gives a share of the vertices the label of another class.
func stray(labels []int32, o Options) {
	random := newStream(o.Seed, purposeStrays)
	for v := range labels {
		if x := random.at(uint64(v)); o.Classes > 1 && float64(x>>11)/(1<<53) < o.Strays {
			step := 1 + random.at(uint64(len(labels)+v))%uint64(o.Classes-1)
			labels[v] = int32((uint64(labels[v]) + step) % uint64(o.Classes))
		}
	}
}

// split draws the set of each vertex on its own.
func split(n int, o Options) []uint8 {
	random := newStream(o.Seed, purposeSplit)
	out := make([]uint8, n)
	for v := range out {
		switch x := float64(random.at(uint64(v))>>11) / (1 << 53); {
		case x < o.Train:
			out[v] = graph.SplitTrain
		case x < o.Train+o.Val:
			out[v] = graph.SplitVal
		default:
			out[v] = graph.SplitTest
		}
	}
	return out
}

// reserve makes room for n x dim features. The sizes are the user's, so that
// memory running out is a fault and no programmer's error.
func reserve(arena *mapped.Arena, n, dim int) (x []float32, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.New(fault.Config, op, "", "%d x %d features do not fit into memory", n, dim).
				Then("ask for a smaller scale or fewer features")
		}
	}()
	return mapped.Make[float32](arena, n*dim), nil
}
