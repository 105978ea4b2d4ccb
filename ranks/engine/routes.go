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
	graph       *graphwork.Work // nil if no layer gathers
	ghosts      halo.Collective // nil if no rows are exchanged
	exchange    *halo.Exchange  // of the exact route of several ranks, else nil
	rows        []ghostRows     // by layer
	localGhosts localGhosts

	forwardWalk, backwardWalk, epochWalk *walk

	pieces    []int // bounds of the pieces of ghosts; the gradients of a piece are one task
	sumPieces []int // bounds of the pieces of sums for other ranks
}

// ghostRows is the origin of the rows of a layer's ghosts along a route. A layer with rows that are computed
// and rows that are received has both.
type ghostRows struct {
	received bool // from their owners
	returned bool // the gradients of received rows return to the owners
	computed bool // here, by localGhosts
	placed   bool // computed rows are put in the order of the ghosts, by mixedGhosts
}

// newGhostRows decides on the rows of the at-th layer that gathers. The first layers, up to local, compute
// their rows. If mixes, the last of them computes only some. exchanges and returns are of the route.
func newGhostRows(at, local int, mixes, exchanges, returns bool) ghostRows {
	g := ghostRows{computed: exchanges && at < local}
	g.placed = g.computed && mixes
	g.received = exchanges && (!g.computed || mixes && at == local-1)
	g.returned = g.received && returns
	return g
}

// ghostRows returns the origin of the ghost rows of each layer along a route.
func (s *lockstep) ghostRows(exchanges, returns bool) []ghostRows {
	spec, list, at := s.store.Network.Spec, make([]ghostRows, len(s.store.Network.Layers)), 0
	for l := range list {
		if s.gathers(l) {
			list[l] = newGhostRows(at, spec.LocalLayers, spec.LocalShare > 0, exchanges, returns)
			at++
		}
	}
	return list
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
	r := &route{rows: s.ghostRows(e.Peers.Size() > 1, true)}
	o.Provided = func(l int) bool { return r.rows[l].computed && !r.rows[l].placed }
	if s.store.Network.GathersAny() {
		r.graph = graphwork.New(s.store, e.Shard, o, s.adder, a)
		if e.Peers.Size() > 1 {
			e.recordPlan(r.graph.Plan)
			r.exchange = halo.NewExchange(e.Peers, r.graph.Plan, rows, e.packers, e.workers.newOps(), a, r.graph.MaxWidth())
			r.localGhosts = s.newLocalGhosts(e, r, o, rows, a)
			always := halo.NewAlways(r.exchange, r.shapes(), e.Config.Seed)
			if k := &r.localGhosts; r.rows[k.layer].placed {
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
		sumPieces: exact.sumPieces, rows: s.ghostRows(true, e.Config.Returns())}
	switch {
	case policy.NoGhosts() || policy.Alternates():
		o.Alone, o.Forward, o.Reduction = true, false, nil
		r.graph, r.ghosts, r.rows = graphwork.New(s.store, e.Shard, o, s.adder, a), nil, s.ghostRows(false, false)
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
	r := &route{rows: s.ghostRows(e.Peers.Size() > 1, false)}
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

// shapes returns the layers that gather along a route and compute none of the rows of ghosts.
func (r *route) shapes() []halo.Shape {
	var list []halo.Shape
	for _, l := range r.graph.Shapes() {
		if l.Backward = l.Backward && r.rows[l.Layer].returned; !r.rows[l.Layer].computed {
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
		if l.Backward = l.Backward && training.rows[l.Layer].returned; training.rows[l.Layer].received {
			training.ghosts.Reserve(l)
		}
	}
}
