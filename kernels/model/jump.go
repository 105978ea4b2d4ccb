package model

// Jumping knowledge (Xu et al. 2018, §4) computes the logits from the outputs of all hidden
// layers:
//
//	cat  H¹ W¹ + … + Hᴸ Wᴸ + b, a product with the rows side by side
//	max  max(H¹, …, Hᴸ) W + b, the maximum of each element
//
// A vertex can use each layer's rows, and thus each distance.

// Jumps returns the names of ways to join layers.
func Jumps() []string { return []string{"cat", "max"} }

// layersAfterHidden returns the number of layers after the hidden ones.
func (d Design) layersAfterHidden() int {
	if d.Jumping == "max" || d.normed() {
		return 2
	}
	return 1
}

// normed reports whether the last layer's rows are normalised: not if a product follows all
// hidden layers.
func (d Design) normed() bool { return DividesRows(d.Norm) && d.Jumping == "" }

// jumpingPart returns a layer after the hidden ones.
func (s Spec) jumpingPart(l int) Part {
	each, first := 1+s.Design.layersPerHidden(), s.Design.layersBefore()
	hidden := (s.Layers() - first - s.Design.layersAfterHidden()) / each
	p := Part{Kind: "mlp", Prefix: layerName(hidden)}
	if s.Design.Jumping == "max" && l == s.Layers()-1 {
		return p
	}
	p.Kind = "jump " + s.Design.Jumping
	for k := range hidden - 1 { // the last one's is the input
		p.From = append(p.From, first+(k+1)*each-1)
	}
	return p
}

func catWeights(s Spec, l int) []Shape {
	hidden := (l - s.Design.layersBefore()) / (1 + s.Design.layersPerHidden())
	return []Shape{{"weight", s.Dims[l] * hidden, s.Dims[l+1], false}, {"bias", 1, s.Dims[l+1], true}}
}

func catLayer(b *Builder, l int) Layer {
	b.ShareStorage(Emitted, Input)
	b.Alloc(Output, b.Spec.Dims[l+1])
	b.AllocGrad(GatheredGrad)
	b.ShareStorage(InputGrad, EmittedGrad)
	c := &concatLayer{width: b.Spec.Dims[l], w: b.Weight(l, 0), bias: b.Weight(l, 1), skips: b.Skips()}
	reads, writes := gradsOf(c.skips)
	c.stages = stages{
		Apply: {Flow{Reads: append(rowsOf(c.skips), Gathered), Writes: []Value{Output}}, c.apply},
		ApplyBackward: {Flow{
			Reads:  append(append(reads, rowsOf(c.skips)...), OutputGrad, Gathered),
			Writes: append(writes, GatheredGrad), Grads: []Param{c.w, c.bias},
		}, c.applyBackward},
	}
	return c
}

// concatLayer is the layer of cat; its rows stay in the storage of their layers.
type concatLayer struct {
	pointwise
	width   int
	w, bias Param
	skips   []Skip // of all hidden layers but the last
}

// rowsOf returns the rows that skips read.
func rowsOf(skips []Skip) (list []Value) {
	for _, k := range skips {
		list = append(list, k.Rows())
	}
	return list
}

// gradsOf returns the values that AddGrad of skips reads and writes.
func gradsOf(skips []Skip) (reads, writes []Value) {
	for _, k := range skips {
		reads, writes = append(reads, k.GradValues()...), append(writes, k.Grad())
	}
	return reads, writes
}

// part returns the weights of hidden layer k.
func (c *concatLayer) part(k int) Param {
	p := c.w
	p.Rows, p.Offset = c.width, p.Offset+k*c.width*p.Cols
	return p
}

func (c *concatLayer) apply(x *Step) {
	out := x.At(Output)
	x.Ops.MatMul(out, x.At(Gathered), x.W(c.part(len(c.skips))), false)
	for k, skip := range c.skips {
		x.Ops.MatMul(out, x.At(skip.Rows()), x.W(c.part(k)), true)
	}
	x.Ops.BiasReLUDropout(out, out, x.W(c.bias), false, nil)
}

func (c *concatLayer) applyBackward(x *Step) {
	grad, last := x.At(OutputGrad), c.part(len(c.skips))
	x.Ops.ColumnSums(x.Grad(c.bias), grad, false)
	for k, skip := range c.skips {
		x.Ops.MatMulTransA(x.Grad(c.part(k)), x.At(skip.Rows()), grad, false)
		x.Ops.MatMulTransB(x.At(skip.Grad()), grad, x.W(c.part(k)), !skip.first)
	}
	x.Ops.MatMulTransA(x.Grad(last), x.At(Gathered), grad, false)
	x.Ops.MatMulTransB(x.At(GatheredGrad), grad, x.W(last), false)
}

// largestLayer makes the layer of max, without the product. The first layer that has the largest
// element gets its gradient; the last layer gets the rest.
func largestLayer(b *Builder, l int) Layer {
	b.shareEnds()
	b.Alloc(Output, b.Spec.Dims[l+1])
	skips := b.Skips()
	reads, writes := gradsOf(skips)
	return &pointwise{stages{
		Apply: {Flow{Reads: append(rowsOf(skips), Gathered), Writes: []Value{Output}}, func(x *Step) {
			x.Ops.Copy(x.At(Output), x.At(Gathered))
			for _, k := range skips {
				x.Ops.Larger(x.At(Output), x.At(k.Rows()))
			}
		}},
		ApplyBackward: {Flow{Reads: append(append(reads, rowsOf(skips)...), OutputGrad, Output),
			Writes: append(writes, GatheredGrad)}, func(x *Step) {
			for _, k := range skips {
				x.Ops.LargerGrad(x.At(k.Grad()), x.At(OutputGrad), x.At(k.Rows()), x.At(Output), !k.first)
			}
		}},
	}}
}
