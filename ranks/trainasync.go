package ranks

import (
	"encoding/json"
	"slices"

	"siafu/graph/mapped"
	"siafu/kernels"
	"siafu/ranks/checkpoint"
	"siafu/ranks/graphwork"
	"siafu/ranks/params"
	"siafu/ranks/params/protocol"
	"siafu/ranks/runfolder"
	"siafu/ranks/signals"
	"siafu/ranks/world"
)

// trainAsync is train in bounded asynchrony, stretch after stretch. Collective
// over the world at the end of each.
func (r *run) trainAsync(weights []float32) error {
	h, s := r.history(), r.newSaver()
	var u *params.Updater
	var err error
	if r.rank == 0 && r.Servers == 0 {
		if u, err = r.newUpdater(kernels.NewTeam(1)); err != nil {
			return err
		}
	}
	for trained := r.from.epoch; ; {
		last, v, err := r.stretch(trained, weights, u, h, s)
		if err != nil {
			return err
		}
		if v.save {
			if err := r.saveStretch(v, last, u, h, s); err != nil || v.stop {
				return err
			}
		}
		switch v.next {
		case ends:
			return r.judgeAsync(v.epoch, last, h)
		case inStep:
			return r.trainAfter(v.epoch, last, u, h)
		}
		weights, trained = last, v.epoch
	}
}

// stretch trains until all ranks have finished the same epoch, and returns the
// weights after it and what rank 0 says of it. Its memory is freed.
func (r *run) stretch(trained int, weights []float32, u *params.Updater, h *history, s *saver) ([]float32, verdict, error) {
	arena := mapped.NewArena()
	defer arena.Free()
	e, err := r.engine(trained, weights, u, arena)
	if err != nil {
		return nil, verdict{}, err
	}
	e.tallies.history, e.tallies.saver = h, s
	e.epochs = s.stretch(trained, e.epochs)
	e.world.SetLimits(r.explained(e.during, e.owing))
	defer e.world.SetLimits(r.limits)
	last, err := e.train()
	r.arrays = max(r.arrays, r.arena.Used()+arena.Used())
	if err != nil {
		return nil, verdict{}, err
	}
	v, err := r.pronounce(e.verdict(last))
	return slices.Clone(last), v, err
}

// stretch is the last epoch of a stretch that begins behind an epoch.
func (s *saver) stretch(trained, epochs int) int {
	if n := s.every.Epochs; n > 0 {
		return min(epochs, (trained/n+1)*n)
	}
	return epochs
}

// verdict is what rank 0 makes of a stretch that has led to these weights.
func (e *engine) verdict(weights []float32) verdict {
	t := &e.tallies
	v := verdict{epoch: e.epochs, next: again, save: true}
	switch {
	case t.ranks == 0:
		return verdict{}
	case t.stopped == byDivergence, !t.history.sound(e.epochs+1, weights):
		v.next, v.save = ends, false
	case t.stopped == byTarget, t.stopped == byPatience, e.epochs >= e.cfg.Epochs:
		v.next, v.save = ends, t.saver.every != checkpoint.Interval{}
		if t.stopped == byTarget || t.stopped == byPatience {
			t.history.stoppedBy = t.stopped
		}
	case t.stopped == switched:
		v.next, v.save = inStep, false
	case t.saver.asked == signals.Stop:
		v.stop = true
	}
	return v
}

// judgeAsync evaluates those weights with which the passes that trained were
// best, in step with the other ranks, and unless the run has diverged the
// weights after the last epoch; the better ones are the run's. Collective over
// the graph ranks.
func (r *run) judgeAsync(epochs int, last []float32, h *history) error {
	t := r.trainer(nil)
	if t.net.CacheInput {
		if err := r.keepInput(t.intervals, r.arena); err != nil {
			return err
		}
	}
	if err := r.shareHistory(h); err != nil {
		return err
	}
	t.cfg.Epochs = 0 // every evaluation is a pass of its own
	best, epoch, stopped := h.best, h.bestLine.Epoch, h.stoppedBy
	h.forget()
	if best != nil {
		line, err := t.weigh(epoch, best)
		if err != nil {
			return err
		}
		h.observe(line, t.flat)
	}
	if stopped != byDivergence {
		line, err := t.weigh(epochs+1, last)
		if err != nil {
			return err
		}
		h.conclude(line, t.flat, stopped)
	}
	r.voice.result(h)
	return nil
}

