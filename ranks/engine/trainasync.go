package engine

import (
	"encoding/json"
	"slices"
	"time"

	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/checkpoint"
	"siafu/ranks/config"
	"siafu/ranks/graphwork"
	"siafu/ranks/inject"
	"siafu/ranks/params"
	"siafu/ranks/params/protocol"
	"siafu/ranks/runfolder"
	"siafu/ranks/stopping"
	"siafu/ranks/world"
)

// TrainAsync trains asynchronously after the given number of trained epochs, in stretches,
// until the run ends or continues synchronously. It returns the last verdict and the weights
// after its epoch. Every graph rank then has rank 0's history, which has ended unless the run
// was asked to stop or continues. u updates the weights if no rank is a server: on rank 0, nil
// on others. Collective over the world at the end of each stretch, with servers that also call
// BroadcastVerdict.
func (e *Engine) TrainAsync(trained int, weights []float32, u *params.Updater, h *stopping.History, s Saver) ([]float32, Verdict, error) {
	t := &asyncTraining{e: e, updater: u, history: h, saver: s, arena: mapped.NewArena(), begin: e.newAsyncRank}
	defer t.arena.Free()
	if e.Config.Mode == config.Free {
		f, err := e.newFreeRank(trained, t.arena)
		if err != nil {
			return nil, Verdict{}, err
		}
		t.begin = f.begin
	}
	for {
		last, v, err := t.stretch(trained, weights)
		if err != nil {
			return nil, v, err
		}
		if v.Save {
			if err := t.save(v, last); err != nil || v.Stop {
				return last, v, err
			}
		}
		switch v.Next {
		case EndRun:
			t.arena.Free() // before evaluations
			return last, v, e.evaluateAsync(v.Epoch, last, h)
		case SwitchToSync:
			h.Within = 0
			return last, v, e.broadcastHistory(h)
		}
		weights, trained = last, v.Epoch
	}
}

// asyncTraining is a series of stretches.
type asyncTraining struct {
	e       *Engine
	updater *params.Updater // of the server that rank 0 hosts
	history *stopping.History
	saver   Saver
	begin   func(stretch) (stretcher, error) // returns the rank of a stretch; collective over the world
	arena   *mapped.Arena                    // of a rank that exists until the end of the run
}

// stretcher is a graph rank that trains a stretch of epochs asynchronously.
type stretcher interface {
	// train trains to the end of the stretch and returns the weights after it.
	train() ([]float32, error)
	// verdict returns rank 0's verdict on the stretch.
	verdict(weights []float32) Verdict
	activity() string
	awaitedRanks() []int
}

// stretch is what a rank needs for a stretch of epochs: of the run, or until the next checkpoint.
type stretch struct {
	transport
	reporting
	trained, epochs int           // before and after the stretch
	arena           *mapped.Arena // of the stretch
}

// stretch trains until all ranks have finished the same epoch, and returns the weights
// after it and rank 0's verdict.
func (t *asyncTraining) stretch(trained int, weights []float32) ([]float32, Verdict, error) {
	e, arena := t.e, mapped.NewArena()
	defer arena.Free()
	next, err := t.next(trained, weights, arena)
	if err != nil {
		return nil, Verdict{}, err
	}
	f, err := t.begin(next)
	if err != nil {
		return nil, Verdict{}, err
	}
	defer e.describeWaits(f.activity, f.awaitedRanks, e.World)()
	last, err := f.train()
	e.arrays = max(e.arrays, e.Arena.Used()+t.arena.Used()+arena.Used())
	if err != nil {
		return nil, Verdict{}, err
	}
	v, err := BroadcastVerdict(e.World, f.verdict(last))
	return slices.Clone(last), v, err
}

// next returns the stretch after an epoch. Collective over the world.
func (t *asyncTraining) next(trained int, weights []float32, a *mapped.Arena) (stretch, error) {
	e := t.e
	r := reporting{
		reporter: e.Reporter, training: e.Shard.TrainTotal, reportedEpoch: trained, versions: map[int][]float32{},
		history: t.history, saver: t.saver,
	}
	c, intervals, epochs := e.Config, 1, LastEpoch(t.saver.Every(), trained, e.Config.Epochs)
	if c.Mode != config.Free {
		intervals = e.workers.intervals(&c, e.Network, e.Shard.NumOwn(), int64(len(e.Shard.In.Cols)))
	}
	setting, err := params.AsyncSetting(e.World, e.Peers.Size(), intervals, StalenessBound(c), trained)
	if err != nil {
		return stretch{}, err
	}
	m := transport{world: e.World, outbox: e.outbox, setting: setting, localServer: noServer{},
		decodeBuffer: make([]float32, e.Network.NumWeights())}
	if e.World.Rank() == 0 {
		r.ranks = e.Peers.Size()
		if m.hostedByRank0() {
			m.localServer = NewMachine(c, setting, 0, params.Layers(e.Network), slices.Clone(weights), t.updater)
		}
	}
	return stretch{m, r, trained, epochs, a}, nil
}

// StalenessBound returns the maximal distance in epochs between ranks, which their server enforces.
func StalenessBound(c config.Config) int {
	if c.Mode == config.Free {
		return c.DelayBound
	}
	return c.MostStaleness()
}

// NewMachine returns the index-th server of an asynchronous stretch that starts after
// Trained epochs.
func NewMachine(c config.Config, setting protocol.Setting, index int, layers []protocol.Range, weights []float32,
	u protocol.Updater) params.StateMachine {
	if c.Mode == config.Free {
		every, _ := checkpoint.ParseInterval(c.CheckpointEvery) // checked by Validate
		last := LastEpoch(every, setting.Trained, c.Epochs)
		s := protocol.NewEager(setting, last, layers, weights, u)
		if last == c.Epochs {
			s.Average(c.MeanEpochs() * (setting.Graph() - 1))
		}
		return s
	}
	return protocol.New(setting, index, layers, weights, u)
}

