package engine

import (
	"slices"
	"time"

	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/halo/refresh"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
	"siafu/ranks/params"
	"siafu/ranks/params/protocol"
	"siafu/ranks/schedule"
	"siafu/ranks/signals"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
)

// free is a graph rank that trains its part fully asynchronously (DIGEST-A, ICLR'23
// submission, §3.2). It takes the newest weights, runs one epoch of its own as in
// synchronous training, with the newest pushed ghost rows, and sends its gradient. Between
// its tasks it processes messages of other ranks. It exists as long as the run, and so do
// its ghost rows.
//
// The server counts epochs: one epoch is as many updates as there are graph ranks. A line
// of metrics is written when the same number of metrics messages has arrived, with the
// results of the newest pass of each rank.
type free struct {
	*trainer
	mail
	runner *protocol.Runner
	pushed *refresh.Pushed // nil where no ghosts are gathered
	all    int             // epochs of the run
	trains bool            // the stretch continues, as far as is known
	waits  bool            // for weights
	gone   []bool          // by graph rank: nothing more comes in this stretch
	own    standing
	epochs int // of the run at the end of the stretch, as far as is known
}

// standing is what rank 0 knows of all ranks since the last line.
type standing struct {
	tallies
	newest  [][]float64 // findings by rank, nil before its first tally
	sum     []float64   // what else tallies tell, added up
	heard   int         // tallies since the last line
	weights []float32   // of this rank's newest pass
	held    []heldTally // that came behind the end of the stretch
	end     int         // no line after this epoch is due, as far as is known
}

type heldTally struct {
	from    int
	numbers []float64
	weights []float32 // of the pass, rank 0's
}

// deaf is the source of weights of a trainer whose gradients are sent when an epoch is
// over.
type deaf struct{ params.Source }

// Push implements params.Source.
func (deaf) Push(int, int, []float32) error { return nil }

// connectFree makes the only route of fully asynchronous ranks.
func (s *lockstep) connectFree(e *Engine, a *mapped.Arena) {
	way := &route{keeps: true}
	s.route, s.training, s.exact = way, way, way
	if s.store.Network.GathersAny() {
		way.graph = graphwork.New(s.store, e.Shard, graphwork.Options{Half: e.Config.Gather == "bf16", Targets: true}, s.adder, a)
		if e.Peers.Size() > 1 {
			way.sumPieces = way.graph.SumPieces(pieceEdges)
			way.ghosts = refresh.NewPushed(refresh.BoundedOptions{
				Rank: e.Peers.Rank(), Shapes: way.graph.Shapes(), Plan: way.graph.Plan, Codec: e.Codecs[0], Seed: e.Config.Seed,
				Outbox: e.outbox, Tag: params.TagAsync,
			}, e.Config.Pushes(), s.adder, a)
		}
	}
	a.Fill(func() { s.build(way, false) })
}

// free lets the rank continue after an epoch of the run, to the end of a stretch; it is
// made before the first one. Collective over the world.
func (e *Engine) free(trained, epochs int, m mail, t tallies, a *mapped.Arena) (*free, error) {
	f := e.runs
	if f == nil {
		part := *e
		part.Arena = a
		t, err := part.trainer(deaf{}, nil, inStep(e.Config))
		if err != nil {
			return nil, err
		}
		f = &free{trainer: t, all: e.Config.Epochs}
		f.pushed, _ = t.training.ghosts.(*refresh.Pushed)
		if f.pushed != nil {
			f.pushed.Connect(post{f})
		}
		e.runs, e.values = f, part.values
	}
	own := trained
	if f.runner != nil {
		own = f.runner.Epoch()
	}
	ranks := m.setting.Graph()
	f.trains = true
	f.mail, f.epochs, f.gone = m, epochs, make([]bool, ranks)
	f.to, f.gone[m.world.Rank()] = f, true
	f.runner = protocol.NewRunner(m.setting, m.world.Rank(), own, e.Network.Layers(), e.Network.NumWeights())
	newest, last := f.own.newest, f.own.weights // still the newest in another stretch
	if newest == nil {
		newest = make([][]float64, ranks)
	}
	f.own = standing{tallies: t, newest: newest, weights: last, sum: newTally(), end: epochs}
	return f, nil
}