// weigh evaluates weights that an epoch starts from. Collective over the graph
// ranks.
func (t *trainer) weigh(epoch int, weights []float32) (runfolder.Epoch, error) {
	copy(t.flat, weights)
	t.load()
	line := runfolder.Epoch{Epoch: epoch}
	_, err := t.evaluate(&line)
	return line, err
}

// shareHistory gives all graph ranks what rank 0 knows. Collective over them.
func (r *run) shareHistory(h *history) error {
	var blob []byte
	if r.rank == 0 {
		var err error
		if blob, err = json.Marshal(sharedHistory{h.bestLine, h.last, h.record.saved(), h.stoppedBy, h.best != nil}); err != nil {
			return err
		}
	}
	blob, err := world.BcastBlob(r.peers, blob, 0)
	if err != nil {
		return err
	}
	var m sharedHistory
	if err := json.Unmarshal(blob, &m); err != nil {
		return err
	}
	h.bestLine, h.last, h.stoppedBy = m.Best, m.Last, m.StoppedBy
	if !m.HasBest {
		return nil
	}
	h.record = recalled(m.Record, m.Best)
	h.best = append(make([]float32, 0, r.net.NumWeights()), h.best...)[:r.net.NumWeights()]
	return r.peers.Bcast(mapped.Bytes(h.best), 0)
}

// sharedHistory is a history as it travels, without its weights.
type sharedHistory struct {
	Best, Last runfolder.Epoch
	Record     *checkpoint.Record
	StoppedBy  string
	HasBest    bool
}

// engine puts a graph rank together that goes on after an epoch. Collective over the world.
func (r *run) engine(trained int, weights []float32, u *params.Updater, a *mapped.Arena) (*engine, error) {
	setting, err := r.setting(trained)
	if err != nil {
		return nil, err
	}
	e := &engine{
		cfg: r.cfg, world: r.world, outbox: world.NewOutbox(r.world), crew: r.crew, tensor: r.tensor, arena: a,
		setting: setting, progress: protocol.NewProgress(setting, r.rank),
		chooser: protocol.NewChooser(setting, r.rank, r.net.Layers(), r.net.NumWeights()),
		epochs:  r.cfg.Epochs, wireIn: make([]float32, r.net.NumWeights()),
		tallies: tallies{
			mine: map[int][]float64{}, finished: map[int]int{}, sums: map[int][]float64{}, heard: map[int]int{},
			emit: r.voice.epoch, training: r.shard.TrainTotal, spoken: trained, versions: map[int][]float32{},
		},
		layers: make([]*published, r.net.Layers()),
	}
	e.delay = newDelay(r.cfg, r.rank)
	if r.rank == 0 {
		e.tallies.ranks = r.Graph
		if r.Servers == 0 {
			e.hosted = protocol.New(setting, 0, params.Layers(r.net), slices.Clone(weights), u)
		}
	}
	e.intervals = newIntervals(r.cfg, r.net, r.shard, r.localIDs(a), r.crew, kernels.Mat{}, a)
	for _, i := range e.intervals {
		i.epoch = trained
	}
	e.active = make([]job, r.crew.pool.Workers()+len(e.intervals))
	if r.net.CacheInput {
		if err := r.keepInput(e.intervals, a); err != nil {
			return nil, err
		}
	}
	if !r.net.Propagates() {
		return e, nil
	}
	o := graphwork.Options{Half: r.cfg.Gather == "bf16", Apart: true, Skip: r.net.CacheInput}
	e.graph = graphwork.New(r.net, e.intervals[0].net.Layers, r.shard, o, r.crew.team(), a)
	e.codec, e.sendIDs = r.codecs[0], mapped.Make[uint32](a, len(e.graph.Plan.SendRows))
	for k, v := range e.graph.Plan.SendRows {
		e.sendIDs[k] = e.graph.Plan.OwnIDs[v]
	}
	for l := range e.layers {
		if layer := e.graph.Layer(l); layer != nil {
			e.layers[l] = e.publish(layer, r.shard.NumOwn(), a)
		}
	}
	return e, nil
}
