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

func (p *powered) Flow(s Stage) Flow {
	reads := p.kept
	if p.features {
		reads = append([]Value{Input}, reads...)
	}
	switch {
	case s == Apply && p.width == 0:
		return Flow{Reads: reads, Writes: []Value{Output}}
	case s == Apply:
		return Flow{Reads: reads, Writes: []Value{Output, inner}}
	case s == ApplyBackward && p.width == 0:
		return Flow{Reads: append([]Value{OutputGrad}, reads...), Grads: []Param{p.w}}
	case s == ApplyBackward:
		return Flow{Reads: append([]Value{OutputGrad}, reads...), Writes: []Value{innerGrad}, Grads: []Param{p.w}}
	}
	return Flow{}
}

func (p *powered) Run(s Stage, x *Step) {
	switch {
	case s == Apply && p.width == 0:
		x.Ops.MatMul(x.At(Output), x.At(p.kept[0]), x.W(p.w), false)
	case s == Apply:
		p.apply(x)
	case s == ApplyBackward && p.width == 0:
		x.Ops.MatMulTransA(x.Grad(p.w), x.At(p.kept[0]), x.At(OutputGrad), false)
	case s == ApplyBackward:
		p.applyBackward(x)
	}
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

func powerStepLayer(b *Builder, l int) Layer {
	b.shareEnds()
	b.ShareStorage(Output, Gathered)
	return &powerStep{bias: b.params[l], drop: b.Dropout(l), relu: !b.Plain()}
}

// powerStep replaces a propagation step that cached powers include. The last one applies the
// bias and activation; others do nothing.
type powerStep struct {
	pointwise
	bias []Param // at most one
	drop *Dropout
	relu bool
}

func (g *powerStep) Flow(s Stage) Flow {
	switch {
	case len(g.bias) == 0:
	case s == Apply:
		return Flow{Reads: []Value{Gathered}, Writes: []Value{Output}}
	case s == ApplyBackward && !g.relu:
		return Flow{Reads: []Value{OutputGrad}, Writes: []Value{GatheredGrad}, Grads: g.bias}
	case s == ApplyBackward:
		return Flow{Reads: []Value{OutputGrad, Output}, Writes: []Value{GatheredGrad}, Grads: g.bias}
	}
	return Flow{}
}

func (g *powerStep) Run(s Stage, x *Step) {
	switch h, grad := x.At(Output), x.At(OutputGrad); {
	case len(g.bias) == 0:
	case s == Apply:
		x.Ops.BiasReLUDropout(h, h, x.W(g.bias[0]), g.relu, x.Mask(g.drop))
	case s == ApplyBackward:
		x.Ops.BiasReLUDropoutGrad(grad, x.Grad(g.bias[0]), grad, h, g.relu, x.Mask(g.drop))
	}
}
