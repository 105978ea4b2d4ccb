package generate

import (
	"fmt"
	"math"
	"runtime"

	"siafu/graph"
	"siafu/internal/host"
	"siafu/internal/size"
	"siafu/internal/workers"
)

// Purposes of a seed's random streams. A change of these numbers changes the dataset of a seed.
const (
	purposeIDs = iota + 1
	purposeEdges
	purposeCentroids
	purposeNoise
	purposeSplit
	purposeStrays
	purposeTargets
	purposeEdgeFeatures
	purposeEdgeCentroids
	purposeLabelled
	purposeKinds     = 1 << 16 // + index of the kind
	purposeRelations = 2 << 16 // + index of the relation
)

// Write generates a dataset folder at dir, which must not exist unless force is set. The number
// of distinct edges is within 2 % of the requested number; the report contains the exact
// number. A scaled-down graph may have too few pairs within classes for the homophily of the
// preset or the default. Write then uses the largest possible homophily and records it in the
// dataset's Source.
//
// Options that cannot be fulfilled are Usage and Config faults.
func Write(dir string, o Options, force bool) (*graph.WriteReport, error) {
	c, err := content(o)
	if err != nil {
		return nil, err
	}
	return graph.Write(dir, *c, force)
}

// content returns the dataset. Its features are sampled while they are written.
func content(asked Options) (*graph.Content, error) {
	if p := findRelational(asked.Like); p != nil {
		return p.content(asked)
	}
	o, fitted, err := asked.resolve()
	if err != nil {
		return nil, err
	}
	if err := host.RequireMemory(op, "", o.bytes(), "set fewer --vertices or a smaller --scale"); err != nil {
		return nil, err
	}
	e, err := newEdges(o)
	if err != nil {
		return nil, err
	}
	c := &graph.Content{
		Name:          o.Name,
		Source:        o.source(fitted),
		Synthetic:     true,
		Vertices:      o.Vertices,
		Edges:         e,
		EdgeMemory:    int64(o.Memory) << 20,
		Symmetrise:    !o.Directed,
		Features:      graph.Features{Rows: int(o.Vertices), Dim: o.Features, Draw: vertexFeatures(o, e)},
		FeatureFormat: o.FeatureFormat,
		Labels:        labels(&e.planted, o),
		Classes:       o.Classes,
		Split:         split(&e.planted, o),
	}
	if o.EdgeFeatures > 0 {
		c.Edges = graph.WithFeatures(e, o.EdgeFeatures, edgeFeatures(o, e))
	}
	if o.Task != graph.MultiClass {
		c.Task, c.Classes = o.Task, o.Labels
		var best string
		c.Targets, best = targets(e, o)
		c.Source += best
	}
	return c, nil
}

// bytes returns the memory for the vertices: a label, a split, the degrees, and targets.
func (o *Options) bytes() int64 {
	vertex := int64(4 + 1 + 16)
	if o.Task != graph.MultiClass {
		vertex += 4 * int64(o.Labels)
	}
	return size.Product(o.Vertices, vertex)
}

func (o *Options) source(fitted float64) string {
	s := "generate"
	if o.Like != "" {
		s += fmt.Sprintf(": synthetic graph like %s, scale %g", o.Like, o.Scale)
	}
	s += fmt.Sprintf(": %d vertices, %d edges requested, homophily %.3g", o.Vertices, o.Edges, o.Homophily)
	if fitted > 0 {
		s += fmt.Sprintf(" (%.3g does not fit into classes of %d)", fitted, o.Vertices/int64(o.blocks()))
	}
	s += fmt.Sprintf(", skew %g, noise %g", o.Skew, o.Noise)
	if o.Strays > 0 {
		s += fmt.Sprintf(", strays %g", o.Strays)
	}
	if o.EdgeFeatures > 0 {
		s += fmt.Sprintf(", edge features %d", o.EdgeFeatures)
	}
	if o.Communities > 1 {
		s += fmt.Sprintf(", communities %d", o.Communities)
	}
	return s + fmt.Sprintf(", seed %d", o.Seed)
}

// newEdges computes the numbers of samples for resolved options.
func newEdges(o Options) (*edges, error) {
	blocks := int64(o.blocks())
	n, c := float64(o.Vertices), float64(blocks)
	size := (o.Vertices + blocks - 1) / blocks
	mean := float64(o.Edges) / n
	// √E is the largest expected degree for which the probabilities of the Chung–Lu model are
	// below one.
	most := max(math.Sqrt(float64(o.Edges)), 2*mean)
	e := &edges{
		planted: planted{
			blocks:   uint64(blocks),
			vertices: uint64(o.Vertices),
			ids:      newShuffle(uint64(o.Vertices), newStream(o.Seed, purposeIDs)),
			ranks:    newRanks(size, o.Skew, mean, most),
		},
		random: newStream(o.Seed, purposeEdges),
	}
	bs := e.ranks.bins()
	inside, ok1 := drawsFor(o.ofClass()*float64(o.Edges), func(m float64) float64 { return distinctEdges(bs, c, m, true, o.Directed) })
	outside, ok2 := drawsFor((1-o.ofClass())*float64(o.Edges),
		func(m float64) float64 { return distinctEdges(bs, c*(c-1), m, false, o.Directed) })
	if !ok1 || !ok2 {
		return nil, config("%d edges cannot be sampled with a skew of %g and a homophily of %g", o.Edges, o.Skew, o.Homophily).
			Then("set a smaller skew or fewer edges")
	}
	e.inside, e.draws = inside, inside+outside
	return e, nil
}

// labels returns the class of each vertex's community, changed by label noise.
func labels(e *planted, o Options) []int32 {
	random := newStream(o.Seed, purposeStrays)
	out := make([]int32, o.Vertices)
	workers.Blocks(runtime.GOMAXPROCS(0), len(out), block, func(_, from, to int) {
		for v := from; v < to; v++ {
			class := e.block(uint64(v)) % uint64(o.Classes)
			if o.Classes > 1 && unit(random.at(uint64(v))) < o.Strays {
				step := 1 + random.at(uint64(len(out)+v))%uint64(o.Classes-1)
				class = (class + step) % uint64(o.Classes)
			}
			out[v] = int32(class)
		}
	})
	return out
}

// split samples the set of each vertex independently. If a class has several communities, the
// last one is in the test set.
func split(e *planted, o Options) []uint8 {
	random := newStream(o.Seed, purposeSplit)
	out := make([]uint8, o.Vertices)
	share := o.seen()
	seen := uint64(math.Round(share * float64(o.blocks())))
	workers.Blocks(runtime.GOMAXPROCS(0), len(out), block, func(_, from, to int) {
		for v := from; v < to; v++ {
			switch x := unit(random.at(uint64(v))) * share; {
			case e.block(uint64(v)) >= seen || x >= o.Train+o.Val:
				out[v] = graph.SplitTest
			case x < o.Train:
				out[v] = graph.SplitTrain
			default:
				out[v] = graph.SplitVal
			}
		}
	})
	return out
}

// unit maps 64 random bits to a number in [0, 1).
func unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }
