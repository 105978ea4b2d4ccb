package model

import "siafu/kernels"

// InputColumns is a network of one layer without weights that gathers columns
// [*from, *from+width) of the features of s, and puts what it has gathered into the
// same columns of dst, which has a row for each own vertex.
func InputColumns(s Spec, sparse bool, width int, from *int, dst kernels.Mat) *Network {
	kind := Kind{
		Weights:      func(Spec, int) []Shape { return nil },
		Coefficients: s.kind().Coefficients, Maximum: s.kind().Maximum,
		Layer: func(b *Builder, _ int) Layer {
			b.Room(Emitted, width)
			return &inputColumns{width, from, dst}
		},
	}
	return New(Spec{Custom: &kind, Dims: []int{s.Dims[0], width}, Orders: []Order{ApplyFirst}}, sparse)
}

// inputColumns is its layer.
type inputColumns struct {
	width int
	from  *int
	dst   kernels.Mat
}

// GatherWidth implements Layer.
func (c *inputColumns) GatherWidth() int { return c.width }

// GathersBackward implements Layer.
func (c *inputColumns) GathersBackward() bool { return false }

// Flow implements Layer.
func (c *inputColumns) Flow(s Stage) Flow {
	switch s {
	case Emit:
		return Flow{Writes: []Value{Emitted}}
	case Apply:
		return Flow{Reads: []Value{Gathered}}
	}
	return Flow{}
}

// Run implements Layer.
func (c *inputColumns) Run(s Stage, x *Step) {
	f := x.frame
	switch s {
	case Emit:
		f.InputColumns(x.At(Emitted), *c.from, x.Ops)
	case Apply:
		x.Ops.PutColumns(c.dst.Part(f.lo, f.lo+f.Rows()), *c.from, x.At(Gathered))
	}
}
