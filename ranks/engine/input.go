package engine

import (
	"siafu/graph/mapped"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
	"siafu/ranks/tensor"
)

// cachedColumns is how many columns of ÂX are gathered at a time: enough for
// whole cache lines, few enough that ghosts of all features are never there at
// once.
const cachedColumns = 64

// cacheInput computes ÂX once, for the first layer of a store that has no frames
// yet, in memory of a; what it takes on the way is freed. Collective over the graph
// ranks.
func (e *Engine) cacheInput(store *model.Store, reduction *halo.Reduction, a *mapped.Arena) error {
	if !e.Network.CacheInput {
		return nil
	}
	scratch := mapped.NewArena()
	defer scratch.Free()
	dim, at := e.Network.Dims[0], 0 // column
	width := min(cachedColumns, dim)
	net := model.InputColumns(e.Network, store.Network.Sparse, width, &at, store.CacheInput(e.Config.Features == "bf16", a))
	columns := e.store(net, model.Forward, scratch)
	once := e.lockstep(columns, e.newIntervals(columns, kernels.Mat{}, scratch))
	once.tensor = tensor.CPU{}                                                                                 // there is nothing to compute
	once.prepare(e, graphwork.Options{Reduction: reduction, Forward: true}, codec.Exact(e.Codecs[0]), scratch) // it costs time only once
	for ; at < dim; at += width {
		at = min(at, dim-width) // the last columns are computed twice rather than in another width
		if err := once.forward(model.Pass{}, false); err != nil {
			return err
		}
	}
	e.workers.take() // no epoch's work
	return nil
}
