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
			c := &inputColumns{width: width}
			b.ShareStorage(Output, Gathered)
			if l == 0 {
				b.Alloc(Emitted, width)
				c.stages[Emit] = stageWork{Flow{Writes: []Value{Emitted}},
					func(x *Step) { x.frame.InputColumns(x.At(Emitted), *from, x.Ops) }}
			} else {
				b.ShareStorage(Emitted, Input)
				c.stages[Emit].Flow = Flow{Reads: []Value{Input}}
			}
			c.stages[Apply].Flow = Flow{Reads: []Value{Gathered}}
			if k := l + 1 - max(p.First, 1); k >= 0 && !dst[k].IsNil() { // else only higher powers are cached
				c.stages[Apply].run = func(x *Step) {
					lo := x.frame.lo
					x.Ops.PutColumns(dst[k].Part(lo, lo+x.frame.Rows()), *from, x.At(Gathered))
				}
			}
			return c
		},
	}
	orders := make([]Order, p.Last)
	orders[0] = ApplyFirst // the features themselves are not gathered
	return New(Spec{Custom: &kind, Dims: dims, Orders: orders, Streams: s.Streams}, sparse)
}

// inputColumns is a layer of this network: one power.
type inputColumns struct {
	stages
	width int
}

func (c *inputColumns) GatherWidth() int { return c.width }

func (c *inputColumns) GathersBackward() bool { return false }
