package ranks

import (
	"errors"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/halo/codec"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/signals"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/bridge"
	"siafu/ranks/checkpoint"
	"siafu/ranks/engine"
	"siafu/ranks/inject"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
)

// run is the life of a member of the run's world, a part of the graph or a server,
// from open to finish. What it has opened, close closes. Fields are set in this
// order:
//
//	by Train    cfg, view, data, kind, world, limits, watcher, arena, gpus, course, end
//	by enter    everyone, client
//	by open     roles, fault, tensor (that of functions by arrange), codecs; on rank 0 also reporter, state, opening and shards, which printShards tells the others
//	by join     meta, net, task and timeline; on graph ranks also shard
//	by arrange  choice, what net and cfg say of orders, and on graph ranks engine
//	by takeUp   from, where the run continues from a checkpoint
//	by goOn     state and own, in a view that follows another one
type run struct {
	roles
	cfg     Config
	data    string        // the dataset folder
	schema  *graph.Schema // of the dataset that a model which predicts was trained on; on rank 0
	kind    string        // of world: mpi or in-process
	world   world.Comm    // without bridges
	limits  world.Limits
	watcher *signals.Watcher // of this process, which in-process ranks share; nil where nobody listens
	arena   *mapped.Arena    // of memory that lives as long as the run

	everyone world.Comm     // world and bridges
	client   *bridge.Client // of this part's bridge; nil without one

	fault     *inject.Fault // nil but in tests
	tensor    tensor.Backend
	functions func(*functions)            // changes how they are invoked; nil but in tests
	ops       func() (kernels.Ops, error) // engine.Rank's
	gpus      gpus                        // of this host
	gpu       *gpu                        // that this member computes on, or nil
	codecs    []codec.Codec               // the one that was given, or those to choose from
	reporter  *reporter                   // rank 0's, else nil
	state     *checkpoint.State           // that rank 0 has read; nil where the run does not continue, and after takeUp
	opening   opening                     // of the run folder, on rank 0
	meta      *graph.Meta
	net       model.Spec
	task      string // that it is trained for
	shards    string // their folder
	timeline  timeline
	shard     *shard.Shard   // nil on servers
	heldOut   *graph.HeldOut // of link prediction, until letGo
	letGo     func() error   // nil without
	choice    string         // of orders, for the header
	engine    *engine.Engine // nil on servers
	from      resumed
	elastic   *elasticRun      // of the views that the run lives in, nil where there is one
	partState engine.PartState // that this part continues with in a view that follows another one
	end       func()           // ends the members of this rank; nil without a course

	torn  bool  // it has failed, and others do not know yet
	stop  error // on rank 0 of a run that was asked to stop: what it ends with
	stash int64 // bytes of a server in bounded asynchrony, at their peak
}

// trainRank is what one member of a run's world does. A view of nobody stands for
// a world in which every graph rank has a part. Collective over the world.
func trainRank(c Config, data string, v world.View, w world.Comm, kind string, limits world.Limits, watcher *signals.Watcher, out IO) error {
	r := &run{cfg: c, data: data, kind: kind, world: w, limits: limits, watcher: watcher, arena: mapped.NewArena(), gpus: gpusHere()}
	r.view = v
	defer r.close()
	return r.runToEnd(out)
}

// runToEnd is the run. Collective over the world.
func (r *run) runToEnd(out IO) (err error) {
	defer func() { r.torn = tears(err) }()
	if err := r.enter(); err != nil {
		return err
	}
	if r.bridges() {
		return r.bridge()
	}
	return r.leaveBridge(r.lifecycle(out))
}

// lifecycle is that of a member that is not a bridge. Collective over the world.
func (r *run) lifecycle(out IO) error {
	if err := agree(r.world, r.open(out)); err != nil {
		return err
	}
	if err := r.agreeOnState(); err != nil {
		return err
	}
	if err := r.printShards(); err != nil {
		return err
	}
	if err := agree(r.world, r.join()); err != nil {
		return err
	}
	if err := r.beginTimeline(); err != nil {
		return err
	}
	if err := r.arrange(); err != nil {
		return err
	}
	if err := r.reporter.header(r); err != nil {
		return err
	}
	if err := r.checkMemory(trainGate(&r.cfg, out)); err != nil {
		return err
	}
	weights, err := r.initialWeights()
	if err != nil {
		return err
	}
	// Whatever can be refused has been, and nothing has been written yet.
	if err := agree(r.world, r.beginFolder()); err != nil {
		return err
	}
	if r.isServer() {
		err = r.serve(weights)
	} else {
		err = r.train(weights)
	}
	if err != nil {
		return err
	}
	if left, err := r.viewEnds(); left || err != nil {
		return err
	}
	if err := agree(r.world, r.stop); err != nil {
		return err
	}
	end := r.finish()
	if end != nil && fault.KindOf(end) != fault.Diverged {
		return end
	}
	return errors.Join(end, r.saveTimeline())
}

// tears reports whether a member that ends with an error leaves others in the middle of
// something: not where all have the same error, nor where its view has ended.
func tears(err error) bool {
	ended := (*world.EndedError)(nil)
	return err != nil && !errors.As(err, &agreed{}) && !errors.As(err, &ended)
}

// close gives back what the rank holds. Where the run is torn, ranks in this process may
// yet copy rows out of this one's arrays, before they hear of its end: these stay until
// the process ends, which is soon.
func (r *run) close() {
	r.engine.Close()
	if r.elastic == nil || r.elastic.reporter != r.reporter { // else it continues
		r.reporter.close()
	}
	if r.torn {
		return
	}
	if r.shard != nil {
		r.shard.Close()
	}
	if r.letGo != nil {
		r.letGo()
	}
	r.arena.Free()
	r.gpu.Close()
}
