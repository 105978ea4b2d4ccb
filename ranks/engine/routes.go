package engine

import (
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/halo/refresh"
	"siafu/internal/mapped"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/graphwork"
	"siafu/ranks/params"
)

// route is the configuration of a pass: the edges it gathers along, the source of ghost rows,
// and its forward and backward tasks.
type route struct {
	graph          *graphwork.Work // nil if no layer gathers
	ghosts         halo.Collective // nil if no rows are exchanged
	exchange       *halo.Exchange  // of the exact route of several ranks, else nil
	keepsGradients bool            // gradients of ghosts are not returned
	localGhosts    localGhosts

	forwardWalk, backwardWalk, epochWalk *walk

	pieces    []int // bounds of the pieces of ghosts; the gradients of a piece are one task
	sumPieces []int // bounds of the pieces of sums for other ranks
}

// aggregates reports whether any layer gathers along the route.
func (r *route) aggregates() bool { return r.graph != nil }

// exchanges reports whether ranks exchange rows along the route.
func (r *route) exchanges() bool { return r.ghosts != nil }

// routes are the routes of the passes through a rank's vertices:
//
//	epochs of training      route of training
//	rows of all ghosts      exact
//	stale rows              graph of exact, a source of stale rows; gradients return, or not
//	gradients not returned  graph and source of exact
//	without ghosts          graph without edges between ranks, no source
//	--refresh auto          exact, or without ghosts, as tune.Phases chooses before each epoch
//	free mode               exact, whose source has the rows that other ranks push
//	a step of mini-batches  exact, of the step's own lockstep
//
// Each route has its own walks. Evaluations run the forward walk of exact, and measurements its epoch walk.
// An epoch of training runs the epoch walk of training, or only the backward walk if the evaluation was its
// forward pass.
type routes struct {
	exact, training *route
	alone           *route // without ghosts, of --refresh auto; else nil
}

// alternate reports whether some epochs are exact and others use no ghosts.
func (r *routes) alternate() bool { return r.alone != nil }

// connected reports whether ranks exchange rows in exact passes.
func (r *routes) connected() bool { return r.exact.exchanges() }

// discardStats discards the transfers of passes that belong to no epoch.
func (r *routes) discardStats() {
	if r.connected() {
		r.exact.exchange.TakeStats()
	}
}

// connectRoutes makes the routes of a run. reduction may be nil; all memory comes from a.
func (s *lockstep) connectRoutes(e *Engine, reduction *halo.Reduction, a *mapped.Arena) {
	forward := s.store.Memory() == model.Forward
	if e.Config.Mode == config.Free && !forward {
		s.useOnly(s.pushedRoute(e, a), e, a)
		return
	}
	o := graphwork.Options{Half: e.Config.Gather == "bf16", Reduction: reduction, Targets: true, Codes: e.codes}
	evaluates := e.Config.Alone() && e.Peers.Size() > 1 && e.Config.MeasureStaleness == 0 && e.Config.ServerCorrection == 0
	o.Forward = forward || evaluates
	s.prepare(e, o, e.Codecs[0], a)
	s.prepareMask(e, a)
	if r := s.inexactRoute(e, o, a); r != nil {
		a.Fill(func() { s.build(r, e.Config.Mode == "nopipe") })
		if s.routes.training = r; e.Config.Ghosts().Alternates() {
			s.routes.alone = r
		}
	}
	if !forward {
		a.Fill(func() { e.outline = s.outline(s.routes.training, e.Config.Mode == "nopipe") })
	}
	s.prepareMeasurement(e, a)
}

// useOnly makes r the only route, and builds its walks.
func (s *lockstep) useOnly(r *route, e *Engine, a *mapped.Arena) {
	s.routes = routes{exact: r, training: r}
	a.Fill(func() { s.build(r, e.Config.Mode == "nopipe") })
}

