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

// run is a member of the run's world, a part of the graph or a server, from open to finish.
// close closes everything opened. Fields are set in this order:
//
//	by Train    cfg, view, data, kind, world, limits, watcher, arena, gpus, elastic, end
//	by enter    everyone, client
//	by open     roles, fault, tensor (that of functions by arrange), codecs; on rank 0 also reporter, state, opening and shards, which printShards tells the others
//	by join     meta, net, task and timeline; on graph ranks also shard
//	by arrange  choice, what net and cfg say of orders, and on graph ranks engine
//	by restore  from, where the run continues from a checkpoint
//	by agreeOnState, restoreState  state and partState, in a later view
type run struct {
	roles
	cfg     Config
	data    string        // the dataset folder
	schema  *graph.Schema // of the training dataset of the predicting model; on rank 0
	kind    string        // of world: mpi or in-process
	world   world.Comm    // without bridges
	limits  world.Limits
	watcher *signals.Watcher // of this process, shared by in-process ranks; nil without signal handling
	arena   *mapped.Arena    // memory for the whole run

	everyone world.Comm     // world and bridges
	client   *bridge.Client // of this part's bridge; nil without one

	fault     *inject.Fault // nil but in tests
	tensor    tensor.Backend
	functions func(*functions)            // changes the settings of invocations; nil except in tests
	ops       func() (kernels.Ops, error) // engine.Rank's
	gpus      gpus                        // of this host
	gpu       *gpu                        // of this member, or nil
	codecs    []codec.Codec               // the given codec, or the candidates
	reporter  *reporter                   // rank 0's, else nil
	state     *checkpoint.State           // read by rank 0; nil in a new run, and after restore
	opening   opening                     // of the run folder, on rank 0
	meta      *graph.Meta
	net       model.Spec
	task      string // of the training
	shards    string // their folder
	timeline  timeline
	shard     *shard.Shard   // nil on servers
	heldOut   *graph.HeldOut // of link prediction, until letGo
	letGo     func() error   // nil without
	choice    string         // of orders, for the header
	engine    *engine.Engine // nil on servers
	from      resumed
	elastic   *elasticRun      // of the run's views, nil with a single view
	partState engine.PartState // state to continue from in a later view
	end       func()           // ends the members of this rank; nil without elastic

	torn  bool  // it has failed, and other ranks are not notified yet
	stop  error // on rank 0 of a stopped run: its error
	stash int64 // bytes of a server in bounded asynchrony, at their peak
}

// trainRank runs one member of a run's world. An empty view means a world with one part per
// graph rank. Collective over the world.
func trainRank(c Config, data string, v world.View, w world.Comm, kind string, limits world.Limits, watcher *signals.Watcher, out IO) error {
	r := &run{cfg: c, data: data, kind: kind, world: w, limits: limits, watcher: watcher, arena: mapped.NewArena(), gpus: gpusHere()}
	r.view = v
	defer r.close()
	return r.runToEnd(out)
}

// runToEnd executes the run. Collective over the world.
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

// lifecycle runs a member that is not a bridge. Collective over the world.
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
	// All checks are done, and nothing has been written yet.
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

// tears reports whether a member that ends with an error interrupts others: not if all have
// the same error, nor if its view has ended.
func tears(err error) bool {
	ended := (*world.EndedError)(nil)
	return err != nil && !errors.As(err, &agreed{}) && !errors.As(err, &ended)
}

// close frees the rank's resources. If the run is torn, other ranks in this process may still
// copy rows from this one's arrays before they are notified: these remain until the process
// ends, soon after.
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
