package model

import (
	"siafu/internal/size"
	"siafu/kernels"
)

// Relational graph attention (Busbridge et al., "Relational graph attention networks", 2019, with
// additive logits across relations) is gat with its own weights for each relation. For each head, along
// an edge u → v of relation r,
//
//	s = leaky(Z_r[u]·a_r + Z_r[v]·b_r),  Z_r = H W_r
//	H' = elu(Σ softmax(s) Z_r[u] + bias)
//
// The softmax is over all edges into v of all relations and v itself (ARGAT), or with Design.RelationSoftmax over
// the edges of each relation alone (WIRGAT). The self loop of v is a relation of its own: alone, it has
// weight 1. Attention has no dropout. A vertex emits Z_r and its scores for every relation, so that rows
// are as wide as all relations together: rgcn and hgn are for graphs of more relations or vertices.

var rgatKind = Kind{
	Name: "rgat", Help: "graph attention with weights per relation", Paper: "Busbridge et al. 2019",
	Weights: rgatWeights, Layer: rgatLayer, Coefficients: SumCoefficients, Stacked: rgatStacked,
	Attends: true, KeepsEdges: true, Relational: true, Order: "apply-first", Activation: "elu", Options: []Option{OptionSoftmax},
}

func rgatWeights(s Spec, l int) []Shape {
	gat, r := gatWeights(s, l), size.Sum(s.relations(), 1)
	for i := range gat[:3] {
		gat[i].Rows = size.Product(r, gat[i].Rows)
	}
	return gat
}

func rgatStacked(s Spec, name string) int {
	if name == "bias" {
		return 1
	}
	return s.relations() + 1
}

// RelationalEmission is an Attended layer that emits a row and scores for each relation, side by side.
// The last one is that of self loops.
type RelationalEmission interface {
	Attended
	// EmittedRelations returns the number of relations, self loops included.
	EmittedRelations() int
	// Softmaxes returns the number of softmaxes over edges into a vertex: 1, or one for each relation.
	Softmaxes() int
}

func rgatLayer(b *Builder, l int) Layer {
	g := &rgat{attentionLayer: newAttentionLayer(b, l, b.Weight(l, 3)), weight: b.Weight(l, 0), source: b.Weight(l, 1),
		target: b.Weight(l, 2), in: b.Spec.Dims[l], relations: b.Spec.relations() + 1, softmaxes: 1}
	if b.Spec.Design.RelationSoftmax {
		g.softmaxes = g.relations
	}
	g.edgeDrop = nil
	b.Alloc(Emitted, g.GatherWidth())
	b.Alloc(Scores, g.relations*g.heads)
	b.Alloc(ScoresGrad, g.relations*g.heads)
	for k := range g.scratch {
		g.scratch[k] = [2]int{b.Scratch(g.in, g.relations*g.row()), b.Scratch(g.in, g.relations*g.heads)}
	}
	g.one = [2]int{b.Scratch(g.in, g.row()), b.Scratch(g.in, g.heads)}
	g.stages[Emit] = stageWork{Flow{Reads: []Value{Input}, Writes: []Value{Emitted, Scores}}, g.emit}
	g.stages[EmitBackward] = stageWork{
		Flow{Reads: []Value{EmittedGrad, ScoresGrad, Input}, Writes: []Value{InputGrad},
			Grads: []Param{g.weight, g.source, g.target}}, g.emitBackward,
	}
	return g
}

// rgat is one layer. It implements RelationalEmission.
type rgat struct {
	*attentionLayer
	weight, source, target Param
	in                     int
	relations, softmaxes   int
	// Scratch: the factors of the rows and of the scores of all relations [in x relations · columns], and
	// their gradients; and those of one relation.
	scratch [2][2]int
	one     [2]int
}

// row returns the width of the row of one relation.
func (g *rgat) row() int { return g.heads * (g.width + 1) }

func (g *rgat) GatherWidth() int { return g.relations * g.row() }

func (g *rgat) EmittedRelations() int { return g.relations }

func (g *rgat) Softmaxes() int { return g.softmaxes }

func (g *rgat) Attention(kernels.Mat) kernels.Attention {
	return kernels.Attention{Heads: g.heads, Width: g.width, Slope: slope}
}

// of returns the weights of relation r in a flat vector.
func (g *rgat) of(flat kernels.Mat, r int) (weight, source, target kernels.Mat) {
	part := func(p Param) kernels.Mat { return p.In(flat).Part(r*p.Rows/g.relations, (r+1)*p.Rows/g.relations) }
	return part(g.weight), part(g.source), part(g.target)
}

// fold computes the factors of the rows and of the scores.
func (g *rgat) fold(x *Step) (wide, narrow kernels.Mat) {
	wide, narrow = x.Scratch(g.scratch[0][0]), x.Scratch(g.scratch[0][1])
	rows, scores := x.Scratch(g.one[0]), x.Scratch(g.one[1])
	for r := range g.relations {
		w, source, target := g.of(x.frame.Weights, r)
		x.Ops.FoldScores(rows, scores, w, source, target)
		x.Ops.PutColumns(wide, r*g.row(), rows)
		x.Ops.PutColumns(narrow, r*g.heads, scores)
	}
	return wide, narrow
}

func (g *rgat) emit(x *Step) {
	wide, narrow := g.fold(x)
	g.h.Multiply(x, x.At(Emitted), wide)
	if scores := x.At(Scores); !scores.IsNil() { // ghosts that attend nowhere have none
		g.h.Multiply(x, scores, narrow)
	}
}

func (g *rgat) emitBackward(x *Step) {
	grad, scores := x.At(EmittedGrad), x.At(ScoresGrad)
	wide, narrow := x.Scratch(g.scratch[1][0]), x.Scratch(g.scratch[1][1])
	g.h.MultiplyGrad(x, wide, grad)
	if scores.IsNil() {
		x.Ops.Clear(narrow)
	} else {
		g.h.MultiplyGrad(x, narrow, scores)
	}
	rows, row := x.Scratch(g.one[0]), x.Scratch(g.one[1])
	for r := range g.relations {
		x.Ops.CopyColumns(rows, wide, r*g.row())
		x.Ops.CopyColumns(row, narrow, r*g.heads)
		gw, gsource, gtarget := g.of(x.frame.Grad, r)
		w, source, target := g.of(x.frame.Weights, r)
		x.Ops.FoldScoresGrad(gw, gsource, gtarget, rows, row, w, source, target)
	}
	if g.h.Constant() {
		return
	}
	wide, narrow = g.fold(x)
	g.h.InputGrad(x, x.At(InputGrad), grad, wide, false)
	g.h.InputGrad(x, x.At(InputGrad), scores, narrow, true)
}
