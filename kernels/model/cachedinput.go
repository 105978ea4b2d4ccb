package model

import "siafu/kernels"

// InputColumns returns a network without weights that computes Powers of columns [*from,
// *from+width) of the features of s. It writes the cached powers to the same columns of dst,
// lowest powers first. Each dst has a row per own vertex.
func InputColumns(s Spec, sparse bool, width int, from *int, dst []kernels.Mat) *Network {
	p, dims := s.Powers(), []int{s.Dims[0]}
	for range p.Last {
		dims = append(dims, width)
	}
	kind := Kind{
		Weights:      func(Spec, int) []Shape { return nil },
		Coefficients: s.kind().Coefficients, Maximum: s.kind().Maximum,
		Layer: func(b *Builder, l int) Layer {
			c := &inputColumns{width: width, from: from, first: l == 0}
			if k := l + 1 - max(p.First, 1); k >= 0 {
				c.dst = dst[k]
			}
			if c.first {
				b.Alloc(Emitted, width)
			} else {
				b.ShareStorage(Emitted, Input)
			}
			b.ShareStorage(Output, Gathered)
			return c
		},
	}
	orders := make([]Order, p.Last)
	orders[0] = ApplyFirst // the features themselves are not gathered
	return New(Spec{Custom: &kind, Dims: dims, Orders: orders}, sparse)
}

// inputColumns is a layer of this network: one power.
type inputColumns struct {
	width int
	from  *int
	dst   kernels.Mat // none if only higher ones are cached
	first bool
}

func (c *inputColumns) GatherWidth() int { return c.width }

func (c *inputColumns) GathersBackward() bool { return false }

func (c *inputColumns) Flow(s Stage) Flow {
	switch s {
	case Emit:
		if c.first {
			return Flow{Writes: []Value{Emitted}}
		}
		return Flow{Reads: []Value{Input}}
	case Apply:
		return Flow{Reads: []Value{Gathered}}
	}
	return Flow{}
}

func (c *inputColumns) Run(s Stage, x *Step) {
	f := x.frame
	switch {
	case s == Emit && c.first:
		f.InputColumns(x.At(Emitted), *c.from, x.Ops)
	case s == Apply && !c.dst.IsNil():
		x.Ops.PutColumns(c.dst.Part(f.lo, f.lo+f.Rows()), *c.from, x.At(Gathered))
	}
}
