package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"siafu/graph"
	"siafu/kernels"
)

// Part describes a layer in a network whose layers differ: a layer of a kind of network, or
// one that exists only as a part of others.
type Part struct {
	Kind string
	// Prefix is the prefix of its weights' names; empty means "layers.L".
	Prefix string
	// Plain means that the layer has no activation and dropout, because it is the last one or
	// later layers apply them.
	Plain bool
	Kept  bool // no dropout after the activation
	// Depth numbers the layers of the kind from 1, if that matters.
	Depth int
	// From lists earlier layers whose outputs it also reads.
	From []int

	kind *Kind
}

// partKinds are layers that exist only as parts of networks.
var partKinds []Kind

func init() {
	partKinds = []Kind{
		{Name: "linear", Weights: linearWeights, Layer: linearLayer},
		{Name: "initial", Square: true, Inner: true, Weights: initialWeights, Layer: initialLayer,
			Coefficients: GCNCoefficients, Order: "gather-first"},
		{Name: "propagate", Square: true, Weights: noWeights, Layer: propagateLayer, Coefficients: GCNCoefficients, Order: "gather-first"},
		{Name: "propagate with bias", Square: true, Weights: oneBias, Layer: propagateLayer,
			Coefficients: GCNCoefficients, Order: "gather-first"},
		{Name: "power", Square: true, Columns: true, Weights: noWeights, Layer: powerLayer,
			Coefficients: GCNCoefficients, Order: "gather-first"},
		{Name: "last power", Square: true, Columns: true, Weights: oneBias, Layer: powerLayer,
			Coefficients: GCNCoefficients, Order: "gather-first"},
		{Name: "jump cat", Weights: catWeights, Layer: catLayer},
		{Name: "jump max", Square: true, Weights: noWeights, Layer: largestLayer},
		{Name: "drop", Square: true, Weights: noWeights, Layer: dropLayer},
		{Name: "norm", Square: true, Weights: normWeights, Layer: normLayer, Starts: normStarts,
			Running: []string{"norm.running_mean", "norm.running_var"}},
		{Name: "tail", Square: true, Weights: tailWeights, Layer: tailLayer, Starts: map[string]float32{slopeName: 0.25}},
	}
}

func noWeights(Spec, int) []Shape { return nil }

func oneBias(s Spec, l int) []Shape { return []Shape{{"bias", 1, s.Dims[l+1], true}} }

// parts returns the description of each layer.
func (s Spec) parts() []Part {
	list, kind := make([]Part, s.Layers()), s.kind()
	for l := range list {
		list[l] = s.part(kind, l)
		p := &list[l]
		p.Plain = p.Plain || l == len(list)-1
		if p.Prefix == "" {
			p.Prefix = layerName(l)
		}
		if p.Kind == kind.Name && kind.Part == nil {
			p.kind = kind
		} else {
			p.kind = named(p.Kind, kinds, partKinds)
		}
	}
	return list
}

// layerName returns the name of a layer in users' numbering.
func layerName(l int) string { return fmt.Sprintf("layers.%d", l) }

// part returns the description of layer l.
func (s Spec) part(kind *Kind, l int) Part {
	if kind.Part != nil {
		return kind.Part(s, l)
	}
	if s.Design.Jumping != "" && l >= s.Layers()-s.Design.layersAfterHidden() {
		return s.jumpingPart(l)
	}
	tails, first := s.Design.layersPerHidden(), s.Design.layersBefore()
	if l < first {
		return Part{Kind: "linear", Prefix: "project", Plain: true}
	}
	number, at := (l-first)/(1+tails), (l-first)%(1+tails)
	p := Part{Kind: s.layerKind(kind, number), Prefix: layerName(number), Plain: tails > 0}
	if at == 0 {
		return p
	}
	p.Kind, p.Plain = "tail", false
	if at < tails {
		p.Kind = "norm"
		return p
	}
	switch {
	case number == 0:
	case s.Design.Residual == "add":
		p.From = []int{first + number*(1+tails) - 1}
	case s.Design.Residual == "initial":
		p.From = []int{first + tails}
	}
	return p
}

// layerKind returns the kind of a layer, in users' numbering, of a network of the given kind.
func (s Spec) layerKind(kind *Kind, number int) string {
	if s.Design.Kinds == "" {
		return kind.Name
	}
	list := strings.Split(s.Design.Kinds, ",")
	return list[number%len(list)]
}