// save writes the checkpoint at the end of a stretch, on rank 0.
func (t *asyncTraining) save(v Verdict, weights []float32) error {
	e := t.e
	e.Fault.At(inject.Save, v.Epoch)
	began := time.Now()
	slots, err := t.optimiserState()
	if err != nil {
		return err
	}
	if e.World.Rank() == 0 {
		t.saver.Save(e.state(v.Epoch, weights, slots, t.history), v.Stop)
	}
	t.saver.Served(time.Since(began))
	return nil
}

// optimiserState returns the optimiser's state at the end of a stretch, on rank 0.
func (t *asyncTraining) optimiserState() ([][]float32, error) {
	switch e := t.e; {
	case e.World.Rank() > 0:
		return nil, nil
	case e.World.Size() == e.Peers.Size(): // no rank is a server
		return t.updater.State(), nil
	default:
		return params.ReceiveState(e.World, e.Peers.Size(), e.Network.NumWeights())
	}
}

// evaluateAsync evaluates, synchronously with the other ranks, the weights of the best
// training passes and, unless the run has diverged, the weights after the last epoch. The
// better ones become the run's. Collective over the graph ranks.
func (e *Engine) evaluateAsync(epochs int, last []float32, h *stopping.History) error {
	t, err := e.trainer(nil, nil, model.Forward)
	if err != nil {
		return err
	}
	if err := e.broadcastHistory(h); err != nil {
		return err
	}
	best, epoch, stopped := h.Best, h.BestLine.Epoch, h.StoppedBy
	h.Forget()
	if best != nil {
		line, err := t.evaluateWeights(epoch, best)
		if err != nil {
			return err
		}
		h.Observe(line, t.flat)
	}
	if stopped == stopping.ByDivergence {
		return nil
	}
	line, err := t.evaluateWeights(epochs+1, last)
	if err != nil {
		return err
	}
	h.Conclude(line, t.flat, stopped)
	t.history = h
	return t.evaluateBest()
}

// evaluateWeights evaluates the weights at the start of an epoch. Collective over the graph ranks.
func (t *trainer) evaluateWeights(epoch int, weights []float32) (runfolder.Epoch, error) {
	copy(t.flat, weights)
	t.loadWeights()
	line := runfolder.Epoch{Epoch: epoch}
	_, err := t.evaluate(&line, true)
	return line, err
}

// broadcastHistory gives all graph ranks rank 0's history. Collective over them.
func (e *Engine) broadcastHistory(h *stopping.History) error {
	var blob []byte
	if e.Peers.Rank() == 0 {
		var err error
		if blob, err = json.Marshal(sharedHistory{h.BestLine, h.Last, h.Record.Saved(), h.StoppedBy, h.Best != nil}); err != nil {
			return err
		}
	}
	blob, err := world.BcastBlob(e.Peers, blob, 0)
	if err != nil {
		return err
	}
	var m sharedHistory
	if err := json.Unmarshal(blob, &m); err != nil {
		return err
	}
	h.BestLine, h.Last, h.StoppedBy = m.Best, m.Last, m.StoppedBy
	if !m.HasBest {
		return nil
	}
	n := e.Network.NumWeights()
	h.Resume(append(make([]float32, 0, n), h.Best...)[:n], m.Best, m.Last, m.Record)
	return e.Peers.Bcast(mapped.Bytes(h.Best), 0)
}

// sharedHistory is the wire format of a history, without its weights.
type sharedHistory struct {
	Best, Last runfolder.Epoch
	Record     *checkpoint.Record
	StoppedBy  string
	HasBest    bool
}

// newAsyncRank makes the graph rank of a stretch in bounded asynchrony. It implements asyncTraining.begin.
func (e *Engine) newAsyncRank(s stretch) (stretcher, error) {
	c, net, rank, a := e.Config, e.Network, e.World.Rank(), s.arena
	f := &asyncRank{cfg: c, transport: s.transport, resources: e.resources(rank), layers: make([]*graphwork.Layer, net.Layers())}
	f.delay, f.handler = newDelay(c, rank), f
	f.tallies = tallies{ownTallies: epochTallies{}, finished: map[int]int{}, reporting: s.reporting,
		received: receivedTallies{sums: epochTallies{}, count: map[int]int{}}}
	store := e.store(e.network(), model.Separate, a)
	if err := e.cacheInput(store, nil, a); err != nil {
		return nil, err
	}
	f.intervals = e.newIntervals(store, kernels.Mat{}, a)
	e.reserveBackend(store, f.intervals, a)
	if f.propagates = store.Network.GathersAny(); f.propagates {
		if err := f.prepare(e, store, s.trained, a); err != nil {
			return nil, err
		}
	}
	o := f.outline(store, e.Shard.NumGhosts())
	e.outline = o
	f.AsyncScheduler = NewAsyncScheduler(o, s.setting, rank, e.workers.pool.Workers(), net.NumWeights(), c.Linger, time.Now, f)
	f.Epochs, f.tasks = s.epochs, f.fusedWork(store, e.Tensor.RequestOptions())
	for k, i := range f.intervals {
		i.intervalState = &f.intervalStates[k]
	}
	return f, nil
}

// verdict implements stretcher.
func (f *asyncRank) verdict(weights []float32) Verdict {
	return f.tallies.verdict(f.Epochs, f.cfg.Epochs, weights)
}
