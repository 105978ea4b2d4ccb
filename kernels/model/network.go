package model

import (
	"slices"

	"siafu/internal/mapped"
	"siafu/kernels"
)

// Network is a spec with its layers: shapes and settings, safe for concurrent use. A Store has
// its values on the vertices of a rank.
type Network struct {
	Spec   Spec
	Sparse bool // the features are
	Layers []Layer

	ranges   []Range
	skipped  []bool     // by layer: whether layers other than the next one read its output
	builders []*Builder // the storage requests of the layers
	epoch    []event
}

// New makes the layers of a spec, for sparse or dense features. Orders must have been chosen.
func New(s Spec, sparse bool) *Network {
	n := &Network{Spec: s, Sparse: sparse, ranges: s.LayerRanges()}
	params, parts := s.layout(), s.parts()
	n.skipped = make([]bool, len(parts))
	readers := map[int]int{} // the last reader of each output
	for l, p := range parts {
		for _, k := range p.From {
			readers[k] = l
		}
	}
	inPlace := s.gradsInPlace(parts, readers)
	for l, p := range parts {
		b := &Builder{Spec: s, Sparse: sparse, layer: l, part: p, params: params, constant: s.constant(parts, l),
			gradInPlace: inPlace[l], activationDone: inPlace[l+1]}
		for i, k := range p.From {
			b.skips = append(b.skips, Skip{i: i, first: readers[k] == l})
			n.skipped[k] = true
		}
		n.builders, n.Layers = append(n.builders, b), append(n.Layers, p.kind.Layer(b, l))
	}
	for l, skipped := range n.skipped {
		if skipped {
			n.builders[l].Alloc(skipGrad, s.Dims[l+1])
		}
	}
	n.epoch = n.order(true)
	return n
}

// gradsInPlace reports for each layer (false after the last one) whether its input's gradient
// overwrites the input's matrix. This requires that products alone compute the gradient, that ReLU
// computed the input, and that no other layer or gather reads it.
func (s Spec) gradsInPlace(parts []Part, readers map[int]int) []bool {
	list := make([]bool, len(parts)+1)
	for l := 1; l < len(parts); l++ {
		_, others := readers[l-1]
		above, below := parts[l].kind, parts[l-1]
		list[l] = s.InPlace && above.Rectifies && above.Coefficients != nil && s.Orders[l] == ApplyFirst &&
			below.kind.Rectifies && !below.Plain && !others
	}
	return list
}

// values returns the number of named values of layer l.
func (n *Network) values(l int) Value {
	return values + 2*Value(len(n.builders[l].part.From)) + Value(max(n.numCachedPowers(l)-1, 0))
}

// Gathers reports whether layer l gathers in every pass. It does not if its gathered input is
// cached.
func (n *Network) Gathers(l int) bool {
	return n.Layers[l].GatherWidth() > 0 && !(l == 0 && n.Spec.CacheInput)
}

// GathersAny reports whether any layer gathers: none of a perceptron, and none if all gathered
// inputs are cached.
func (n *Network) GathersAny() bool {
	for l := range n.Layers {
		if n.Gathers(l) {
			return true
		}
	}
	return false
}

// Exchanges reports whether ranks exchange rows in an epoch: some layer after GhostLayer
// gathers.
func (n *Network) Exchanges() bool {
	for l := range n.Layers {
		if n.Gathers(l) && l > n.Spec.GhostLayer() {
			return true
		}
	}
	return false
}

// ReadsFeatures reports whether an epoch reads the features of vertices, and not only their
// cached powers.
func (n *Network) ReadsFeatures() bool {
	return !n.Spec.CacheInput || slices.Contains(n.Layers[0].Flow(Apply).Reads, Input)
}

// TakesHalves reports whether the features may be in bfloat16: if no layer gathers the features
// themselves, only products and dropout read them.
func (n *Network) TakesHalves() bool {
	r, _ := n.root(0, Emitted)
	return !n.Gathers(0) || r != ref{0, Input}
}

// Sums returns the number of sums that layer l needs over the vertices of all ranks, and the
// size of its state; 0 if it is not Summing.
func (n *Network) Sums(l int) (sums, state int) {
	return n.builders[l].sums.columns, n.builders[l].sums.state
}

// GathersBackward reports whether gradients of layer l are gathered along the edges.
func (n *Network) GathersBackward(l int) bool {
	return n.Gathers(l) && n.Layers[l].GathersBackward()
}