// checkKinds returns an error for kinds of layers that do not mix.
func (s Spec) checkKinds() error {
	for i, name := range strings.Split(s.Design.Kinds, ",") {
		switch k := s.Design.Kinds; {
		case k == "":
		case !slices.Contains(KindsWith((*Kind).Mixes), name) || i == 0 && (name != s.Kind || !KindOf(name).Propagates()):
			return fmt.Errorf("layers of the kinds %q in a network of kind %q", k, s.Kind)
		}
	}
	return nil
}

// Top returns the layer that computes the logits, or the rows that are normalised to logits.
// Its input is the embeddings of vertices.
func (s Spec) Top() int {
	if s.Design.normed() {
		return s.Layers() - 2
	}
	return s.Layers() - 1
}

// layersBefore returns the number of layers before the first one in users' numbering.
func (d Design) layersBefore() int {
	if d.Project {
		return 1
	}
	return 0
}

// layersPerHidden returns the number of layers that complete each hidden one.
func (d Design) layersPerHidden() int {
	if d.Norm != "" {
		return 2
	}
	if d.Residual != "" || d.Activation != "" {
		return 1
	}
	return 0
}

// Widths returns the Dims of a network with the given number of layers, in users' numbering.
func (s Spec) Widths(layers, in, hidden, out int) []int {
	if widths := s.kind().Widths; widths != nil {
		return widths(s.Design, layers, in, hidden, out)
	}
	dims, steps := []int{in}, s.Design.layersBefore()+(layers-1)*(1+s.Design.layersPerHidden())
	if s.Design.Jumping != "" { // the product of the logits follows all hidden layers
		steps += s.Design.layersPerHidden() + s.Design.layersAfterHidden()
	}
	for range steps {
		dims = append(dims, hidden)
	}
	if s.Design.normed() {
		dims = append(dims, out)
	}
	return append(dims, out)
}

// HasHidden reports whether a network with the given number of layers, in users' numbering, has
// layers whose width is free.
func (s Spec) HasHidden(layers int) bool {
	return !slices.Equal(s.Widths(layers, 1, 1, 1), s.Widths(layers, 1, 2, 1))
}

// Parts returns the description of each layer of the network.
func (s Spec) Parts() []Part { return s.parts() }

// Composed reports whether the network's layers differ in kind.
func (s Spec) Composed() bool {
	return s.kind().Part != nil || s.Design.layersPerHidden() > 0 || s.Design.Jumping != "" || s.Design.Kinds != "" || s.Design.Project
}

