package ranks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"siafu/graph"
	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/bridge"
	"siafu/ranks/checkpoint"
	"siafu/ranks/config"
	"siafu/ranks/engine"
	"siafu/ranks/host"
	"siafu/ranks/inject"
	"siafu/ranks/signals"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
)

// Config is everything that a run can be told.
type Config = config.Config

// Train trains a network on the dataset folder data as c says and leaves a run
// folder. Under a launcher every rank calls it; else it starts an in-process
// world. It returns the first failure of any rank.
func Train(_ context.Context, c Config, data string, out IO) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := canInvoke(c); err != nil {
		return err
	}
	c.Initializer = model.Spec{Kind: c.Model}.Initializer(c.Initializer) // whatever later versions measure
	limits, err := c.Limits(func(msg string) { fmt.Fprintln(out.Err, "siafu: "+msg) })
	if err != nil {
		return err
	}
	v, err := viewOf(&c)
	if err != nil {
		return err
	}
	if err := trainGate(&c, out).world(carried(v), c.Threads/(v.Parts/v.Ranks)); err != nil {
		return err
	}
	if ended, err := ended(&c, data); ended {
		l, launched := world.Launched()
		if err != nil {
			return once(l, err)
		}
		if !launched || l.Rank == 0 {
			fmt.Fprintf(out.Out, "the run in %s has ended already\n", c.Out)
		}
		return nil
	}
	watcher := watch(&c, out)
	defer watcher.Close()
	if inject.Replaces(os.Getenv) {
		return launchCourse(v, &course{cfg: c, data: data, limits: limits, watcher: watcher, out: out, kept: map[int][]memory{}})
	}
	return launchParts(c.Ranks, v, limits, out, func(w world.Comm, kind string, limits world.Limits) error {
		return trainRank(c, data, v, w, kind, limits, watcher, out)
	})
}

// viewOf says who will be what: in the world that a launcher made, else in the one
// that the configuration asks for. An error is said once.
func viewOf(c *Config) (world.View, error) {
	l, launched := world.Launched()
	if !launched {
		return c.View(max(c.Ranks, 1))
	}
	v, err := c.View(l.Size)
	if err != nil {
		err = once(l, err)
	}
	return v, err
}

// carried is how many members of a run's world are in this process.
func carried(v world.View) int {
	l, launched := world.Launched()
	if !launched {
		return v.Members()
	}
	return len(v.Carried(l.Rank))
}

// run is the life of a member of the run's world, a part of the graph or a server,
// from open to finish. What it has opened, close closes. Fields are set in this
// order:
//
//	by Train    cfg, view, data, kind, world, limits, watcher, arena, gpus, course, end
//	by enter    everyone, client
//	by open     roles, fault, tensor (that of functions by arrange), codecs; on rank 0 also reporter, state and opening
//	by join     meta, net and timeline; on graph ranks also shard
//	by arrange  choice, what net and cfg say of orders, and on graph ranks engine
//	by takeUp   from, where the run goes on from a checkpoint
//	by goOn     state and own, in a view that follows another one
type run struct {
	roles
	cfg     Config
	data    string     // the dataset folder
	kind    string     // of world: mpi or in-process
	world   world.Comm // without bridges
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
	state     *checkpoint.State           // that rank 0 has read; nil where the run does not go on, and after takeUp
	opening   opening                     // of the run folder, on rank 0
	meta      *graph.Meta
	net       model.Spec
	timeline  timeline
	shard     *shard.Shard   // nil on servers
	choice    string         // of orders, for the header
	engine    *engine.Engine // nil on servers
	from      resumed
	course    *course    // of the views that the run lives in, nil where there is one
	own       engine.Own // that this part goes on with in a view that follows another one
	end       func()     // ends the members of this rank; nil without a course

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
	return r.whole(out)
}

// whole is the run. Collective over the world.
func (r *run) whole(out IO) (err error) {
	defer func() { r.torn = tears(err) }()
	if err := r.enter(); err != nil {
		return err
	}
	if r.bridges() {
		return r.bridge()
	}
	return r.leaveBridge(r.life(out))
}

