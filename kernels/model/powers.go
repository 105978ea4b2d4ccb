package model

import "fmt"

// Powers of Â times the features, computed once before training, so that an epoch is a
// perceptron's: the purpose of SGC (Wu et al. 2019, §2.2) and SIGN (Frasca et al. 2020, §4).
// They replace the gathers of the first layer and of later propagation layers.

// Powers are the powers First to Last of Â times the features. With Spec.CacheInput they are
// cached, and the first layer applies weights to them. Its results per power have the same
// width, and are concatenated. Power 0 is the features themselves.
type Powers struct{ First, Last int }

// Powers returns the network's powers: only ÂX if the kind has no others.
func (s Spec) Powers() Powers {
	if of := s.kind().Powers; of != nil {
		return of(s)
	}
	return Powers{1, 1}
}

// powered reports whether powers are cached and the kind has others than ÂX.
func (s Spec) powered() bool {
	return s.CacheInput && s.kind().Powers != nil && s.Powers().Cached() > 0
}

// Cached returns the number of cached matrices, each as large as dense features.
func (p Powers) Cached() int { return p.Last - max(p.First, 1) + 1 }

func (p Powers) blocks() int { return p.Last - p.First + 1 }

// steps returns how often an epoch without caching gathers a block of columns, per direction.
func (p Powers) steps() int { return (p.First + p.Last) * p.blocks() / 2 }

func (p Powers) String() string {
	if p.Cached() == 1 {
		return powerName(p.Last)
	}
	return powerName(max(p.First, 1)) + " to " + powerName(p.Last)
}

func powerName(k int) string {
	if k == 1 {
		return "AX"
	}
	return fmt.Sprintf("A^%d X", k)
}

// sentence returns the start of a sentence about p.
func (p Powers) sentence(one, many string) string {
	if p.Cached() == 1 {
		return p.String() + " " + one
	}
	return p.String() + " " + many
}

// CachedPower returns the value of the k-th cached power in the first layer, counted from 0,
// lowest powers first. It reuses the names of Skips, which a first layer does not have.
func CachedPower(k int) Value {
	if k == 0 {
		return Gathered
	}
	return from + Value(k-1)
}

// numCachedPowers returns the number of cached powers of layer l.
func (n *Network) numCachedPowers(l int) int {
	if l > 0 || !n.Spec.CacheInput {
		return 0
	}
	return n.Spec.Powers().Cached()
}

// keeps reports whether a value is a cached power.
func (n *Network) keeps(r ref) bool {
	return n.numCachedPowers(r.layer) > 0 && (r.value == Gathered || r.value >= from)
}

func poweredLayer(b *Builder, l int) Layer {
	p := b.Spec.Powers()
	f := &powered{h: b.Hidden(), w: b.Weight(l, 0), features: p.First == 0}
	b.Alloc(Output, f.w.Cols)
	b.ShareStorage(GatheredGrad, OutputGrad)
	for k := range p.Cached() {
		f.kept = append(f.kept, CachedPower(k))
	}
	if p.blocks() > 1 {
		f.width = f.w.Cols / p.blocks()
		b.Alloc(inner, f.width)
		b.Alloc(innerGrad, f.width)
		f.block = b.Scratch(f.w.Rows, f.width)
	}
	reads := f.kept
	if f.features {
		reads = append([]Value{Input}, reads...)
	}
	f.stages = stages{
		Apply:         {Flow{Reads: reads, Writes: []Value{Output}}, f.applyOne},
		ApplyBackward: {Flow{Reads: append([]Value{OutputGrad}, reads...), Grads: []Param{f.w}}, f.applyOneBackward},
	}
	if f.width > 0 {
		f.stages[Apply] = stageWork{Flow{Reads: reads, Writes: []Value{Output, inner}}, f.apply}
		f.stages[ApplyBackward].Writes, f.stages[ApplyBackward].run = []Value{innerGrad}, f.applyBackward
	}
	return f
}

// powered computes [Âᶠ X W⁰, Âᶠ⁺¹ X W¹, …] from cached powers.
type powered struct {
	pointwise
	h        Hidden // X
	w        Param  // [in x blocks · width], one block of columns per power
	features bool   // the first block belongs to X
	kept     []Value
	width    int // of a block; 0: a single block
	block    int // scratch for a block of w, or of its gradient
}

// applyOne computes the output of a single block.
func (p *powered) applyOne(x *Step) {
	x.Ops.MatMul(x.At(Output), x.At(p.kept[0]), x.W(p.w), false)
}

func (p *powered) applyOneBackward(x *Step) {
	x.Ops.MatMulTransA(x.Grad(p.w), x.At(p.kept[0]), x.At(OutputGrad), false)
}

// apply computes the blocks of the output.
func (p *powered) apply(x *Step) {
	w, rows := x.Scratch(p.block), x.At(inner)
	for at := 0; at < p.w.Cols; at += p.width {
		x.Ops.CopyColumns(w, x.W(p.w), at)
		if power, ok := p.power(at); ok {
			x.Ops.MatMul(rows, x.At(power), w, false)
		} else {
			p.h.Multiply(x, rows, w)
		}
		x.Ops.PutColumns(x.At(Output), at, rows)
	}
}

func (p *powered) applyBackward(x *Step) {
	gw, grad := x.Scratch(p.block), x.At(innerGrad)
	for at := 0; at < p.w.Cols; at += p.width {
		x.Ops.CopyColumns(grad, x.At(OutputGrad), at)
		if power, ok := p.power(at); ok {
			x.Ops.MatMulTransA(gw, x.At(power), grad, false)
		} else {
			p.h.MultiplyGrad(x, gw, grad)
		}
		x.Ops.PutColumns(x.Grad(p.w), at, gw)
	}
}

// power returns the cached value of the block that starts at a column, none for X's block.
func (p *powered) power(column int) (Value, bool) {
	k := column / p.width
	if p.features {
		k--
	}
	if k < 0 {
		return 0, false
	}
	return p.kept[k], true
}

// powerStepLayer makes the layer that replaces a propagation step of the cached powers. The last
// one applies the bias and activation; others do nothing.
func powerStepLayer(b *Builder, l int) Layer {
	b.shareEnds()
	b.ShareStorage(Output, Gathered)
	if len(b.params[l]) == 0 {
		return &pointwise{}
	}
	bias, drop, relu := b.Weight(l, 0), b.Dropout(l), !b.Plain()
	back := Flow{Reads: []Value{OutputGrad, Output}, Writes: []Value{GatheredGrad}, Grads: []Param{bias}}
	if !relu {
		back.Reads = back.Reads[:1]
	}
	return &pointwise{stages{
		Apply: {Flow{Reads: []Value{Gathered}, Writes: []Value{Output}}, func(x *Step) {
			x.Ops.BiasReLUDropout(x.At(Output), x.At(Output), x.W(bias), relu, x.Mask(drop))
		}},
		ApplyBackward: {back, func(x *Step) {
			grad := x.At(OutputGrad)
			x.Ops.BiasReLUDropoutGrad(grad, x.Grad(bias), grad, x.At(Output), relu, x.Mask(drop))
		}},
	}}
}
