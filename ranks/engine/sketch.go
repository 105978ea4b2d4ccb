package engine

import (
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
)

// Sketch makes what a graph rank makes on a shard, which is a sketch itself, for
// values that stand as m says, but for weights and what intervals have by themselves
// (model.Spec.Footprint): in kept what lasts as long as the run, or as a stretch in
// bounded asynchrony, and in scratch what is given back when ÂX has been computed.
// Both arenas are sketches, and ops gives them their memory. What ranks add up for
// each other depends on the edges and is not there. Nothing is collective.
//
// Design note: one interval stands for all of them, because matrices are those of
// all own vertices, however these are divided.
func Sketch(c config.Config, net model.Spec, m model.Memory, codecs []codec.Codec, s *shard.Shard, ops kernels.Ops, kept, scratch *mapped.Arena) {
	idle := sketchOps{ops}
	c.Intervals = 1
	e := &Engine{
		Rank: Rank{
			Config: c, Peers: absent{rank: s.Rank, size: s.Parts}, Shard: s, Network: net, Codecs: codecs, Arena: kept, Tensor: tensor.CPU{},
		},
		workers: &workers{teams: []kernels.Ops{idle}},
	}
	store := e.store(e.network(), m, kept)
	if net.CacheInput {
		e.columnCaches(store, nil, new(int), kept, scratch)
	}
	if m == model.Apart {
		f := &async{cfg: c, workers: e.workers, layers: make([]*published, net.Layers())}
		if net.Propagates() {
			_ = f.prepare(e, store, 0, kept) // fails only of rows that have come
		}
		return
	}
	t := e.lockstep(store, nil)
	t.connect(e, nil, kept)
	t.reserve()
	e.batch(ops, kept)
	if t.exchange != nil {
		for _, other := range codecs[1:] {
			t.exchange.Use(other)
		}
	}
}

// sketchOps is one Ops for all who never compute.
type sketchOps struct{ kernels.Ops }

func (o sketchOps) Fork() kernels.Ops { return o }

// absent are the graph ranks of a sketch, of which only the number is known.
type absent struct {
	world.Comm // none: nobody talks to them
	rank, size int
}

func (a absent) Rank() int { return a.rank }

func (a absent) Size() int { return a.size }
