package engine

import (
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
	"siafu/ranks/tensor"
)

// CachedColumns is the number of columns of ÂX, or of other powers, that are gathered at a
// time. It is large enough for whole cache lines, and small enough that the ghost features
// never need memory all at once.
const CachedColumns = 64

// CachedWidth returns the number of columns of ÂX that a network gathers at a time.
func CachedWidth(s model.Spec) int { return s.SliceStep(min(CachedColumns, s.Dims[0])) }

// CachedInput is the purpose of the memory for the precomputed ÂX.
const CachedInput = "ÂX, kept"

// cacheInput computes ÂX, or the network's other powers, once, for the first layer of a store
// without frames. The result is allocated in a; temporary memory is freed. Collective over the
// graph ranks.
func (e *Engine) cacheInput(store *model.Store, reduction *halo.Reduction, a *mapped.Arena) error {
	if !e.Network.CacheInput {
		return nil
	}
	scratch := a.Like()
	defer scratch.Free()
	at, dim := 0, e.Network.Dims[0] // columns
	width := CachedWidth(e.Network)
	once := e.columnCaches(store, reduction, &at, a, scratch)
	ghosts := e.newGhostInput(width, a, scratch)
	for ; at < dim; at += width {
		at = min(at, dim-width) // recompute some columns to keep the width
		if err := once.forward(model.Pass{}, false); err != nil {
			return err
		}
		if err := ghosts.fetch(e.ghostInput, at, once.store.Forward(0, model.Gathered)); err != nil { // no ghosts with InChain
			return err
		}
	}
	e.workers.takeSeconds() // belongs to no epoch
	return nil
}

// columnCaches allocates ÂX in a. The returned lockstep, allocated in scratch, computes its columns
// from *from on.
func (e *Engine) columnCaches(store *model.Store, reduction *halo.Reduction, from *int, a, scratch *mapped.Arena) *lockstep {
	width, cached := CachedWidth(e.Network), store.CacheInput(e.Config.Features == "bf16", a.For(CachedInput))
	memory := model.Forward
	if e.Peers.Size() == 1 { // other ranks' rows are added to all gathered rows
		memory |= chained(e.Config, 1) &^ model.Narrow
	}
	columns := e.store(model.InputColumns(e.Network, store.Network.Sparse, width, from, cached), memory, scratch)
	once := e.lockstep(columns, e.newIntervals(columns, kernels.Mat{}, scratch))
	once.tensor, once.announces = tensor.CPU{}, false // the pass has no tensor work
	o := graphwork.Options{Reduction: reduction, Forward: true, Codes: e.codes}
	once.prepare(e, o, codec.Exact(e.Codecs[0]), scratch) // exact, because it costs time only once
	return once
}
