package engine

import (
	"slices"

	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
	"siafu/ranks/schedule"
)

// Until the first gather of an epoch, a vertex's rows depend only on its features, or on the
// cached ÂX of it, on the weights, and on dropout masks, which follow from the vertex id. A
// rank that has these inputs of its ghosts computes their rows itself, as their owners do, and
// also their contribution to the gradient of the weights, which ranks sum anyway. So the layer
// that gathers first exchanges nothing in an epoch, in either direction. The inputs are fetched
// once, before the first epoch. NeutronStar (Wang et al., SIGMOD'22, §4) calls this cached
// dependencies.
//
// For the second layer that gathers, a rank also needs the edges into its ghosts, and the inputs
// of their neighbours; for the third one those of another hop. The rank's halo then has several
// hops. The rows of hop h are computed for all local layers but the last h-1.

// localGhosts are the ghosts of a rank that computes their rows up to model.Spec.GhostLayer. The zero
// value has none: all layers that gather exchange rows.
type localGhosts struct {
	layer     int          // GhostLayer
	near      int          // ghosts with edges into own vertices, the first ones
	store     *model.Store // of the ghosts' values up to layer
	levels    []localLevel
	lists     kernels.Lists   // their output, if features are gathered as lists
	intervals []*interval     // pieces, by hop
	edges     *graphwork.Work // into ghosts, from ghosts and from own vertices; nil with one level
	added     kernels.Mat     // gradients of ghosts along the edges into own vertices, with several levels
	mixed     mixedGhosts     // without pieces if all rows of the shard's ghosts are computed
}

// localLevel is a layer that gathers, and the stages before and after its gather.
type localLevel struct {
	layer             int
	pieces, gathering int        // pieces whose rows the layer gathers, and for which it gathers
	forward, backward []model.Do // stages of a piece
}

// Purposes of the memory for ghosts' features and their cached ÂX.
const (
	GhostFeatures = "features of ghosts, kept"
	GhostInput    = "ÂX of ghosts, kept"
	GhostEdges    = "edges of ghosts, kept"
	GhostPlaces   = "places of ghosts, computed or received"
)

// newLocalGhosts allocates the values of ghosts whose rows are computed here. r is the exact route. All memory comes from a.
func (s *lockstep) newLocalGhosts(e *Engine, r *route, o graphwork.Options, rows codec.Codec, a *mapped.Arena) (k localGhosts) {
	spec := s.store.Network.Spec
	if spec.LocalLayers == 0 { // such as the network that computes ÂX
		return k
	}
	ops, h := s.adder, e.halo
	in := model.Place(ops, a.For(GhostFeatures), e.ghostFeatures, h.ids, h.localIDs(e, a))
	k.layer, k.near = spec.GhostLayer(), e.Shard.NumGhosts()
	k.store = model.NewStore(s.store.Network, in, model.Emission, ops, a.For(Activations))
	if !e.ghostInput.IsNil() {
		k.store.UseInput(e.ghostInput)
	}
	if k.lists = k.store.Lists(a.For(graphwork.Lists)); k.store.Network.Lists() {
		r.graph.Layer(k.layer).UseGhostLists(k.lists)
	}
	hops := k.newIntervals(s, h)
	forward, backward := s.store.Network.EmissionStages()
	for at, layer := range spec.GatherLayers()[:spec.LocalLayers] {
		level := localLevel{layer: layer, pieces: hops[spec.LocalLayers-1-at], forward: forward[at], backward: backward[at]}
		if at < spec.LocalLayers-1 {
			level.gathering = hops[spec.LocalLayers-2-at]
		}
		k.levels = append(k.levels, level)
	}
	if len(k.levels) > 1 {
		o.Reduction, o.Targets, o.Linked, o.First, o.Codes = nil, false, r.graph, map[int]int{}, nil // its columns are not in a file
		for at, level := range k.levels[:len(k.levels)-1] {
			o.First[level.layer] = h.ends[len(k.levels)-2-at]
		}
		k.edges = graphwork.New(k.store, h.edges, o, ops, a.For(GhostEdges))
	}
	if k.mixed = s.newMixedGhosts(e, r, k.layer, k.store.Rows, rows, a); spec.LocalShare == 0 && len(k.levels) > 1 {
		k.added = kernels.NewMat(ops, a.For(Activations), k.near, k.edges.MaxWidth())
	}
	return k
}

// newIntervals cuts the ghosts into pieces, and returns the number of pieces up to each hop.
func (k *localGhosts) newIntervals(s *lockstep, h *localHalo) (hops []int) {
	weights, sketch := kernels.Mat{}, len(s.intervals) == 0
	if sketch { // one piece, of the last hop, counts for all vertices
		weights = kernels.NewMat(s.adder, mapped.NewSketch(), s.store.Network.Spec.NumWeights(), 1)
	} else {
		weights = s.intervals[0].frame.Weights
	}
	first := 0
	for hop, end := range h.ends {
		bounds := ghostPieces(end - first)
		if sketch {
			bounds = make([]int, len(bounds))
			if hop == len(h.ends)-1 {
				first, bounds[len(bounds)-1] = 0, end
			}
		}
		for at, lo := range bounds[:len(bounds)-1] {
			i := &interval{index: len(k.intervals), lo: first + lo, hi: first + bounds[at+1], ops: s.adder}
			i.frame = k.store.Frame(i.lo, i.hi, s.adder, weights)
			k.intervals = append(k.intervals, i)
		}
		first, hops = end, append(hops, len(k.intervals))
	}
	return hops
}

