package model

import (
	"cmp"
	"fmt"
	"strings"

	"siafu/kernels"
)

// Order is the order of the two products of a layer.
type Order uint8

// (ÂH)W gathers rows of the layer's input, Â(HW) rows of its output.
const (
	GatherFirst Order = iota
	ApplyFirst
)

func (o Order) String() string {
	if o == ApplyFirst {
		return "A(HW)"
	}
	return "(AH)W"
}

// Spec says what a network is; equal specs and weights make equal networks.
type Spec struct {
	Kind         string  // one of Kinds
	Custom       *Kind   // a network of the caller's own, in the place of what Kind names
	Dims         []int   // input, hidden…, classes; one more than there are layers
	Dropout      float64 // of hidden activations
	InputDropout float64
	// Of gat and gatv2: dropout of attention, heads of hidden layers, which Dims holds
	// side by side, and of the last; 0 heads are 1.
	AttentionDropout   float64
	Heads, OutputHeads int
	ScoreDropout       float64 // of the hidden layers of Head
	Design             Design
	Orders             []Order // one a layer
	CacheInput         bool    // ÂX, or other Powers, are computed once; the first layer is then GatherFirst
	KnownGhosts        bool    // a rank has the features of its ghosts: what they emit in the first layer is made where it is gathered
	InPlace            bool    // gradients of hidden rows may take the place of these (kernels.Through)
	Listed             bool    // sparse features are gathered as lists of their non-zeros, and never spread out
	Seed               uint64  // of dropout
}

// Layers is the number of layers.
func (s Spec) Layers() int { return len(s.Dims) - 1 }

// Design is what a network has beside its kind and its widths. Each kind says what it
// takes of it.
type Design struct {
	// Activation of hidden layers, where it is not the kind's own: one of Activations.
	Activation string `json:"activation,omitempty"`

	// Norm is how hidden layers are normalised before their activation: one of Norms, none.
	Norm string `json:"norm,omitempty"`

	// Jumping is how the outputs of all hidden layers make the logits: one of Jumps, none
	// where the last one's alone do.
	Jumping string `json:"jumping,omitempty"`

	// EdgeFeatures has the scores of gatv2 take the weights of edges as features.
	EdgeFeatures bool `json:"edge-features,omitempty"`
	// EdgeDim is how many features of each edge they take in the place of weights.
	EdgeDim int `json:"edge-dim,omitempty"`

	// PoolHidden is the width of the perceptron before the maxima of sage-pool; 0: that of the
	// layer's input.
	PoolHidden int `json:"pool-hidden,omitempty"`

	Residual string  `json:"residual,omitempty"` // of hidden layers: "add", "initial", none
	Hops     int     `json:"hops,omitempty"`     // of propagation behind the products (appnp)
	Alpha    float64 `json:"alpha,omitempty"`    // share of the first rows in each step of them
	Theta    float64 `json:"theta,omitempty"`    // of gcnii: how fast its products fade with depth

	// Layers of the perceptron that scores pairs of rows, and the width of all but its last
	// one (Head); 0 where the dot product does.
	ScoreLayers int `json:"score-layers,omitempty"`
	ScoreHidden int `json:"score-hidden,omitempty"`
}

// EdgeDim returns the number of edge features that the network uses.
func (s Spec) EdgeDim() int {
	if s.Design.EdgeFeatures {
		return 1
	}
	return s.Design.EdgeDim
}

// Propagates reports whether the network uses the graph at all.
func (s Spec) Propagates() bool { return s.kind().Coefficients != nil }

// Drops reports whether a training pass differs from an evaluation.
func (s Spec) Drops() bool {
	return s.Design.Norm == "batch" && s.Layers() > 1 || s.InputDropout > 0 || s.Dropout > 0 && s.Layers() > 1 || s.AttentionDropout > 0 || s.ScoreDropout > 0 && s.Design.ScoreLayers > 1
}

