package ranks

import (
	"fmt"

	"siafu/graph/mapped"
	"siafu/kernels/model"
	"siafu/ranks/runfolder"
	"siafu/ranks/server/async"
)

// trainAsync is train in bounded asynchrony. The weights after the last epoch
// are evaluated in step with the other ranks, as those of any run. Collective
// over the graph ranks at its beginning and its end.
func (r *run) trainAsync(weights []float32) error {
	arena := mapped.NewArena()
	defer arena.Free()
	e, err := r.engine(weights, arena)
	if err != nil {
		return err
	}
	last, err := e.train()
	if err != nil {
		return err
	}
	epochs, stopped, hosted := e.epochs, e.tallies.stopped, e.update
	goOn, err := r.switches(epochs, stopped == switched)
	if err != nil {
		return err
	}
	if goOn {
		source, err := r.sourceAfter(epochs, last, hosted)
		if err != nil {
			return err
		}
		arena.Free()
		r.voice.note(fmt.Sprintf("switch_to_sync after_epoch=%d\n", epochs))
		return r.trainFrom(epochs+1, source)
	}
	arena.Free() // the evaluation needs its room

	t := r.trainer(nil)
	copy(t.net.Weights, last)
	if t.net.Spec.CacheInput {
		if err := t.keepInput(); err != nil {
			return err
		}
	}
	t.cfg.Epochs = epochs
	line := runfolder.Epoch{Epoch: epochs + 1}
	if _, err := t.evaluate(&line); err != nil {
		return err
	}
	t.history.observe(line, t.net.Weights, true)
	if stopped != "" && stopped != switched {
		t.history.stoppedBy = stopped
	}
	r.voice.result(t.history)
	return nil
}

// engine puts a graph rank together. Collective over the world.
func (r *run) engine(weights []float32, a *mapped.Arena) (*engine, error) {
	setting, err := r.setting()
	if err != nil {
		return nil, err
	}
	e := &engine{
		cfg: r.cfg, world: r.world, shard: r.shard, team: r.team, arena: a, clock: newClock(r.timeline),
		setting: setting, progress: async.NewProgress(setting, r.rank),
		chooser: async.NewChooser(setting, r.rank, r.net.Layers(), r.net.NumWeights()),
		epochs:  r.cfg.Epochs, wireIn: make([]float32, r.net.NumWeights()),
		tallies: tallies{
			mine: map[int][]float64{}, finished: map[int]int{}, sums: map[int][]float64{}, heard: map[int]int{},
			emit: r.voice.epoch, patience: r.cfg.Patience, target: r.cfg.TargetAcc, within: r.cfg.SwitchToSync,
		},
		layers: make([]*published, r.net.Layers()),
	}
	if e.delay, err = newDelay(r.cfg.Delay, r.rank, r.cfg.Seed); err != nil {
		return nil, err
	}
	if r.rank == 0 {
		e.tallies.ranks = r.Graph
		if r.Servers == 0 {
			if e.update, err = newUpdater(r.cfg, r.net, r.arena); err != nil {
				return nil, err
			}
			e.hosted = async.New(setting, 0, layerRanges(r.net), weights, e.update)
		}
	}
	e.intervals = newIntervals(r.cfg, r.net, r.shard, r.localIDs(), r.team, a)
	if !r.net.Propagates() {
		return e, nil
	}
	e.graph = newGraphWork(r.cfg, r.net, r.shard, r.team, e.clock, r.codec, a)
	e.graph.prepareBack(e.intervals[0].net.Layers)
	for l, layer := range e.intervals[0].net.Layers {
		if width := layer.GatherWidth(); width > 0 && (l > 0 || !r.net.CacheInput) {
			e.layers[l] = e.publish(l, width)
		}
	}
	if r.net.CacheInput {
		return e, e.keepInput(r)
	}
	return e, nil
}

// keepInput computes ÂX once, in step with the other ranks, for all intervals.
// Collective over the graph ranks.
func (e *engine) keepInput(r *run) error {
	for _, i := range e.intervals {
		i.net.Keep(e.cfg.Features == "bf16", e.arena)
	}
	scratch := mapped.NewArena()
	defer scratch.Free()
	n, width := e.shard.NumOwn(), e.intervals[0].net.Layers[0].GatherWidth()
	once := *e.graph
	once.half, once.arena, once.gathered = false, scratch, nil
	once.connect(r.peers, min(keptColumns, width), scratch)
	columns := mapped.Make[float32](scratch, n*min(keptColumns, width))
	for from := 0; from < width; from += keptColumns {
		to := min(from+keptColumns, width)
		part := columns[:n*(to-from)]
		for _, i := range e.intervals {
			i.net.InputColumns(i.part(part, to-from), from, to)
		}
		rows, err := once.gather(0, part, to-from, model.Pass{})
		if err != nil {
			return err
		}
		for _, i := range e.intervals {
			i.net.PutKept(from, to, i.part(rows, to-from))
		}
	}
	return nil
}
