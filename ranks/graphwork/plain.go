package graphwork

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// plain is the form of a matrix that gathers read as it is.
type plain struct{}

func (plain) begin(model.Pass) {}

func (plain) publish(Interval, kernels.Mat) {}

func (plain) gatherOwn(i Interval, dst kernels.Mat, m kernels.Edges, x kernels.Mat) {
	i.Ops.SpMM(dst, m, x, false)
}

func (plain) gather(i Interval, dst kernels.Mat, m kernels.Edges, x kernels.Mat, add bool) {
	i.Ops.SpMM(dst, m, x, add)
}
