package engine

import (
	"slices"
	"time"

	"siafu/halo"
	"siafu/halo/refresh"
	"siafu/internal/mapped"
	"siafu/internal/signals"
	"siafu/internal/wire"
	"siafu/ranks/params/protocol"
	"siafu/ranks/world"
)

// freeRank is a graph rank that trains its part fully asynchronously (DIGEST-A, ICLR'23
// submission, §3.2). It is the params.Source of its trainer. In each epoch the rank fetches the
// newest weights, runs one local epoch as in synchronous training, with the newest pushed ghost rows,
// and sends its gradient. Between tasks the rank processes messages of other ranks. A freeRank and
// its ghost rows exist until the end of the run.
//
// The server counts epochs: one epoch is as many updates as there are graph ranks. A line
// of metrics is written when the same number of metrics messages has arrived, with the
// results of the newest pass of each rank.
type freeRank struct {
	t *trainer
	transport
	runner        *protocol.Runner
	pushed        pushedRows
	runEpochs     int    // epochs of the run
	trained       int    // the last epoch of this rank in earlier stretches
	continues     bool   // no message has ended the stretch yet
	awaitsWeights bool   // the rank waits for weights
	left          []bool // by graph rank: it sends no more messages in this stretch
	results       rankResults
	epochs        int // last known number of epochs of the run at the end of the stretch
}

// pushedRows takes the rows that other ranks push.
type pushedRows interface {
	Accept(from int, message []byte) (s halo.Slot, due bool, err error)
	// Taken records that a rank has stored the rows of a layer. It reports whether this rank has sent them.
	Taken(from, layer int) bool
}

// rankResults are rank 0's results of all ranks since the last line.
type rankResults struct {
	reporting
	newest          [][]float64   // newest findings by rank, nil before its first tally
	sum             tally         // sum of the other numbers of the tallies
	receivedTallies int           // number of tallies since the last line
	weights         []float32     // weights of this rank's newest pass
	queued          []queuedTally // tallies received after the end of the stretch
	lastEpoch       int           // last known epoch with a line
}

type queuedTally struct {
	from    int
	numbers tally
	weights []float32 // weights of the pass, if from is 0
}

// Pull implements params.Source: it receives the newest weights of the server.
func (f *freeRank) Pull(int, []float32) error {
	f.awaitsWeights = true
	fetch := []protocol.Message{f.runner.Fetch()}
	if _, err := f.poll(); err != nil { // a rank without ghosts has not polled since its last epoch
		return err
	}
	if err := f.deliver(fetch); err != nil {
		return err
	}
	return f.dispatchUntil(func() bool { return !f.awaitsWeights })
}

// Step implements params.Source: it sends the gradients to the server.
func (f *freeRank) Step(_ int, grad []float32) error {
	for l, at := range slices.Backward(f.t.layers) {
		if err := f.deliver([]protocol.Message{f.runner.Gradient(l, grad[at.Lo:at.Hi])}); err != nil {
			return err
		}
	}
	return nil
}

// State implements params.Source. The server has the optimiser's state.
func (f *freeRank) State() ([][]float32, error) { return nil, nil }

// newFreeRank makes a rank that continues after an epoch of the run. Memory comes from a. Collective over
// the graph ranks.
func (e *Engine) newFreeRank(trained int, a *mapped.Arena) (*freeRank, error) {
	part := *e
	part.Arena = a
	f := &freeRank{pushed: noRows{}, runEpochs: e.Config.Epochs, trained: trained}
	f.results.newest = make([][]float64, e.Peers.Size())
	t, err := part.trainer(f, nil, syncMemory(e.Config, e.Peers.Size()))
	if err != nil {
		return nil, err
	}
	f.t, t.countsTraining = t, true
	t.before, t.after = hooks{f.endStretch}, hooks{f.sendTally}
	if pushed, ok := t.routes.training.ghosts.(*refresh.Pushed); ok {
		f.pushed = pushed
		pushed.Connect(freeMail{f})
	}
	e.values = part.values
	return f, nil
}

// begin implements asyncTraining.begin.
func (f *freeRank) begin(s stretch) (stretcher, error) {
	f.continues = true
	f.transport, f.epochs, f.left = s.transport, s.epochs, make([]bool, s.setting.Graph())
	f.handler, f.left[f.world.Rank()] = f, true
	f.runner = protocol.NewRunner(f.setting, f.world.Rank(), f.trained, f.t.net.Layers(), f.t.net.NumWeights())
	// The findings and weights of the previous stretch count until newer ones arrive.
	f.results = rankResults{reporting: s.reporting, newest: f.results.newest, weights: f.results.weights, sum: newTally(),
		lastEpoch: s.epochs}
	return f, nil
}

// activity implements stretcher.
func (f *freeRank) activity() string { return f.t.steps.activity() }

// train implements stretcher.
func (f *freeRank) train() ([]float32, error) {
	f.results.start = time.Now()
	if err := f.t.loop(f.runner.Epoch() + 1); err != nil {
		return nil, err
	}
	f.trained = f.runner.Epoch()
	return f.finalWeights()
}

// endStretch ends the stretch after the server has ended it. It is a hook.
func (f *freeRank) endStretch(*epochState) (leave bool, err error) { return !f.continues, nil }

