package engine

import (
	"siafu/kernels/model"
	"siafu/ranks/schedule"
)

// Outline is what the dependencies of a pass in step follow from: nothing of the graph,
// of values or of other ranks but numbers. A run walks the graphs that it makes of its
// own outline; whoever knows an outline alone, such as a simulator, gets the same.
type Outline struct {
	Layers    []LayerOutline
	Intervals int  // of the rank's vertices
	InputKept bool // ÂX: the first layer emits nothing
	Loss      bool // the way forward ends in it
	Ghosts    bool // rows come from other ranks
	Returns   bool // and gradients go back to them
	Sums      int  // tasks that add up rows for other ranks, in each layer
	Pieces    int  // tasks that make gradients of ghosts, in each layer
	Barrier   bool // nopipe: one stage at a time, all intervals
	Fused     bool // tensor tasks that follow each other are one
}

// LayerOutline says what a layer wants of the graph.
type LayerOutline struct{ Gathers, GathersBackward bool }

// outline is that of the passes along a route.
func (s *lockstep) outline(r *route, barrier bool) Outline {
	o := Outline{
		Intervals: len(s.intervals), InputKept: s.store.Network.Spec.CacheInput, Loss: s.endsInLoss,
		Ghosts: r.ghosts != nil, Returns: r.returns(), Sums: max(len(r.sumPieces)-1, 0), Pieces: max(len(r.pieces)-1, 0),
		Barrier: barrier, Fused: s.tensor.Wishes().Fused,
	}
	o.Layers = layersOf(s.store.Network)
	return o
}

// outline is that of a rank in bounded asynchrony.
func (f *async) outline(store *model.Store) Outline {
	return Outline{
		Layers: layersOf(store.Network), Intervals: len(f.intervals), InputKept: store.Network.Spec.CacheInput, Loss: true,
		Ghosts: f.graph != nil && f.graph.Plan.Ghosts > 0, Fused: f.tensor.Wishes().Fused,
	}
}

func layersOf(net *model.Network) (list []LayerOutline) {
	for l := range net.Layers {
		list = append(list, LayerOutline{net.Gathers(l), net.GathersBackward(l)})
	}
	return list
}

// Forward are the tasks of the way from the features to the loss.
func (o Outline) Forward() *schedule.Graph { return o.graph(func(p *passes) { p.forward() }) }

// Backward are those of the way from there to the gradients of the weights.
func (o Outline) Backward() *schedule.Graph { return o.graph(func(p *passes) { p.backward(nil) }) }

// Epoch are those of both at once.
func (o Outline) Epoch() *schedule.Graph {
	return o.graph(func(p *passes) { p.backward(p.forward()) })
}

func (o Outline) graph(way func(p *passes)) *schedule.Graph {
	p := newPasses(o, func(int, model.Stage) []model.Do { return nil })
	way(p)
	return p.g
}