// Sums reports whether layers need sums over the vertices of all ranks.
func (s Spec) Sums() bool { return s.Design.Norm == "batch" || s.Design.Norm == "pair" }

// Load is what an epoch has to go through, over all ranks; it decides on
// orders.
type Load struct {
	Vertices, Edges int64
	FeatureNNZ      int64 // 0 for dense features
	CacheFits       bool  // ÂX fits into the memory of every rank
}

// Choices are the orders a user can ask for.
type Choices struct {
	Order      string // "auto", "gather-first", "apply-first"
	CacheInput string // "auto", "on", "off"
	Ghosts     string // features of ghosts: "auto", "kept", "sent"
	Lists      bool   // rows can be gathered as lists: in this process's memory, along edges without weights
}

// gemmRate is how many multiply-adds of a dense product take as long as one of
// a gather; the choice between a sparse first layer and a cached dense one
// hangs on it. It stands for any ratio from 2 to 8 on the machines seen.
const gemmRate = 4

// listRate is how many columns of a dense row are gathered in the time of a non-zero of a list, of
// which there are listPlaces or more.
const (
	listRate   = 24
	listPlaces = 4
)

// Choose sets the order of every layer and whether ÂX is kept, and returns a
// sentence for the run header that says so.
//
// Layer 0 has no gradient with respect to its input, so gathering first costs
// one product with the adjacency matrix there (none when ÂX is kept) where
// applying first costs two; in all other layers both orders cost two, of the
// width that is gathered.
func (s *Spec) Choose(load Load, c Choices) string {
	s.Orders = make([]Order, s.Layers())
	if !s.Propagates() {
		s.CacheInput, s.KnownGhosts = false, false
		return "no propagation"
	}
	parts := s.parts()
	for l := range s.Orders {
		order := cmp.Or(parts[l].kind.Order, c.Order)
		if parts[l].kind.Coefficients != nil && (order == "apply-first" || order == "auto" && s.Dims[l+1] < s.Dims[l]) {
			s.Orders[l] = ApplyFirst
		}
	}
	c.Order = cmp.Or(parts[0].kind.Order, c.Order)
	keeps, why := s.keepsInput(load, c, parts[0].kind)
	if s.CacheInput = keeps; keeps {
		s.Orders[0] = GatherFirst
	} else if parts[0].kind.Coefficients != nil {
		s.Orders[0] = s.inputOrder(load, c)
	}
	s.KnownGhosts = s.KnowsGhosts() && (c.Ghosts == "kept" || c.Ghosts == "auto" && (s.Orders[0] == GatherFirst || s.fewNonZeros(load)))
	s.Listed = s.lists(load, c)
	names := make([]string, len(s.Orders))
	for l, o := range s.Orders {
		names[l] = o.String()
	}
	choice := fmt.Sprintf("order=%s cache_input=%t (%s)", strings.Join(names, ","), s.CacheInput, why)
	if s.Listed {
		choice += " features=lists"
	}
	return choice
}

// knownNonZeros is up to how many non-zeros of a ghost are multiplied, there and back, on one thread in less
// than half of the time that a row of what they make and its gradient take over a link of 10 Gbit/s: 0.15 ns for
// each of its columns, of which a number and its gradient take 6.4 ns.
const knownNonZeros = 16

// fewNonZeros reports whether a ghost's products cost less than its exchange.
func (s *Spec) fewNonZeros(load Load) bool {
	return load.FeatureNNZ > 0 && float64(load.FeatureNNZ)*(1-s.InputDropout) <= knownNonZeros*float64(load.Vertices)
}

// lists reports whether the first layer gathers its features as lists. Orders must have been chosen.
func (s *Spec) lists(load Load, c Choices) bool {
	return s.KnownGhosts && s.Adds() && s.Orders[0] == GatherFirst && c.Lists &&
		load.FeatureNNZ > 0 && s.Dims[0] <= kernels.MostListed && s.listWidth(load) < float64(s.Dims[0])
}