// draws reports whether the first layer needs its input written out as a dense matrix: sparse
// features are expanded only if gathered as dense rows, and the dropout of dense ones is
// applied once for all readers.
func (n *Network) draws() bool {
	if n.Sparse {
		return n.Gathers(0) && n.Spec.Orders[0] == GatherFirst && !n.Lists()
	}
	return n.Spec.InputDropout > 0
}

// Lists reports whether the first layer gathers its features as lists, not as a matrix: if the
// spec requests it and the layer emits its input unchanged.
func (n *Network) Lists() bool {
	at := n.builders[0].places[Emitted]
	return n.Spec.Listed && n.Sparse && n.Gathers(0) && at.kind == inPlace && at.in == Input
}

// Degrees are the numbers of edges into and out of own vertices and then ghosts, in the whole
// graph, without self loops [own + ghosts]. With edge weights they include the sums of
// weights, the strengths (Barrat et al. 2004), else nil.
type Degrees struct {
	In, Out                 []uint32
	InStrength, OutStrength []float32
}

// Coefficients are the parts of Â's entries that belong to vertices: Â[v,u] = Row[v]·w·Col[u]
// for an edge u→v of weight w, which is 1 without weights, and, with SelfLoops and weight 1,
// for v = u. nil is all ones.
type Coefficients struct {
	Row []float32 // [own]
	Col []float32 // [own + ghosts]

	SelfLoops bool
}

// Coefficients computes the coefficients of the network's kind.
func (s Spec) Coefficients(d Degrees, own int, a *mapped.Arena) Coefficients {
	return s.kind().Coefficients(d, own, a)
}

// LayerCoefficients returns the kind of layer l, and the function that computes its coefficients.
func (s Spec) LayerCoefficients(l int) (kind string, compute func(d Degrees, own int, a *mapped.Arena) Coefficients) {
	k := s.kind()
	if part := s.part(k, l).Kind; s.Design.Kinds != "" && named(part, kinds, partKinds).Coefficients != nil {
		k = named(part, kinds, partKinds)
	}
	return k.Name, k.Coefficients
}

// Weighs reports whether the network depends on edge weights.
func (s Spec) Weighs() bool { return s.Adds() || s.Design.EdgeFeatures }

// Attends reports whether vertices gather with attention.
func (s Spec) Attends() bool { return s.kind().Attends }

// Dynamic reports whether attention is as in GATv2.
func (s Spec) Dynamic() bool { return s.kind().Dynamic }

// Adds reports whether vertices gather sums of rows with coefficients: neither maxima nor
// attention.
func (s Spec) Adds() bool { return s.kind().Adds() }

// Gathering describes the graph operation that a layer needs.
type Gathering struct {
	Width    int  // of emitted rows; 0: no gather
	Backward bool // gradients go back along the edges
	// Of attention; 0 heads means none. Columns is the width of gathered rows. Dynamic means
	// GATv2's scores.
	Heads, Columns int
	Dynamic        bool
	Maximum        bool // gather maxima of columns instead of sums
	// MultipliesFirst means that gradients of gathered rows are multiplied by matrices of relations
	// before the gather.
	MultipliesFirst bool
	Relational      bool // the gather depends on the relations of edges; Columns is then the width of gathered rows
}

// Gathered returns the width of gathered rows.
func (g Gathering) Gathered() int {
	if g.Heads > 0 || g.Relational {
		return g.Columns
	}
	return g.Width
}

// Gathering returns the graph operation of layer l.
func (n *Network) Gathering(l int) Gathering {
	if !n.Gathers(l) {
		return Gathering{}
	}
	g := Gathering{Width: n.Layers[l].GatherWidth(), Backward: n.GathersBackward(l)}
	g.Maximum = n.builders[l].part.kind.Maximum
	if at, ok := n.Layers[l].(Attended); ok {
		a := at.Attention(kernels.Mat{})
		g.Heads, g.Columns, g.Dynamic = a.Heads, a.Columns(), a.Dynamic
	}
	switch r := n.Layers[l].(type) {
	case Relational:
		g.Relational, g.MultipliesFirst = true, r.MultipliesGradsFirst()
		_, _, g.Columns = r.RelationShape()
	case RelationalAttention, RelationalEmission:
		g.Relational = true
	}
	return g
}
