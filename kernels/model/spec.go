package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
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

// Spec describes a network; equal specs and weights give equal networks.
type Spec struct {
	Kind         string  // one of Kinds
	Custom       *Kind   // the caller's own network, instead of Kind
	Dims         []int   // input, hidden…, classes; one more than the number of layers
	Dropout      float64 // of hidden activations
	InputDropout float64
	// Of gat and gatv2: dropout of attention, heads of hidden layers, concatenated in Dims,
	// and of the last; 0 means 1.
	AttentionDropout   float64
	Heads, OutputHeads int
	ScoreDropout       float64 // of the hidden layers of Head
	Design             Design
	Orders             []Order // one per layer
	CacheInput         bool    // ÂX, or other Powers, are computed once; the first layer is then GatherFirst
	LocalLayers        int     // number of first layers that gather whose ghosts' rows a rank computes itself
	LocalShare         float64 // fraction of the ghosts in the last of them, whose other rows it receives; 0: all
	// if TakesWholeRows: ranks exchange the rows of hidden layers before their dropout (Whole); these layers
	// are GatherFirst
	WholeRows   bool
	InPlace     bool   // gradients of hidden rows may replace the rows (GradThrough of kernels.Ops)
	Listed      bool   // sparse features are gathered as lists of their non-zeros, never expanded
	WholeOutput bool   // the output of all vertices is read after a pass, not only the loss of each interval
	Streams     bool   // values that are read in order have their own matrices (Streamed)
	Slices      int    // slices in which an interval gathers columns, if values are stored by worker (InChain); 0, 1: all at once
	Seed        uint64 // of dropout
}

// Layers returns the number of layers.
func (s Spec) Layers() int { return len(s.Dims) - 1 }

// Design has the options of a network besides its kind and widths. Each kind supports some of
// them.
type Design struct {
	// Kinds are the kinds of the layers, separated by commas and repeated: the first one is Spec.Kind,
	// and all of them Mix. Empty: all layers are of Spec.Kind.
	Kinds string `json:"kinds,omitempty"`

	// Activation of hidden layers, if not the kind's default: one of Activations.
	Activation string `json:"activation,omitempty"`

	// Norm is the normalisation of hidden layers before their activation: one of Norms, or
	// empty.
	Norm string `json:"norm,omitempty"`

	// Jumping is how the logits are computed from all hidden layers: one of Jumps, or empty if
	// only from the last one.
	Jumping string `json:"jumping,omitempty"`

	// EdgeFeatures makes the scores of gatv2 use edge weights as features.
	EdgeFeatures bool `json:"edge-features,omitempty"`
	// EdgeDim is the number of edge features that they use instead of weights.
	EdgeDim int `json:"edge-dim,omitempty"`

	// PoolHidden is the width of the perceptron before the maxima of sage-pool; 0: the width
	// of the layer's input.
	PoolHidden int `json:"pool-hidden,omitempty"`

	Residual string  `json:"residual,omitempty"` // of hidden layers: "add", "initial", none
	Hops     int     `json:"hops,omitempty"`     // of propagation after the products (appnp)
	Alpha    float64 `json:"alpha,omitempty"`    // fraction of the first rows in each such step
	Theta    float64 `json:"theta,omitempty"`    // of gcnii: how fast its products fade with depth

	// Project adds a first layer that multiplies the features, before the others: a projection for each
	// kind of vertices if kinds have their own columns.
	Project bool `json:"project,omitempty"`
	// Relations is the number of relations of the edges, 0: one. The matrices of relations are sums of
	// Bases matrices, or consist of Blocks blocks on the diagonal; 0: neither.
	Relations int `json:"relations,omitempty"`
	Bases     int `json:"bases,omitempty"`
	Blocks    int `json:"blocks,omitempty"`
	// RelationSoftmax means that the softmax of rgat is over the edges of each relation alone.
	RelationSoftmax bool `json:"relation-softmax,omitempty"`
	// EdgeResidual is the residual connection of the attention of hgn, 0 ≤ β < 1.
	EdgeResidual float64 `json:"edge-residual,omitempty"`

	// Layers of the perceptron that scores pairs of rows (Head), and the width of all but its
	// last one; 0: pairs are scored by the dot product.
	ScoreLayers int `json:"score-layers,omitempty"`
	ScoreHidden int `json:"score-hidden,omitempty"`
	// Score is the score of the edges of a relational graph, with weights for the first ScoreRelations relations.
	Score          TripleScore `json:"score,omitempty"`
	ScoreRelations int         `json:"score-relations,omitempty"`
}

