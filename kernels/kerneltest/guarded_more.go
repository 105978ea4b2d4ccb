package kerneltest

import "siafu/kernels"

// What a Guarded does beyond an Ops. Words of lists are the host's.
var (
	_ kernels.FusedInputGrad = (*Guarded)(nil)
	_ kernels.ListOps        = (*Guarded)(nil)
)

// GradThrough implements kernels.Through.
func (d *Guarded) GradThrough(h, a, b, a2, b2 kernels.Mat, drop *kernels.Dropout) {
	defer d.shut()
	d.team.GradThrough(d.mat(h), d.mat(a), d.mat(b), d.mat(a2), d.mat(b2), d.dropout(drop))
}

// List implements kernels.Listing.
func (d *Guarded) List(l kernels.Lists, lo int, xs kernels.Sparse, drop *kernels.Dropout) {
	defer d.shut()
	d.team.List(l, lo, d.sparse(xs), d.dropout(drop))
}

// SpMMLists implements kernels.Listing.
func (d *Guarded) SpMMLists(dst kernels.Mat, e kernels.Edges, l kernels.Lists, add bool) {
	defer d.shut()
	d.team.SpMMLists(d.mat(dst), d.edges(e), l, add)
}
