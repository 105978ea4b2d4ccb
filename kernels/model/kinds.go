package model

import (
	"slices"

	"siafu/internal/mapped"
)

// Kind describes a kind of network: its weights, its layers, the coefficients of its edges, and
// the properties that the rest of the program needs. Each network has its own file.
type Kind struct {
	Name string
	// Help is one line for users, without a full stop; Paper is the source of the network.
	Help, Paper string
	// Weights returns the weights of layer l, in the order of Builder.Weight. Their names in
	// files are "layers.L." and the shape's name.
	Weights func(s Spec, l int) []Shape
	// Layer makes layer l. It requests all its memory from b.
	Layer func(b *Builder, l int) Layer
	// Coefficients returns the coefficients of edges, from the degrees of own vertices and then
	// ghosts. It allocates arrays in a and accesses elements only in a.Fill, because a forecast
	// also calls it. nil: the network does not use the graph.
	Coefficients func(d Degrees, own int, a *mapped.Arena) Coefficients
	// Maximum means that layers gather column-wise maxima of rows instead of sums; a row without
	// edges is 0. Attends means that all layers are Attended. Dynamic means that scores depend
	// jointly on both endpoints (GATv2). Coefficients are then SumCoefficients or
	// OtherCoefficients. KeepsEdges means that attention has no dropout.
	Maximum, Attends, Dynamic, KeepsEdges bool
	// Relational means that layers are Relational: edges of different relations have different weights.
	// Stacked returns the number of matrices that a weight consists of, one below the other; nil: one.
	Relational bool
	Stacked    func(s Spec, name string) int
	// Order is "gather-first" or "apply-first" for layers that support only one order. It is
	// empty for layers that use Spec.Orders.
	Order string
	// Part describes layer l, and Widths returns the widths between layers (Spec.Widths): nil
	// if all layers are of this kind.
	Part   func(s Spec, l int) Part
	Widths func(d Design, layers, in, hidden, out int) []int
	// Rectifies means that hidden layers end in ReLU and dropout, and their backward pass starts
	// with activateGrad. If such a layer multiplies first, its input gradient is a plain matrix
	// product and may overwrite the input (Spec.InPlace).
	Rectifies bool
	// Whole means that layers may emit their input with the dropout of the layer below (Spec.Whole).
	Whole bool
	// Powers returns the cached powers of Â times the features that the first layer uses. Later
	// layers then gather nothing. nil: every layer gathers, and the first layer's cached input
	// is ÂX.
	Powers func(s Spec) Powers
	// Columns means that a layer gathers some of its columns, and adds the result in place.
	Columns bool
	// Inner: the layer uses --weight-decay inner=X. Square: output width equals input width.
	Inner, Square bool
	// Starts contains the initial values of weights that are not random. Running lists tensors
	// updated as a running mean of the value in their gradient slot instead of by the optimiser
	// (batch-norm statistics).
	Starts  map[string]float32
	Running []string
	// Initializer is the default initialiser of the first weights; empty: small-logits.
	Initializer string
	// Options lists the options that the network accepts in addition to the common ones.
	Options []Option
	// Activation is the default activation of hidden layers; empty: relu.
	Activation string
	// MinLayers is the smallest number of layers, in users' numbering; 0: one.
	MinLayers int
	// PlainSum means that a row is the unscaled sum of its neighbours' rows, so that its norm
	// grows with the degree.
	PlainSum bool
	// Recommended sets the Norm and Jumping for graphs with enough labels. Empty: none.
	Recommended Design
	// Variates means that --batch variates is supported: a gather is estimated from sampled
	// neighbours and historical rows as control variates (Chen et al. 2018).
	Variates bool
	// Momentum means that --predict momentum is supported: the momentum of a history
	// (Yu et al. 2022) is implemented for its layers.
	Momentum bool
	// StateDict describes the layers of PyTorch Geometric with the same weights; nil: none.
	StateDict StateDict
}

// Option is an option that only some networks take, by the name of its flag.
type Option string