// EdgeDim returns the number of edge features that the network uses.
func (s Spec) EdgeDim() int {
	if s.Design.EdgeFeatures {
		return 1
	}
	return s.Design.EdgeDim
}

// Propagates reports whether the network uses the graph at all.
func (s Spec) Propagates() bool { return s.kind().Propagates() }

// Drops reports whether a training pass differs from an evaluation.
func (s Spec) Drops() bool {
	return s.Design.Norm == "batch" && s.Layers() > 1 || s.InputDropout > 0 || s.Dropout > 0 && s.Layers() > 1 || s.AttentionDropout > 0 ||
		s.ScoreDropout > 0 && s.Design.ScoreLayers > 1
}

// Sums reports whether layers need sums over the vertices of all ranks.
func (s Spec) Sums() bool { return s.Design.Norm == "batch" || s.Design.Norm == "pair" }

// Load is the size of an epoch over all ranks; it determines the orders.
type Load struct {
	Vertices, Edges int64
	FeatureNNZ      int64 // 0 for dense features
	CacheFits       bool  // ÂX fits into the memory of every rank
}

// Choices are the orders that a user can request.
type Choices struct {
	Order      string // "auto", "gather-first", "apply-first"
	CacheInput string // "auto", "on", "off"
	Ghosts     string // ghosts' rows that are computed: "all", "none", "auto", or as ParseLocal requires
	Lists      bool   // rows can be gathered as lists: in this process's memory, along edges without weights
}

// gemmRate is the number of multiply-adds of a dense product in the time of one of a gather.
// The choice between a sparse first layer and a cached dense one depends on it. Measured
// ratios are 2 to 8.
const gemmRate = 4

// listRate is the number of columns of a dense row gathered in the time of one non-zero of a
// list. A list has at least listPlaces of them.
const (
	listRate   = 24
	listPlaces = 4
)

