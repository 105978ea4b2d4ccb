package engine

import (
	"siafu/graph/mapped"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
)

// CachedColumns is how many columns of ÂX are gathered at a time: enough for
// whole cache lines, few enough that ghosts of all features are never there at
// once.
const CachedColumns = 64

// CachedInput is the purpose of ÂX.
const CachedInput = "ÂX, kept"

// cacheInput computes ÂX once, for the first layer of each interval, in memory of
// a; what it takes on the way is freed. Collective over the graph ranks.
func (e *Engine) cacheInput(intervals []*interval, reduction *halo.Reduction, a *mapped.Arena) error {
	scratch := mapped.NewArena()
	defer scratch.Free()
	at, dim := 0, e.Network.Dims[0] // columns
	once := e.columnCaches(intervals, reduction, &at, a, scratch)
	for width := min(CachedColumns, dim); at < dim; at += width {
		at = min(at, dim-width) // the last columns are computed twice rather than in another width
		if err := once.forward(model.Pass{}, false); err != nil {
			return err
		}
	}
	e.workers.take() // no epoch's work
	return nil
}

// columnCaches makes room for ÂX in a, and in scratch what computes its columns
// from *from on.
func (e *Engine) columnCaches(intervals []*interval, reduction *halo.Reduction, from *int, a, scratch *mapped.Arena) *lockstep {
	columns := kernels.NewMat(e.workers.teams[0], scratch, e.Shard.NumOwn(), min(CachedColumns, e.Network.Dims[0]))
	once := e.lockstep(nil)
	for _, i := range intervals {
		i.net.CacheInput(e.Config.Features == "bf16", a.For(CachedInput))
		k := *i
		k.net = &model.Network{Layers: []model.Layer{&columnCache{net: i.net, columns: i.part(columns), from: from}}}
		k.work.Net = k.net
		once.intervals = append(once.intervals, &k)
	}
	once.prepare(e, graphwork.Options{Reduction: reduction}, codec.Exact(e.Codecs[0]), scratch) // it costs time only once
	return once
}

// columnCache is a layer that gathers some columns of the features, and puts them
// into the cached input of a network.
type columnCache struct {
	model.Layer
	net     *model.Network
	columns kernels.Mat // [n x width]
	from    *int        // the first column
}

func (k *columnCache) GatherWidth() int { return k.columns.Cols }

func (k *columnCache) GathersBackward() bool { return false }

func (k *columnCache) Emit(kernels.Mat, model.Pass) kernels.Mat {
	k.net.InputColumns(k.columns, *k.from)
	return k.columns
}

func (k *columnCache) Apply(gathered kernels.Mat, _ model.Pass) kernels.Mat {
	k.net.PutCachedInput(*k.from, gathered)
	return kernels.Mat{}
}
