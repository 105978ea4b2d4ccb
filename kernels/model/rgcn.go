package model

import (
	"siafu/kernels"
)

// R-GCN (Schlichtkrull et al. 2018, equation 2) is a layer with a weight matrix for each relation:
//
//	H' = dropout(relu(Σ_r Ā_r H W_r + H W_self + b)),  Ā_r = D_r^-1 A_r
//
// Ā_r H is the mean of the neighbours along relation r, 0 without any. The matrices are independent
// or, with B bases V_b, W_r = Σ_b a_rb V_b (equation 3), or block-diagonal with B blocks (equation 4).
// With one relation the layer is GraphSAGE's.
//
// A vertex emits its input row. The gather multiplies the means of each relation by the relation's
// matrix (Relational), so that neither messages nor means have memory of their own.

var rgcnKind = Kind{
	Name: "rgcn", Help: "relational graph convolutions, one weight matrix per relation", Paper: "Schlichtkrull et al. 2018",
	Weights: rgcnWeights, Layer: rgcnLayer, Coefficients: OtherCoefficients, Rectifies: true, Relational: true, Order: "gather-first",
	Options: []Option{OptionBases, OptionBlocks}, Stacked: rgcnStacked,
	StateDict: StateDict{ // RGCNConv
		"weight": {Weight: "weight", Also: basisName, Flat: true}, "comp": {Weight: combinationName},
		"root": {Weight: selfWeight}, "bias": {Weight: "bias"},
	},
}

// Names of the weights of a relational layer.
const (
	basisName       = "basis" // [bases·in x out]
	combinationName = "comp"  // [relations x bases]
)

// relations returns the number of relations, at least 1.
func (s Spec) relations() int { return max(s.Design.Relations, 1) }

func rgcnWeights(s Spec, l int) []Shape {
	in, out, r := s.Dims[l], s.Dims[l+1], s.relations()
	list := []Shape{{"weight", r * in, out / max(s.Design.Blocks, 1), false}}
	if b := s.Design.Bases; b > 0 {
		list = []Shape{{basisName, b * in, out, false}, {combinationName, r, b, false}}
	}
	return append(list, Shape{selfWeight, in, out, false}, Shape{"bias", 1, out, true})
}

// rgcnStacked returns the number of matrices in a weight. A combination has as many rows as relations,
// but the number of its inputs is that of its columns.
func rgcnStacked(s Spec, name string) int {
	switch name {
	case basisName:
		return s.Design.Bases
	case combinationName:
		return s.relations()
	case "weight":
		return s.relations() * max(s.Design.Blocks, 1)
	}
	return 1
}

// Relational is a layer whose gather multiplies the means of each relation by the relation's matrix.
// Gathered rows and their gradients have the width of its output.
type Relational interface {
	Layer
	// RelationShape returns the number of relations and the shape of their matrices.
	RelationShape() (relations, in, out int)
	// RelationWeights returns the matrices of all relations [relations·in x out]: a part of the flat
	// vector weights, or dst, which it then sets.
	RelationWeights(o kernels.Ops, dst, weights kernels.Mat) kernels.Mat
	// MultipliesGradsFirst reports whether the gradients of outputs are multiplied by the matrices before
	// they are gathered, because they are wider than the input. PublishGrads then computes the gradients of the
	// matrices.
	MultipliesGradsFirst() bool
	// ComposesRelations reports whether RelationWeights uses dst.
	ComposesRelations() bool
	// RelationGrads sets the gradients of the layer's weights in the flat vector grad from those of the
	// matrices g [relations·in x out]. g may be RelationWeights of grad.
	RelationGrads(o kernels.Ops, g, weights, grad kernels.Mat)
}

func rgcnLayer(b *Builder, l int) Layer {
	last := len(b.params[l]) - 1
	g := &rgcn{dense: newDense(b, l, true), self: b.Weight(l, last-1), weight: b.Weight(l, 0), relations: b.Spec.relations(),
		blocks: b.Spec.Design.Blocks}
	if b.Spec.Design.Bases > 0 {
		g.combination = b.Weight(l, 1)
	}
	b.Alloc(Output, g.out)
	b.ShareStorage(GatheredGrad, OutputGrad)
	b.ShareStorage(InputGrad, EmittedGrad)
	g.stages = stages{
		Emit:  {g.emits(), g.emit},
		Apply: {Flow{Reads: []Value{Gathered, g.h.from}, Writes: []Value{Output}}, g.apply},
		ApplyBackward: {Flow{Reads: []Value{OutputGrad, Output, g.h.from}, Writes: []Value{GatheredGrad},
			Grads: []Param{g.self, g.b}}, g.applyBackward},
		EmitBackward: {Flow{Reads: []Value{EmittedGrad, OutputGrad}, Writes: []Value{InputGrad}}, g.emitBackward},
	}
	if g.MultipliesGradsFirst() && !g.h.Constant() {
		b.Alloc(selfGrad, g.in)
		g.stages[ApplyBackward].Writes = append(g.stages[ApplyBackward].Writes, selfGrad)
		g.stages[EmitBackward].Reads = []Value{EmittedGrad, selfGrad}
	}
	return g
}