// Check returns an error if the spec, which may be untrusted, describes no valid network.
func (s Spec) Check() error {
	n := s.Layers()
	switch d := s.Design; {
	case s.Custom != nil || !slices.Contains(Kinds(), s.Kind):
		return fmt.Errorf("unknown kind of network %q", s.Kind)
	case n < 1:
		return fmt.Errorf("a network with %d widths, but it needs at least 2", len(s.Dims))
	case s.Heads < 0 || s.OutputHeads < 0:
		return errors.New("the number of heads is negative")
	case d.Hops < 0 || d.Hops >= n || !slices.Contains([]string{"", "add", "initial"}, d.Residual) ||
		d.Activation != "" && !slices.Contains(Activations(), d.Activation) || d.Norm != "" && !slices.Contains(Norms(), d.Norm) ||
		n < d.layersBefore()+d.layersAfterHidden() ||
		(n-d.layersBefore()-d.layersAfterHidden())%(1+d.layersPerHidden()) > 0 ||
		d.Jumping != "" && (!slices.Contains(Jumps(), d.Jumping) || n <= d.layersAfterHidden() || s.kind().Part != nil) || !(d.Theta >= 0):
		return fmt.Errorf("a network of %d layers with the design %+v", n, d)
	case DividesRows(d.Norm) && !s.kind().TakesRowNorms():
		return fmt.Errorf("a network of kind %q cannot normalise its rows", s.Kind)
	case d.Project && s.kind().FixedDesign() || d.Relations < 0 || d.Relations > graph.MaxRelations || d.Bases < 0 || d.Blocks < 0 ||
		d.Bases > 0 && d.Blocks > 0 || d.Bases+d.Blocks > 0 && !s.kind().Relational ||
		d.RelationSoftmax && !s.kind().Takes(OptionSoftmax) || !(d.EdgeResidual >= 0 && d.EdgeResidual < 1) ||
		d.EdgeResidual > 0 && !s.kind().Takes(OptionEdgeResidual):
		return fmt.Errorf("a network of kind %q with the design %+v", s.Kind, d)
	case d.PoolHidden < 0 || d.PoolHidden > 0 && !s.kind().Takes(OptionPoolHidden):
		return fmt.Errorf("a perceptron of width %d before the maxima of %s", d.PoolHidden, s.Kind)
	case d.ScoreLayers < 0 || d.ScoreLayers > mostScoreLayers || d.ScoreLayers > 1 && d.ScoreHidden < 1:
		return fmt.Errorf("a network with %d score layers of width %d", d.ScoreLayers, d.ScoreHidden)
	case d.ScoreRelations < 0 || d.ScoreRelations > 1<<16 || (d.Score != "") != (d.ScoreRelations > 0) ||
		d.Score != "" && d.ScoreLayers > 0 ||
		!slices.Contains([]TripleScore{"", DistMult, ComplEx}, d.Score) || d.Score == ComplEx && s.Dims[n]%2 > 0:
		return fmt.Errorf("a network of output width %d with the score %q of %d relations", s.Dims[n], d.Score, d.ScoreRelations)
	}
	if err := s.checkKinds(); err != nil {
		return err
	}
	for l, d := range s.Dims {
		if d < 1 || l > 0 && l < n && d%max(s.Heads, 1) != 0 {
			return fmt.Errorf("layer %d of a network has width %d, not a multiple of its %d heads", l, d, s.Heads)
		}
	}
	if err := s.CheckBlocks(); err != nil {
		return err
	}
	if b := s.Powers().blocks(); s.Dims[1]%b != 0 {
		return fmt.Errorf("the first layer of a network has width %d, not a multiple of its %d powers", s.Dims[1], b)
	}
	for l, p := range s.parts() {
		if p.kind.Square && s.Dims[l] != s.Dims[l+1] || slices.ContainsFunc(p.From, func(k int) bool { return s.Dims[k+1] != s.Dims[l] }) {
			return fmt.Errorf("layer %d of a network has input width %d and output width %d, which do not fit", l, s.Dims[l], s.Dims[l+1])
		}
	}
	return nil
}

// CheckBlocks returns an error if the widths of layers of relations are not multiples of Design.Blocks.
func (s Spec) CheckBlocks() error {
	b := s.Design.Blocks
	for l, p := range s.parts() {
		if b > 0 && p.kind.Relational && (s.Dims[l]%b > 0 || s.Dims[l+1]%b > 0) {
			return fmt.Errorf("%d blocks in a layer of %d to %d columns, which are not multiples", b, s.Dims[l], s.Dims[l+1])
		}
	}
	return nil
}

// GathersInput reports whether the first layer gathers the features along the edges.
func (s Spec) GathersInput() bool { return s.parts()[0].kind.Coefficients != nil }

// constant reports whether no weight below layer l is trained.
func (s Spec) constant(parts []Part, l int) bool {
	for k := range l {
		if len(parts[k].kind.Weights(s, k)) > 0 {
			return false
		}
	}
	return true
}

// Skip is an earlier layer's output that a layer also reads. It is a value, and so is the
// gradient that the layer adds to that output's gradient; Flow names both.
type Skip struct {
	i     int
	first bool // to write the gradient
}

// Rows returns the value that is read, the output of the earlier layer.
func (k Skip) Rows() Value { return from + Value(2*k.i) }

// Grad returns the value that AddGrad writes.
func (k Skip) Grad() Value { return k.Rows() + 1 }

// GradValues returns the part of the gradient that AddGrad reads: the sum from later layers,
// if any.
func (k Skip) GradValues() []Value {
	if k.first {
		return nil
	}
	return []Value{k.Grad()}
}

// SkipBackward replaces ApplyBackward of layer l for vertices whose output of the layer is not
// used. It clears the gradients of Skips that the stage is the first to write.
func (f *Frame) SkipBackward(l int, ops kernels.Ops) {
	at := Do{Layer: l, Stage: ApplyBackward}
	for _, k := range f.Network.builders[l].skips {
		if grad := f.At(at, k.Grad()); k.first && !grad.IsNil() {
			ops.Clear(grad)
		}
	}
}

// AddGrad adds factor times g to the gradient.
func (k Skip) AddGrad(x *Step, g kernels.Mat, factor float32) {
	keep := float32(1)
	if k.first {
		keep = 0
	}
	x.Ops.Blend(x.At(k.Grad()), keep, g, factor)
}
