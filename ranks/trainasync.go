package ranks

import (
	"errors"
	"fmt"

	"siafu/graph/mapped"
	"siafu/ranks/graphwork"
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
	e.world.SetLimits(r.explained(e.during, e.owing))
	last, err := e.train()
	if err != nil {
		return err
	}
	e.world.SetLimits(r.limits)
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
	return r.judgeAsync(e, last)
}

// judgeAsync evaluates the weights after the last epoch, in step with the other
// ranks, and those with which the passes that trained were best; the better ones
// are the run's. Collective over the graph ranks.
func (r *run) judgeAsync(e *engine, last []float32) error {
	t := r.trainer(nil)
	if t.net.CacheInput {
		if err := r.keepInput(t.intervals); err != nil {
			return err
		}
	}
	t.cfg.Epochs = 0 // every evaluation is a pass of its own
	at := []int64{int64(e.tallies.bestAt)}
	best := append(make([]float32, 0, len(t.flat)), e.tallies.winner...)[:len(t.flat)]
	if err := errors.Join(r.peers.Bcast(mapped.Bytes(at), 0), r.peers.Bcast(mapped.Bytes(best), 0)); err != nil {
		return err
	}
	for _, v := range []struct {
		epoch   int
		weights []float32
	}{{int(at[0]), best}, {e.epochs + 1, last}} {
		copy(t.flat, v.weights)
		line := runfolder.Epoch{Epoch: v.epoch}
		if _, err := t.evaluate(&line); err != nil {
			return err
		}
		t.history.observe(line, t.flat, v.epoch > e.epochs)
	}
	if stopped := e.tallies.stopped; stopped != "" && stopped != switched {
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
		cfg: r.cfg, world: r.world, crew: r.crew, tensor: r.tensor,
		setting: setting, progress: async.NewProgress(setting, r.rank),
		chooser: async.NewChooser(setting, r.rank, r.net.Layers(), r.net.NumWeights()),
		epochs:  r.cfg.Epochs, wireIn: make([]float32, r.net.NumWeights()),
		tallies: tallies{
			mine: map[int][]float64{}, finished: map[int]int{}, sums: map[int][]float64{}, heard: map[int]int{},
			emit: r.voice.epoch, patience: r.cfg.Patience, target: r.cfg.TargetAcc, within: r.cfg.SwitchToSync,
			versions: map[int][]float32{},
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
	e.intervals = newIntervals(r.cfg, r.net, r.shard, r.localIDs(), r.crew, nil, a)
	e.active = make([]job, r.crew.pool.Workers()+len(e.intervals))
	if r.net.CacheInput {
		if err := r.keepInput(e.intervals); err != nil {
			return nil, err
		}
	}
	if !r.net.Propagates() {
		return e, nil
	}
	o := graphwork.Options{Half: r.cfg.Gather == "bf16", Apart: true, Skip: r.net.CacheInput}
	e.graph = graphwork.New(r.net, e.intervals[0].net.Layers, r.shard, o, a)
	for l := range e.layers {
		if layer := e.graph.Layer(l); layer != nil {
			e.layers[l] = e.publish(layer, r.shard.NumOwn(), a)
		}
	}
	return e, nil
}