// selfGrad is the gradient of the input by W_self [n x in], so that the gradients of wide outputs are not
// needed after their interval's stage.
const selfGrad = inner

// ClearSelfGrad sets the value selfGrad of layer l to zero, if the layer has one, for vertices that skip the
// stage that computes it.
func (f *Frame) ClearSelfGrad(l int, ops kernels.Ops) {
	if grad := f.At(Do{Layer: l, Stage: ApplyBackward}, selfGrad); f.Network.Gathering(l).MultipliesFirst && !grad.IsNil() {
		ops.Clear(grad)
	}
}

// rgcn is one layer. It implements Relational.
type rgcn struct {
	*dense
	self, weight, combination Param // weight are matrices, blocks or bases
	relations, blocks         int
}

func (g *rgcn) GathersBackward() bool { return true } // for the gradients of the matrices

func (g *rgcn) apply(x *Step) {
	output := x.At(Output)
	g.h.Multiply(x, output, x.W(g.self))
	x.Ops.Add(output, x.At(Gathered))
	x.Ops.BiasReLUDropout(output, output, x.W(g.b), !g.last, x.Mask(g.drop))
}

func (g *rgcn) applyBackward(x *Step) {
	g.activateGrad(x, g.b)
	g.h.MultiplyGrad(x, x.Grad(g.self), x.At(OutputGrad))
	if g.MultipliesGradsFirst() && !g.h.Constant() {
		g.h.InputGrad(x, x.At(selfGrad), x.At(OutputGrad), x.W(g.self), false)
	}
}

func (g *rgcn) emitBackward(x *Step) {
	if g.MultipliesGradsFirst() && !g.h.Constant() {
		if grad := x.At(selfGrad); !grad.IsNil() { // ghosts have none
			x.Ops.Add(x.At(InputGrad), grad)
		}
	} else {
		g.h.InputGrad(x, x.At(InputGrad), x.At(OutputGrad), x.W(g.self), true)
	}
	g.dropGrad(x)
}

func (g *rgcn) MultipliesGradsFirst() bool { return g.out > g.in }

func (g *rgcn) RelationShape() (relations, in, out int) { return g.relations, g.in, g.out }

func (g *rgcn) ComposesRelations() bool { return g.blocks > 0 || g.combination.Len() > 0 }

func (g *rgcn) RelationWeights(o kernels.Ops, dst, weights kernels.Mat) kernels.Mat {
	w := g.weight.In(weights)
	switch {
	case g.combination.Len() > 0:
		o.MatMul(dst.Reshape(g.relations, g.in*g.out), g.combination.In(weights), w.Reshape(g.combination.Cols, g.in*g.out), false)
	case g.blocks > 0:
		o.Clear(dst)
		g.eachBlock(func(lo, hi, column int) { o.PutColumns(dst.Part(lo, hi), column, w.Part(lo, hi)) })
	default:
		return w
	}
	return dst
}

func (g *rgcn) RelationGrads(o kernels.Ops, grad, weights, flat kernels.Mat) {
	w := g.weight.In(flat)
	switch {
	case g.combination.Len() > 0:
		all := grad.Reshape(g.relations, g.in*g.out)
		o.MatMulTransA(w.Reshape(g.combination.Cols, g.in*g.out), g.combination.In(weights), all, false)
		o.MatMulTransB(g.combination.In(flat), all, g.weight.In(weights).Reshape(g.combination.Cols, g.in*g.out), false)
	case g.blocks > 0:
		g.eachBlock(func(lo, hi, column int) { o.CopyColumns(w.Part(lo, hi), grad.Part(lo, hi), column) })
	}
}

// eachBlock calls do for the rows and the first column of each block.
func (g *rgcn) eachBlock(do func(lo, hi, column int)) {
	rows, cols := g.in/g.blocks, g.out/g.blocks
	for k := range g.relations * g.blocks {
		do(k*rows, (k+1)*rows, k%g.blocks*cols)
	}
}
