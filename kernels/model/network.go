package model

import "siafu/graph/mapped"

// Network is a spec with its layers: shapes and settings, which any number of
// goroutines may use. Store gives it memory on the vertices of a rank.
type Network struct {
	Spec   Spec
	Sparse bool // the features are
	Layers []Layer

	ranges   []Range
	skipped  []bool     // of each layer: others read its output than the next one
	builders []*Builder // what the layers have asked for
	epoch    []event
}

// New makes the layers of a spec, whose orders must have been chosen, for features
// that are sparse or dense.
func New(s Spec, sparse bool) *Network {
	n := &Network{Spec: s, Sparse: sparse, ranges: s.LayerRanges()}
	params, parts := s.layout(), s.parts()
	n.skipped = make([]bool, len(parts))
	readers := map[int]int{} // the last of each output that is read
	for l, p := range parts {
		for _, k := range p.From {
			readers[k] = l
		}
	}
	for l, p := range parts {
		b := &Builder{Spec: s, Sparse: sparse, layer: l, part: p, params: params, constant: s.constant(parts, l)}
		for i, k := range p.From {
			b.skips = append(b.skips, Skip{i: i, first: readers[k] == l})
			n.skipped[k] = true
		}
		n.builders, n.Layers = append(n.builders, b), append(n.Layers, p.kind.Layer(b, l))
	}
	for l, skipped := range n.skipped {
		if skipped {
			n.builders[l].Room(skipGrad, s.Dims[l+1])
		}
	}
	n.epoch = n.order(true)
	return n
}

// values is how many values layer l has names for.
func (n *Network) values(l int) Value { return values + 2*Value(len(n.builders[l].part.From)) }

// Gathers tells whether layer l gathers in every pass: it does not where ÂX is
// kept.
func (n *Network) Gathers(l int) bool {
	return n.Layers[l].GatherWidth() > 0 && !(l == 0 && n.Spec.CacheInput)
}

// Sums is how many sums layer l needs of the vertices of all ranks, and how many numbers
// it keeps of them, 0 where it is not Summing.
func (n *Network) Sums(l int) (sums, state int) {
	return n.builders[l].sums.columns, n.builders[l].sums.state
}

// GathersBackward tells whether gradients of layer l go back along the edges.
func (n *Network) GathersBackward(l int) bool {
	return n.Gathers(l) && n.Layers[l].GathersBackward()
}

// draws tells whether the first layer needs its input written out as a dense matrix:
// sparse features are spread only where they are gathered, and dense ones with
// dropout are drawn once for all that read them.
func (n *Network) draws() bool {
	if n.Sparse {
		return n.Gathers(0) && n.Spec.Orders[0] == GatherFirst
	}
	return n.Spec.InputDropout > 0
}

// Coefficients are the weights of Â's entries: Â[v,u] = Row[v]·Col[u] for an
// edge u→v and, with SelfLoops, for v = u. nil is all ones.
type Coefficients struct {
	Row []float32 // [own]
	Col []float32 // [own + ghosts]

	SelfLoops bool
}

// Coefficients are those of the network's kind, from the degrees of own
// vertices and then ghosts, without self loops.
func (s Spec) Coefficients(inDegree, outDegree []uint32, own int, a *mapped.Arena) Coefficients {
	return s.kind().Coefficients(inDegree, outDegree, own, a)
}

// Gathering is what a layer wants of the graph.
type Gathering struct {
	Width    int  // of the rows that neighbours emit, 0: no gather
	Backward bool // gradients go back along the edges
	// Of attention: 0 heads is none. Columns is the width of what is gathered.
	Heads, Columns int
}

// Gathered is the width of what a layer gathers.
func (g Gathering) Gathered() int {
	if g.Heads > 0 {
		return g.Columns
	}
	return g.Width
}

// Gathering is that of layer l.
func (n *Network) Gathering(l int) Gathering {
	if !n.Gathers(l) {
		return Gathering{}
	}
	g := Gathering{Width: n.Layers[l].GatherWidth(), Backward: n.GathersBackward(l)}
	if at, ok := n.Layers[l].(Attended); ok {
		a := at.Attention()
		g.Heads, g.Columns = a.Heads, a.Columns()
	}
	return g
}