// Choose sets the order of every layer and whether ÂX is cached, and returns a sentence about
// it for the run header.
//
// Layer 0 has no gradient with respect to its input, so gathering first costs one product with
// the adjacency matrix there (none if ÂX is cached) where applying first costs two; in all
// other layers both orders cost two, of the width that is gathered.
func (s *Spec) Choose(load Load, c Choices) string {
	s.Orders = make([]Order, s.Layers())
	if !s.Propagates() {
		s.CacheInput, s.LocalLayers, s.LocalShare = false, 0, 0
		return "no propagation"
	}
	parts := s.parts()
	for l := range s.Orders {
		order := cmp.Or(parts[l].kind.Order, c.Order)
		if s.Whole(l) {
			order = "gather-first"
		}
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
	s.LocalLayers, s.LocalShare = s.localLayers(load, c)
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

// knownNonZeros is the number of a ghost's non-zeros below which computing its row is
// preferred to its exchange. One thread multiplies them, forward and backward, in less than
// half of the exchange time over a link of 10 Gbit/s. Per column, a non-zero takes 0.15 ns, a
// number and its gradient 6.4 ns.
const knownNonZeros = 16

// fewNonZeros reports whether a ghost's products cost less than its exchange.
func (s *Spec) fewNonZeros(load Load) bool {
	return load.FeatureNNZ > 0 && float64(load.FeatureNNZ)*(1-s.InputDropout) <= knownNonZeros*float64(load.Vertices)
}

// lists reports whether the first layer gathers its features as lists. Orders must have been chosen.
func (s *Spec) lists(load Load, c Choices) bool {
	return s.LocalLayers == 1 && s.LocalShare == 0 && s.GhostLayer() == 0 && s.Adds() && s.Orders[0] == GatherFirst && c.Lists &&
		load.FeatureNNZ > 0 && s.Dims[0] <= kernels.MostListed && s.listWidth(load) < float64(s.Dims[0])
}

// listWidth returns the width of a dense row that takes as long to gather as an average list.
func (s *Spec) listWidth(load Load) float64 {
	kept := float64(load.FeatureNNZ) * (1 - s.InputDropout) / float64(max(load.Vertices, 1))
	return listRate * max(kept, listPlaces)
}

// GatherLayers returns the layers that gather in every pass. Orders must have been chosen.
func (s Spec) GatherLayers() (list []int) {
	for l, p := range s.parts() {
		if p.kind.Coefficients != nil && !s.powered() && !(l == 0 && s.CacheInput) {
			list = append(list, l)
		}
	}
	return list
}

// GhostLayer returns the last of the LocalLayers, -1 without one. Ranks exchange no rows of the
// layers up to it. A rank computes the rows that its ghosts emit there from the inputs of the
// ghosts and, with LocalLayers above 1, of their neighbours, those of radius LocalLayers - 1.
func (s Spec) GhostLayer() int {
	if s.LocalLayers == 0 {
		return -1
	}
	return s.GatherLayers()[s.LocalLayers-1]
}

// MostLocalLayers returns the largest possible number of LocalLayers. Layers up to the last of
// them must not depend on sums over all vertices. Edges into ghosts have no relations here, so that ghosts
// of networks of relations are computed only before the first gather. Orders must have been chosen.
func (s Spec) MostLocalLayers() int {
	gathers := s.GatherLayers()
	if s.kind().Relational {
		return min(len(gathers), 1)
	}
	if n := slices.IndexFunc(gathers, func(l int) bool { return l > 0 }); n >= 0 && s.Sums() {
		return n
	}
	return len(gathers)
}

// ParseLocal returns LocalLayers and LocalShare of "layers:N": 2 and 0.5 if N is 1.5. ok is false
// for other texts.
func ParseLocal(text string) (layers int, share float64, ok bool) {
	number, ok := strings.CutPrefix(text, "layers:")
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(n > 0 && n <= 1000) {
		return 0, 0, false
	}
	whole := math.Floor(n)
	return int(math.Ceil(n)), n - whole, true
}

// localLayers returns LocalLayers and LocalShare. By default all of one layer is computed if ranks
// would otherwise exchange rows as wide as features, or if ghosts have few non-zeros.
func (s *Spec) localLayers(load Load, c Choices) (layers int, share float64) {
	most, first := s.MostLocalLayers(), 0
	if n, share, ok := ParseLocal(c.Ghosts); ok {
		if n > most {
			return most, 0
		}
		return n, share
	}
	if gathers := s.GatherLayers(); most > 0 && gathers[0] == 0 && (s.Orders[0] == GatherFirst || s.fewNonZeros(load)) {
		first = 1
	}
	return map[string]int{"all": most, "auto": first}[c.Ghosts], 0
}

// keepsInput decides whether ÂX, or the kind's Powers, are cached, and returns the reason.
func (s *Spec) keepsInput(load Load, c Choices, first *Kind) (keeps bool, why string) {
	p := s.Powers()
	switch {
	case first.Coefficients == nil && s.kind().Powers == nil, p.Cached() == 0:
		return false, "the first layer gathers nothing"
	case first.Relational:
		return false, "the gather includes products with weights"
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

// inputOrder returns the order of the first layer if ÂX is not cached.
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

// gatherCost returns sparseCost if every epoch gathers sparse features and products of ÂX are
// dense.
func (s *Spec) gatherCost(load Load, c Choices) float64 {
	width, in := float64(s.Dims[0]), float64(s.Dims[0])
	if c.Lists {
		width = min(width, s.listWidth(load))
	}
	return float64(float64(load.Edges)*width) + 2*float64(load.Vertices)*in*s.block()/gemmRate
}

// sparseCost counts, in gathered multiply-adds, an epoch's first layer with sparse features:
// XW and its gradient, and for each column one product with Â and Âᵀ per power.
func (s *Spec) sparseCost(load Load) float64 {
	if load.FeatureNNZ == 0 {
		return s.cachedCost(load) + 1
	}
	p := s.Powers()
	return 2 * (float64(float64(load.FeatureNNZ)*float64(s.Dims[1])) + float64(float64(load.Edges)*s.block()*float64(p.steps())))
}

// cachedCost counts the same for cached dense powers, and for sparse features if X is one of
// the powers.
func (s *Spec) cachedCost(load Load) float64 {
	p := s.Powers()
	return 2 * s.block() * (float64(load.Vertices)*float64(s.Dims[0])*float64(p.Cached())/gemmRate +
		float64(float64(load.FeatureNNZ)*float64(p.blocks()-p.Cached())))
}

// block returns the width of the first layer's output per power.
func (s *Spec) block() float64 { return float64(s.Dims[1]) / float64(s.Powers().blocks()) }