// life is that of a member that is no bridge. Collective over the world.
func (r *run) life(out IO) error {
	if err := agree(r.world, r.open(out)); err != nil {
		return err
	}
	if err := r.goOn(); err != nil {
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
	if err := r.letIn(trainGate(&r.cfg, out)); err != nil {
		return err
	}
	weights, err := r.initialWeights()
	if err != nil {
		return err
	}
	// Whatever can be refused has been, and nothing has been written yet.
	if err := agree(r.world, r.begin()); err != nil {
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
	if left, err := r.leaves(); left || err != nil {
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

// open is what rank 0 does for all: check the dataset and that the network's
// weights fit, claim the run folder, partition where that has not been done.
func (r *run) open(out IO) error {
	if err := r.assign(); err != nil {
		return err
	}
	if err := r.course.begin(r); err != nil {
		return err
	}
	r.fault.At(inject.Start, 0)
	if r.rank != 0 || r.course.reopens(r) {
		return nil
	}
	meta, err := graph.ReadMeta(r.data)
	if err != nil {
		return err
	}
	if meta.Train == 0 {
		return fault.New(fault.Data, "train", r.data, "no vertex is in the training split").
			Then("import the dataset with a split")
	}
	if err := trainGate(&r.cfg, out).weights(r, meta); err != nil {
		return err
	}
	r.meta, r.net = meta, r.cfg.Network(meta.FeatureDim, meta.Classes)
	if err := r.checkTimeline(); err != nil {
		return err
	}
	if err := r.admit(out); err != nil {
		return err
	}
	r.course.opened(r)
	return r.partition(meta)
}

// assign settles what follows from the configuration and the world alone.
func (r *run) assign() error {
	var err error
	if r.roles, err = assign(r.cfg, r.view, r.world); err != nil {
		return err
	}
	if err := r.cfg.CheckDelayBound(r.Graph); err != nil {
		return err
	}
	if r.fault, err = inject.New(os.Getenv, r.rank); err != nil {
		return err
	}
	if r.tensor == nil && r.cfg.Tensor != config.TensorLambda { // tests have others
		r.tensor = tensor.CPU{}
	}
	if r.codecs, err = r.cfg.Codecs(); err != nil {
		return err
	}
	return r.openGPU()
}

// partition makes parts/P where it is missing or is not what was asked for.
func (r *run) partition(meta *graph.Meta) error {
	o := partition.Options{Method: r.cfg.Partitioner, Order: r.cfg.VertexOrder, Parts: r.Graph, Seed: 1}
	report, err := partition.Ensure(r.data, o, func(o partition.Options) {
		r.reporter.log("partition parts=%d method=%s vertex_order=%s dataset=%s", r.Graph, o.Method, o.Order, meta.Name)
	})
	if err != nil || report == nil {
		return err
	}
	debug.FreeOSMemory() // of what partitioning needed
	host.ForgetPeak()
	r.reporter.Note(report.String())
	return nil
}

// join is what every rank does once rank 0 has opened the run: read meta.json,
// and on graph ranks the shard.
func (r *run) join() error {
	var err error
	if r.meta, err = graph.ReadMeta(r.data); err != nil {
		return err
	}
	r.net = r.cfg.Network(r.meta.FeatureDim, r.meta.Classes)
	if err := r.cfg.Divide(r.meta.Train, r.Graph); err != nil {
		return err
	}
	r.record()
	if r.isServer() {
		return nil
	}
	r.shard, err = shard.Open(r.data, r.Graph, r.rank)
	return err
}

// startEngine starts the engine of a graph rank, for which everything is
// settled. Collective over the world.
func (r *run) startEngine() error {
	peers, err := r.world.Sub(r.graphRanks())
	if err != nil {
		return err
	}
	if !r.isServer() {
		err = r.applyOnGPU()
	}
	if !r.isServer() && err == nil {
		err = r.invoke()
	}
	if !r.isServer() && err == nil {
		rank := engine.Rank{
			Config: r.cfg, World: r.world, Peers: peers, Limits: r.limits, Shard: r.shard, Network: r.net, Codecs: r.codecs,
			Tensor: r.tensor, Ops: r.ops, Arena: r.arena, Threads: r.threads, Recorders: r.timeline.recorders, Fault: r.fault, Reporter: r.reporter,
		}
		if r.course != nil {
			rank.Views = r
		}
		if r.engine, err = engine.New(rank); err != nil {
			r.tensor.Close()
		}
	}
	return agree(r.world, err)
}

// tears tells whether a member that ends with an error leaves others in the middle of
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
	if r.course == nil || r.course.reporter != r.reporter { // else it goes on
		r.reporter.close()
	}
	if r.torn {
		return
	}
	if r.shard != nil {
		r.shard.Close()
	}
	r.arena.Free()
	r.gpu.Close()
}

// arrange agrees on the partition and on the order of products, and starts the
// engines. Collective over the world.
func (r *run) arrange() error {
	if err := r.sameAssignment(); err != nil {
		return err
	}
	if err := r.meetOnGPUs(); err != nil {
		return err
	}
	if err := r.chooseOrders(); err != nil {
		return err
	}
	return r.startEngine()
}

// initialWeights agrees on the first weights: random ones, or those of a file
// that rank 0 reads. Collective over the world.
func (r *run) initialWeights() ([]float32, error) {
	weights := mapped.Make[float32](r.arena, r.net.NumWeights())
	r.net.Initialize(weights, r.cfg.Initializer, r.cfg.Seed)
	if err := r.takeUp(weights); err != nil {
		return nil, err
	}
	if r.cfg.Init == "" || r.from.Epoch > 0 {
		return weights, nil
	}
	var err error
	if r.world.Rank() == 0 {
		err = loadWeights(r.cfg.Init, r.net, weights)
	}
	if err := agree(r.world, err); err != nil {
		return nil, err
	}
	return weights, r.world.Bcast(mapped.Bytes(weights), 0)
}

// sameAssignment fails where the shards come from two partitionings of the
// same dataset, as when it is partitioned again while a run starts. Collective
// over the world.
func (r *run) sameAssignment() error {
	mine := ""
	if r.shard != nil {
		mine = r.shard.Assignment
	}
	first, err := world.BcastBlob(r.world, []byte(mine), 0)
	if err != nil {
		return err
	}
	if r.shard != nil && mine != string(first) {
		err = fault.New(fault.Data, "train", shard.Path(r.data, r.Graph, r.rank), "this shard and that of rank 0 are of different partitionings").
			Then(`run "siafu partition --parts %d %s" and start again`, r.Graph, r.data)
	}
	return agree(r.world, err)
}

// watch begins to listen to signals. On rank 0 it says what it has heard.
func watch(c *Config, out IO) *signals.Watcher {
	grace, _ := time.ParseDuration(c.Grace) // Validate has read it
	o := signals.Options{Grace: signals.Grace(grace, os.Getenv)}
	if l, launched := world.Launched(); !launched || l.Rank == 0 {
		o.Log = func(line string) { warn(out, "%s", line) }
	}
	return signals.Watch(o)
}

// modelFile is where a run folder keeps its weights.
func modelFile(dir string) string { return filepath.Join(dir, "model.safetensors") }