// prepare makes the exact route, whose rows pass through a codec, the only one. All memory comes from a.
func (s *lockstep) prepare(e *Engine, o graphwork.Options, rows codec.Codec, a *mapped.Arena) {
	r := &route{}
	if s.store.Network.GathersAny() {
		r.graph = graphwork.New(s.store, e.Shard, o, s.adder, a)
		if e.Peers.Size() > 1 {
			e.recordPlan(r.graph.Plan)
			r.exchange = halo.NewExchange(e.Peers, r.graph.Plan, rows, e.packers, e.workers.newOps(), a, r.graph.MaxWidth())
			r.localGhosts = s.newLocalGhosts(e, r, o, rows, a)
			always := halo.NewAlways(r.exchange, r.shapes(), e.Config.Seed)
			if k := &r.localGhosts; k.mixes() {
				always = always.Through(k.mixed.exchange, k.layer, r.graph.Layer(k.layer).Width, e.Config.Seed)
			}
			r.ghosts = always
			r.sumPieces = r.graph.SumPieces(pieceEdges)
			r.pieces = ghostPieces(r.graph.Plan.Ghosts)
		}
	}
	if e.fetches() && r.aggregates() {
		a.Fill(r.graph.ReadInOrder)
	}
	s.useOnly(r, e, a)
}

// inexactRoute returns the route of training without walks if it differs from the exact one, else nil. o has
// the options of the exact route.
func (s *lockstep) inexactRoute(e *Engine, o graphwork.Options, a *mapped.Arena) *route {
	exact, policy := s.routes.exact, e.Config.Ghosts()
	if !exact.exchanges() || e.Config.Exact() || e.Config.Mode == config.Free || len(exact.shapes()) == 0 {
		return nil
	}
	r := &route{graph: exact.graph, ghosts: exact.ghosts, localGhosts: exact.localGhosts, pieces: exact.pieces,
		sumPieces: exact.sumPieces, keepsGradients: !e.Config.Returns()}
	switch {
	case policy.NoGhosts() || policy.Alternates():
		o.Alone, o.Forward, o.Reduction = true, false, nil
		r.graph, r.ghosts = graphwork.New(s.store, e.Shard, o, s.adder, a), nil
	case !policy.Exact(): // else only the gradients of ghosts differ
		history := halo.HistoryOptions{
			Shapes: r.shapes(), Seed: e.Config.Seed, Comm: e.Peers, Plan: r.graph.Plan, Codec: e.Codecs[0],
			Team: e.packers, Ops: s.adder, Arena: a,
		}
		r.ghosts = e.predicted(policy.NewSource(history), history, r, s.idleGhosts(r.graph.MaxWidth()))
	}
	return r
}

// pushedRoute returns the route of free mode, without walks.
func (s *lockstep) pushedRoute(e *Engine, a *mapped.Arena) *route {
	r := &route{keepsGradients: true}
	if s.store.Network.GathersAny() {
		r.graph = graphwork.New(s.store, e.Shard, graphwork.Options{Half: e.Config.Gather == "bf16", Targets: true}, s.adder, a)
		if e.Peers.Size() > 1 {
			r.sumPieces = r.graph.SumPieces(pieceEdges)
			r.ghosts = refresh.NewPushed(refresh.BoundedOptions{
				Rank: e.Peers.Rank(), Shapes: r.graph.Shapes(), Plan: r.graph.Plan, Codec: e.Codecs[0], Seed: e.Config.Seed,
				Outbox: e.outbox, Tag: params.TagAsync,
			}, e.Config.Pushes(), s.adder, a)
		}
	}
	return r
}

// returnsGradients reports whether gradients of ghosts return to their owners along the route.
func (r *route) returnsGradients() bool { return r.exchanges() && !r.keepsGradients }

// awaitsGradients reports whether gradients of a layer's rows arrive from other ranks.
func (r *route) awaitsGradients(l int) bool {
	return r.returnsGradients() && (!r.localGhosts.covers(l) || r.localGhosts.receives(l))
}

// shapes returns the layers that gather along a route.
func (r *route) shapes() []halo.Shape {
	var list []halo.Shape
	for _, l := range r.graph.Shapes() {
		l.Backward = l.Backward && !r.keepsGradients
		if !r.localGhosts.covers(l.Layer) {
			list = append(list, l)
		}
	}
	return list
}

// reserveResiduals allocates the residuals of lossy codecs in training. With phases, exact
// epochs train too.
func (r *routes) reserveResiduals() {
	training := r.training
	if r.alternate() {
		training = r.exact
	}
	if !training.exchanges() {
		return
	}
	for _, l := range training.graph.Shapes() {
		l.Backward = l.Backward && !training.keepsGradients
		if !training.localGhosts.covers(l.Layer) || training.localGhosts.receives(l.Layer) {
			training.ghosts.Reserve(l)
		}
	}
}