// The options. Powers sets Design.Hops too; InnerDecay is an option of the optimiser.
const (
	OptionAlpha        Option = "alpha"
	OptionTheta        Option = "theta"
	OptionHops         Option = "hops"
	OptionPowers       Option = "steps"
	OptionPoolHidden   Option = "pool-hidden"
	OptionInnerDecay   Option = "inner-decay"
	OptionBases        Option = "bases"
	OptionBlocks       Option = "blocks"
	OptionSoftmax      Option = "softmax"
	OptionEdgeResidual Option = "edge-residual"
)

// Options returns all options.
func Options() []Option {
	return []Option{OptionAlpha, OptionTheta, OptionHops, OptionPowers, OptionPoolHidden, OptionInnerDecay, OptionBases, OptionBlocks,
		OptionSoftmax, OptionEdgeResidual}
}

// Takes reports whether the network takes an option.
func (k *Kind) Takes(o Option) bool { return slices.Contains(k.Options, o) }

// FixedDesign reports whether the network determines all its layers. Such a network accepts no
// activation, normalisation, residual connections or jumping knowledge.
func (k *Kind) FixedDesign() bool { return k.Part != nil }

// TakesRowNorms reports whether rows may be divided by their norms (DividesRows).
func (k *Kind) TakesRowNorms() bool { return !k.FixedDesign() && !k.Attends }

// Propagates reports whether the network uses the graph at all.
func (k *Kind) Propagates() bool { return k.Coefficients != nil }

// Adds reports whether vertices gather sums of rows with coefficients: neither maxima nor
// attention nor products of relations.
func (k *Kind) Adds() bool { return k.Propagates() && !k.Attends && !k.Maximum && !k.Relational }

// Averages reports whether rows are weighted means of neighbours' rows, or contain such means.
func (k *Kind) Averages() bool { return k.Propagates() && !k.Maximum && !k.PlainSum }

// Mixes reports whether a network may have layers of this kind and of others that mix.
func (k *Kind) Mixes() bool { return !k.FixedDesign() && !k.Attends && !k.Maximum && !k.Relational }

// SelfLoops reports whether the neighbour sum of a vertex includes the vertex.
func (k *Kind) SelfLoops() bool {
	return k.Adds() && k.Coefficients(Degrees{}, 0, mapped.NewSketch()).SelfLoops
}

// Shape is a weight matrix [Rows x Cols] or, with one row, a bias, which is initially zero and
// has no weight decay.
type Shape struct {
	Name       string
	Rows, Cols int
	Bias       bool
}

// kinds contains all named networks, in the order of the help. A new network is one more line in
// init.
//
// Design note: init fills the table, so that the functions of a network may use it.
var kinds []Kind

func init() {
	kinds = []Kind{
		gcnKind,
		sageKind,
		sageMaxKind,
		sagePoolKind,
		ginKind,
		gatKind,
		gatv2Kind,
		mlpKind,
		gcniiKind,
		appnpKind,
		sgcKind,
		signKind,
		rgcnKind,
		rgatKind,
		hgnKind,
	}
}

// Kinds returns the names that Spec.Kind accepts.
func Kinds() []string { return KindsWith(func(*Kind) bool { return true }) }

// KindsWith returns the names of the networks with a property.
func KindsWith(property func(*Kind) bool) (names []string) {
	for i := range kinds {
		if property(&kinds[i]) {
			names = append(names, kinds[i].Name)
		}
	}
	return names
}

// KindOf returns the description of a network by its name, which must be one of Kinds.
func KindOf(name string) *Kind { return named(name, kinds) }

// kind returns the custom description, else the one that Kind names.
func (s Spec) kind() *Kind {
	if s.Custom != nil {
		return s.Custom
	}
	return KindOf(s.Kind)
}

func named(name string, lists ...[]Kind) *Kind {
	for _, list := range lists {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	panic("model: unknown kind of network")
}

// OneProduct returns one matrix [in x out] and its bias.
func OneProduct(s Spec, l int) []Shape {
	in, out := s.Dims[l], s.Dims[l+1]
	return []Shape{{"weight", in, out, false}, {"bias", 1, out, true}}
}