// retire gives back the memory of the free rank, if there is one.
func (e *Engine) retire() {
	if e.lasting != nil {
		e.lasting.Free()
		e.lasting, e.runs = mapped.NewArena(), nil
	}
}

// train implements stretcher.
func (f *free) train() ([]float32, error) {
	f.own.start = time.Now()
	for {
		if err := f.next(); err != nil {
			return nil, err
		}
		if !f.trains {
			return f.last()
		}
		if err := f.epoch(); err != nil {
			return nil, err
		}
	}
}

// next gets the newest weights.
func (f *free) next() error {
	f.waits = true
	fetch := []protocol.Message{f.runner.Fetch()}
	return f.timed(schedule.Update, f.runner.Epoch(), func() error {
		if _, err := f.poll(); err != nil { // a rank without ghosts has not looked since its last epoch
			return err
		}
		if err := f.deliver(fetch); err != nil {
			return err
		}
		return f.takeUntil(func() bool { return !f.waits })
	})
}

// epoch is one of this rank's own, with the weights that have come.
func (f *free) epoch() error {
	p := model.Pass{Epoch: f.runner.Epoch(), Train: true}
	if err := f.run(f.training, f.training.epochWalk, p, true); err != nil {
		return err
	}
	for l, at := range slices.Backward(f.layers) {
		if err := f.deliver([]protocol.Message{f.runner.Gradient(l, f.grad[at.Lo:at.Hi])}); err != nil {
			return err
		}
	}
	return f.tell()
}

// tell tells rank 0 what this rank's epoch has found.
func (f *free) tell() error {
	numbers := newTally()
	for _, i := range f.intervals {
		(*findings)(numbers).add(&i.loss, f.own.training)
	}
	if f.pushed != nil {
		s := f.pushed.TakeStats()
		numbers[tallyRaw], numbers[tallySent] = float64(s.RawBytes), float64(s.SentBytes)
	}
	copy(numbers[tallySpent:], tensor.TakeSpent(f.tensor).Numbers())
	copy(numbers[tallyTasks:], f.workers.take())
	epoch, ask := f.runner.Epoch(), f.own.ask
	f.own.ask = signals.None
	if f.world.Rank() == 0 {
		numbers[len(numbers)-1] = float64(ask)
		return f.takeTally(heldTally{numbers: numbers, weights: slices.Clone(f.flat)})
	}
	numbers[len(numbers)-1] = float64(max(ask, f.own.saver.Pending(epoch, true)))
	return f.send(0, wire{kind: wireTally, epoch: epoch, numbers: numbers})
}

// takeTally takes the tally of one rank, on rank 0.
func (f *free) takeTally(t heldTally) error {
	s := &f.own
	if s.ranks == 0 || len(t.numbers) != len(s.sum) {
		return fault.New(fault.Runtime, "train", "", "malformed metrics message from rank %d (%d values)", t.from, len(t.numbers)).
			Then("run the same siafu on all ranks")
	}
	s.held = append(s.held, t)
	return f.report()
}

// report reports the epochs of which enough tallies have come.
func (f *free) report() error {
	s := &f.own
	for len(s.held) > 0 && s.spoken < s.end {
		next := s.held[0]
		s.held = s.held[1:]
		if s.spoken > 0 || s.newest[next.from] == nil { // the first line tells of the first weights
			s.newest[next.from] = slices.Clone(next.numbers[:findingsSize])
			if next.from == 0 {
				s.weights = next.weights
			}
		}
		clear(next.numbers[:findingsSize])
		merge(s.sum, next.numbers)
		if s.heard++; s.heard < s.ranks {
			continue
		}
		s.heard = 0
		s.spoken++
		s.sum[len(s.sum)-1] = max(s.sum[len(s.sum)-1], float64(s.saver.Pending(s.spoken, true)))
		if s.weights == nil { // this rank is in its first epoch yet
			s.weights = slices.Clone(f.flat)
		}
		s.versions[s.spoken] = s.weights
		if err := s.speak(s.spoken, s.whole(), f.stop); err != nil {
			return err
		}
	}
	return nil
}