// level returns the index in levels of layer l.
func (k *localGhosts) level(l int) int {
	return slices.IndexFunc(k.levels, func(level localLevel) bool { return level.layer == l })
}

// pieces returns the numbers of tasks that compute the ghosts' rows, by layer that gathers.
func (k *localGhosts) pieces() (list []int) {
	for _, level := range k.levels {
		list = append(list, level.pieces)
	}
	return list
}

// begin prepares a pass of route r along the edges from and into ghosts.
func (k *localGhosts) begin(r *route, p model.Pass) {
	if len(k.levels) == 0 || k.store.Network.Lists() {
		return
	}
	for at, level := range k.levels {
		l := r.graph.Layer(level.layer)
		rows := k.store.Emitted(level.layer, p)
		switch {
		case !r.rows[level.layer].placed:
			l.Ghosts = rows.Part(0, k.near)
		case !k.store.Network.Spec.Attends() && !k.store.Network.Gathering(level.layer).Relational:
			// The other layers keep them until the backward pass.
			l.Ghosts = k.mixed.ghostRows(l)
		}
		if at < len(k.levels)-1 {
			in := k.edges.Layer(level.layer)
			in.Rows, in.Ghosts = rows, l.Rows
		}
	}
	if len(k.levels) > 1 {
		k.edges.Begin(p, k.intervals[0].frame.Weights)
	}
}

// emit computes the rows of a piece of the ghosts.
func (k *localGhosts) emit(o kernels.Ops, s *lockstep, l *graphwork.Layer, t schedule.Task) {
	i := k.intervals[t.Interval]
	if k.store.Network.Lists() {
		i.frame.List(k.lists, s.pass.Pass, o)
		return
	}
	at := k.level(t.Layer)
	if at > 0 {
		before := k.levels[at-1].layer
		in, i := k.edges.Layer(before), i.graphIntervalOn(o, before)
		in.GatherOwn(i, s.pass.Pass)
		in.GatherGhosts(i, s.pass.Pass)
	}
	for _, d := range k.levels[at].forward {
		i.frame.Run(d, s.pass.Pass, o)
	}
	if n := min(i.hi, k.near) - i.lo; n > 0 && !s.pass.route.rows[t.Layer].placed {
		l.PublishGhosts(o, i.lo, n)
	}
	if t.Layer < k.layer {
		in := k.edges.Layer(t.Layer)
		in.Publish(i.graphIntervalOn(o, t.Layer), i.part(in.Rows))
	}
}

// grads computes the gradients of the rows of a piece of the ghosts: along the edges into own
// vertices, which mixedGhosts has done before, and into other ghosts.
func (k *localGhosts) grads(o kernels.Ops, s *lockstep, l *graphwork.Layer, t schedule.Task) {
	i := k.intervals[t.Interval]
	dst := i.part(k.store.Backward(t.Layer, model.EmittedGrad))
	near := min(i.hi, k.near) - i.lo // ghosts of own vertices
	at, last := i.graphIntervalOn(o, t.Layer), t.Layer == k.layer
	if at.Sources = t.Interval >= k.levels[k.level(t.Layer)].gathering; at.Sources {
		i.frame.ClearGathered(t.Layer, o)
	}
	if !last {
		k.edges.Layer(t.Layer).GatherBackward(at, s.pass.Pass)
	}
	switch {
	case s.pass.route.rows[t.Layer].placed:
		k.mixed.take(o, l, t.Layer, i, dst, !last)
	case last:
		l.GhostGrads(o, i.lo, dst)
	case near > 0:
		added := k.added.Reshape(k.added.Rows, l.Width).Part(i.lo, i.lo+near)
		l.GhostGrads(o, i.lo, added)
		o.Add(dst.Part(0, near), added)
	}
}

// emitBackward computes the contribution of a piece of the ghosts to the gradients of the
// weights, and the gradients that the gather before it needs.
func (k *localGhosts) emitBackward(o kernels.Ops, t schedule.Task, p model.Pass) {
	i, at := k.intervals[t.Interval], k.level(t.Layer)
	for _, d := range k.levels[at].backward {
		i.frame.Run(d, p, o)
	}
	if at > 0 && k.store.Network.GathersBackward(k.levels[at-1].layer) {
		before := k.levels[at-1].layer
		d := model.Do{Layer: before, Stage: model.ApplyBackward}
		k.edges.Layer(before).PublishGrads(i.graphIntervalOn(o, before), i.frame.At(d, model.GatheredGrad))
	}
}

// addGrads adds the gradients of own rows along edges into ghosts to those of an interval.
func (k *localGhosts) addGrads(s *lockstep, i *interval, l int) {
	if l >= k.layer || !s.pass.route.rows[l].computed {
		return
	}
	in := k.edges.Layer(l)
	k.edges.AddGhostGrads(i.ops, in, i.lo, i.part(s.pass.route.graph.Layer(l).Backward()))
}

// gradIntervals returns the intervals of ghosts that contribute to the gradient of a layer's
// weights.
func (k *localGhosts) gradIntervals(layer int) []*interval {
	if len(k.levels) == 0 || layer > k.layer || !k.store.Network.GathersBackward(k.layer) {
		return nil
	}
	last := len(k.intervals)
	for _, level := range k.levels { // pieces of the first level at or after the layer
		if level.layer >= layer {
			last = level.pieces
			break
		}
	}
	return k.intervals[:last]
}

// computesGhosts reports whether the ghosts' rows of the first gather are computed here.
func (e *Engine) computesGhosts() bool { return e.Network.LocalLayers > 0 && e.Peers.Size() > 1 }