// sendTally sends the results of this rank's epoch to rank 0. It is a hook.
func (f *freeRank) sendTally(*epochState) (leave bool, err error) {
	numbers := newTally()
	for _, i := range f.t.intervals {
		numbers.findings().add(&i.loss, f.results.training)
	}
	numbers.measure(f.t.takeStats(), f.t.tensor, f.t.workers)
	epoch, ask := f.runner.Epoch(), f.serverRequest
	f.serverRequest = signals.None
	if f.world.Rank() == 0 {
		numbers.addRequest(ask)
		return false, f.takeTally(queuedTally{numbers: numbers, weights: slices.Clone(f.t.flat)})
	}
	numbers.addRequest(max(ask, f.results.saver.Pending(epoch, true)))
	return false, f.send(0, tallyMessage(epoch, numbers))
}

// takeTally processes the tally of one rank, on rank 0.
func (f *freeRank) takeTally(t queuedTally) error {
	s := &f.results
	if s.ranks == 0 || len(t.numbers) != len(s.sum) {
		return wire.Mismatch("train", "malformed metrics message from rank %d (%d values)", t.from, len(t.numbers))
	}
	s.queued = append(s.queued, t)
	return f.report()
}

// report reports the epochs with enough received tallies.
func (f *freeRank) report() error {
	s := &f.results
	for len(s.queued) > 0 && s.reportedEpoch < s.lastEpoch {
		next := s.queued[0]
		s.queued = s.queued[1:]
		if s.reportedEpoch > 0 || s.newest[next.from] == nil { // the first line is of the first weights
			s.newest[next.from] = slices.Clone(next.numbers[:findingsSize])
			if next.from == 0 {
				s.weights = next.weights
			}
		}
		clear(next.numbers[:findingsSize])
		s.sum.merge(next.numbers)
		if s.receivedTallies++; s.receivedTallies < s.ranks {
			continue
		}
		s.receivedTallies = 0
		s.reportedEpoch++
		s.sum.addRequest(s.saver.Pending(s.reportedEpoch, true))
		if s.weights == nil { // this rank is still in its first epoch
			s.weights = slices.Clone(f.t.flat)
		}
		s.versions[s.reportedEpoch] = s.weights
		if err := s.reportEpoch(s.reportedEpoch, s.combinedTally(), f.stop); err != nil {
			return err
		}
	}
	return nil
}

// combinedTally returns the sum of tallies with the results of the newest pass of each rank
// that has finished one. The next sum begins from zero.
func (s *rankResults) combinedTally() tally {
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

// stop ends the stretch with the server's current epoch. Rank 0 receives its number with the
// last weights.
func (f *freeRank) stop() error {
	if !f.continues {
		return nil
	}
	f.results.lastEpoch = f.results.reportedEpoch
	return f.deliver([]protocol.Message{f.runner.End(f.results.reportedEpoch)})
}

// finalWeights sends wire.Leaving, waits until all ranks have sent it, and returns the weights
// after the last epoch.
func (f *freeRank) finalWeights() ([]float32, error) {
	f.epochs = (f.runner.Version() - 1) / f.setting.Graph()
	if err := f.deliver([]protocol.Message{f.runner.Leave()}); err != nil {
		return nil, err
	}
	for r := range f.left {
		if r == f.world.Rank() {
			continue
		}
		if err := f.send(r, wire.Message{Kind: wire.Leaving}); err != nil {
			return nil, err
		}
	}
	if err := f.dispatchUntil(func() bool {
		return !slices.Contains(f.left, false) && f.localServer.Done()
	}); err != nil {
		return nil, err
	}
	f.results.lastEpoch = f.epochs
	if err := f.report(); err != nil {
		return nil, err
	}
	return f.t.flat, f.outbox.Settle()
}

// verdict implements stretcher.
func (f *freeRank) verdict(weights []float32) Verdict {
	return f.results.verdict(f.epochs, f.runEpochs, weights)
}

// handleRows implements messageHandler.
func (f *freeRank) handleRows(m world.Message) error {
	_, _, err := f.pushed.Accept(m.Source, m.Data)
	return err
}

// handleWire implements messageHandler.
func (f *freeRank) handleWire(from int, m wire.Message) error {
	switch {
	case m.Kind == wire.Tally:
		return f.takeTally(queuedTally{from: from, numbers: wire.Elements[float64](m.Body)})
	case m.Kind == wire.Leaving && from < len(f.left):
		f.left[from] = true
		return nil
	case m.Kind == wire.RowsStored && f.pushed.Taken(from, m.Numbers[0]):
		return nil
	}
	return wire.Unexpected("train", from, m.Kind)
}

// handleProtocol implements messageHandler.
func (f *freeRank) handleProtocol(m protocol.Message) error {
	f.serverRequest = max(f.serverRequest, signals.Request(m.Ask))
	trains, err := f.runner.Take(m)
	if err != nil {
		return err
	}
	copy(f.t.flat, m.Values)
	f.continues, f.awaitsWeights = trains, false
	return nil
}

// freeMail is the interface of a free rank to its source of ghosts.
type freeMail struct{ f *freeRank }

// Poll implements refresh.MessagePump.
func (p freeMail) Poll() error {
	_, err := p.f.poll()
	return err
}

// Await implements refresh.MessagePump.
func (p freeMail) Await() error { return p.f.dispatchNext() }

// ConfirmStored implements refresh.MessagePump.
func (p freeMail) ConfirmStored(from, layer int) error {
	return p.f.send(from, wire.Message{Kind: wire.RowsStored, Numbers: wire.Numbers{layer}})
}

func (f *freeRank) awaitedRanks() []int {
	if f.awaitsWeights {
		return []int{f.worldRank(f.setting.Server(0))}
	}
	var ranks []int
	for r, gone := range f.left {
		if !gone {
			ranks = append(ranks, r)
		}
	}
	return ranks
}