// whole is the sum of tallies with what the newest passes of all ranks have found,
// those that have ended one. The next begins from nothing.
func (s *standing) whole() []float64 {
	sum := s.sum
	s.sum = newTally()
	for _, found := range s.newest {
		for k, x := range found {
			sum[k] += x
		}
	}
	if seen := sum[seenTraining]; seen > 0 && seen < float64(s.training) {
		sum[trainLoss] *= float64(s.training) / seen
	}
	return sum
}

// stop ends the stretch with the epoch that is under way on the server. Which one
// that is rank 0 learns with the last weights.
func (f *free) stop() error {
	if !f.trains { // it has ended
		return nil
	}
	f.own.end = f.own.spoken
	return f.deliver([]protocol.Message{f.runner.End(f.own.spoken)})
}

// last says farewell, waits until all ranks have, and returns the weights after the
// last epoch.
func (f *free) last() ([]float32, error) {
	f.epochs = (f.runner.Version() - 1) / f.setting.Graph()
	if err := f.deliver([]protocol.Message{f.runner.Leave()}); err != nil {
		return nil, err
	}
	for r := range f.gone {
		if r == f.world.Rank() {
			continue
		}
		if err := f.send(r, wire{kind: wireGone}); err != nil {
			return nil, err
		}
	}
	if err := f.takeUntil(func() bool { return !slices.Contains(f.gone, false) && (f.hosted == nil || f.hosted.Done()) }); err != nil {
		return nil, err
	}
	f.own.end = f.epochs
	if err := f.report(); err != nil {
		return nil, err
	}
	return f.flat, f.outbox.Settle()
}

// verdict implements stretcher.
func (f *free) verdict(weights []float32) Verdict { return f.own.verdict(f.epochs, f.all, weights) }

// takeRows implements addressee.
func (f *free) takeRows(m world.Message) error {
	if f.pushed == nil {
		return fault.New(fault.Runtime, "train", "", "unexpected ghost rows from rank %d: the network has no aggregation", m.Source).
			Then("run the same siafu on all ranks")
	}
	_, _, err := f.pushed.Accept(m.Source, m.Data)
	return err
}

// takeWire implements addressee.
func (f *free) takeWire(from int, m wire) error {
	switch {
	case m.kind == wireTally:
		return f.takeTally(heldTally{from: from, numbers: m.numbers})
	case m.kind == wireGone && from < len(f.gone):
		f.gone[from] = true
		return nil
	case m.kind == wireTaken && f.pushed != nil && f.pushed.Taken(from, m.epoch):
		return nil
	}
	return fault.New(fault.Runtime, "train", "", "unexpected message from rank %d (kind %d)", from, m.kind).
		Then("run the same siafu on all ranks")
}

// protocol implements addressee.
func (f *free) protocol(m protocol.Message) error {
	f.own.ask = max(f.own.ask, signals.Request(m.Ask))
	trains, err := f.runner.Take(m)
	if err != nil {
		return err
	}
	copy(f.flat, m.Values)
	f.load()
	f.trains, f.waits = trains, false
	return nil
}

// post is a free rank's mail, as its ghosts see it.
type post struct{ f *free }

// Poll implements refresh.Mail.
func (p post) Poll() error {
	_, err := p.f.poll()
	return err
}

// Await implements refresh.Mail.
func (p post) Await() error { return p.f.await() }

// Took implements refresh.Mail.
func (p post) Took(from, layer int) error { return p.f.send(from, wire{kind: wireTaken, epoch: layer}) }

// owing are the ranks that a long wait is for.
func (f *free) owing() []int {
	if f.waits {
		return []int{f.place(f.setting.Server(0))}
	}
	var ranks []int
	for r, gone := range f.gone {
		if !gone {
			ranks = append(ranks, r)
		}
	}
	return ranks
}
