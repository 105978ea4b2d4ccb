package engine

import (
	"siafu/graph/mapped"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
)

// cachedColumns is how many columns of ÂX are gathered at a time: enough for
// whole cache lines, few enough that ghosts of all features are never there at
// once.
const cachedColumns = 64

// cacheInput computes ÂX once, for the first layer of each interval, in memory of
// a; what it takes on the way is freed. Collective over the graph ranks.
func (e *Engine) cacheInput(intervals []*interval, reduction *halo.Reduction, a *mapped.Arena) error {
	scratch := mapped.NewArena()
	defer scratch.Free()
	half := e.Config.Features == "bf16"
	dim := e.Network.Dims[0]
	width := min(cachedColumns, dim)
	columns := mapped.Make[float32](scratch, e.Shard.NumOwn()*width)
	once := e.lockstep(nil)
	at := 0 // column
	for _, i := range intervals {
		i.net.CacheInput(half, a)
		k := *i
		k.net = &model.Network{Layers: []model.Layer{&columnCache{net: i.net, columns: i.part(columns, width), from: &at, width: width}}}
		k.work.Net = k.net
		once.intervals = append(once.intervals, &k)
	}
	once.prepare(e, graphwork.Options{Reduction: reduction}, codec.Exact(e.Codecs[0]), scratch) // it costs time only once
	for ; at < dim; at += width {
		at = min(at, dim-width) // the last columns are computed twice rather than in another width
		if err := once.forward(model.Pass{}, false); err != nil {
			return err
		}
	}
	e.workers.take() // no epoch's work
	return nil
}

// columnCache is a layer that gathers some columns of the features, and puts them
// into the cached input of a network.
type columnCache struct {
	model.Layer
	net     *model.Network
	columns []float32 // [n x width]
	from    *int      // the first column
	width   int
}

func (k *columnCache) GatherWidth() int { return k.width }

func (k *columnCache) GathersBackward() bool { return false }

func (k *columnCache) Emit([]float32, model.Pass) []float32 {
	k.net.InputColumns(k.columns, *k.from, *k.from+k.width)
	return k.columns
}

func (k *columnCache) Apply(gathered []float32, _ model.Pass) []float32 {
	k.net.PutCachedInput(*k.from, *k.from+k.width, gathered)
	return nil
}