// listWidth is the width of a dense row that takes as long to gather as the list of an average one.
func (s *Spec) listWidth(load Load) float64 {
	kept := float64(load.FeatureNNZ) * (1 - s.InputDropout) / float64(max(load.Vertices, 1))
	return listRate * max(kept, listPlaces)
}

// KnowsGhosts reports whether a rank that has the features of its ghosts can make what they emit
// in the first layer, which then needs no exchange. Orders must have been chosen. Of itself it does
// so where it gathers first, and would send rows as wide as features; where it multiplies first, and
// repeats the products of ghosts in every epoch, if these have few non-zeros.
func (s Spec) KnowsGhosts() bool {
	first := s.parts()[0].kind
	return first.Coefficients != nil && !first.Dynamic && !s.CacheInput
}

// keepsInput decides whether ÂX is kept, or what other Powers the kind has, and says why.
func (s *Spec) keepsInput(load Load, c Choices, first Kind) (keeps bool, why string) {
	p := s.Powers()
	switch {
	case first.Coefficients == nil && s.kind().Powers == nil, p.Cached() == 0:
		return false, "the first layer gathers nothing"
	case s.InputDropout > 0:
		return false, "the input has dropout; --input-dropout 0 allows it"
	case c.CacheInput == "off":
		return false, "switched off"
	case c.Order == "apply-first":
		return false, "rows meet their weights before they are gathered"
	case c.CacheInput == "on":
		return true, "asked for"
	case !load.CacheFits:
		return false, p.sentence("does", "do") + " not fit in memory"
	case c.Order == "auto" && s.sparseCost(load) < s.cachedCost(load):
		return false, "sparse features times W cost less than a dense " + p.String()
	}
	return true, p.sentence("is", "are") + " computed and exchanged once"
}

// inputOrder is the order of the first layer when ÂX is not kept.
func (s *Spec) inputOrder(load Load, c Choices) Order {
	switch {
	case c.Order == "gather-first":
		return GatherFirst
	case c.Order == "apply-first":
		return ApplyFirst
	case load.FeatureNNZ > 0 && s.sparseCost(load) <= s.gatherCost(load, c):
		return ApplyFirst
	case load.FeatureNNZ == 0 && s.Dims[1] <= (s.Dims[0]-1)/2:
		return ApplyFirst
	}
	return GatherFirst
}

// gatherCost counts what sparseCost does where sparse features are gathered in every epoch, and
// products of ÂX are dense.
func (s *Spec) gatherCost(load Load, c Choices) float64 {
	width, in := float64(s.Dims[0]), float64(s.Dims[0])
	if c.Lists {
		width = min(width, s.listWidth(load))
	}
	return float64(load.Edges)*width + 2*float64(load.Vertices)*in*s.block()/gemmRate
}

// sparseCost counts, in gathered multiply-adds, an epoch's first layer with
// sparse features: XW and its gradient, and for each column as many products with Â and Âᵀ
// as its power says.
func (s *Spec) sparseCost(load Load) float64 {
	if load.FeatureNNZ == 0 {
		return s.cachedCost(load) + 1
	}
	p := s.Powers()
	return 2 * (float64(load.FeatureNNZ)*float64(s.Dims[1]) + float64(load.Edges)*s.block()*float64(p.steps()))
}

// cachedCost counts the same for dense powers that are kept, and sparse features beside
// them where X is one.
func (s *Spec) cachedCost(load Load) float64 {
	p := s.Powers()
	return 2 * s.block() * (float64(load.Vertices)*float64(s.Dims[0])*float64(p.Cached())/gemmRate + float64(load.FeatureNNZ)*float64(p.blocks()-p.Cached()))
}

// block is the width of what the first layer makes of one power.
func (s *Spec) block() float64 { return float64(s.Dims[1]) / float64(s.Powers().blocks()) }
