package ranks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"siafu/graph"
	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/checkpoint"
	"siafu/ranks/config"
	"siafu/ranks/host"
	"siafu/ranks/inject"
	"siafu/ranks/params"
	"siafu/ranks/signals"
	"siafu/ranks/tensor"
	"siafu/ranks/trace"
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
	c.Initializer = model.Spec{Kind: c.Model}.Initializer(c.Initializer) // whatever later versions measure
	limits, err := c.Limits(func(msg string) { fmt.Fprintln(out.Err, "siafu: "+msg) })
	if err != nil {
		return err
	}
	if err := trainGate(&c, out).world(c.Ranks, c.Threads); err != nil {
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
	return launch(c.Ranks, limits, out, func(w world.Comm, kind string) error {
		return trainRank(c, data, w, kind, limits, watcher, out)
	})
}

// run is what a rank needs while it trains; what it opened is closed by close.
type run struct {
	roles
	cfg     Config
	data    string
	kind    string
	meta    *graph.Meta
	world   world.Comm
	limits  world.Limits
	watcher *signals.Watcher  // of this process, which in-process ranks share; nil where nobody listens
	state   *checkpoint.State // that rank 0 has read
	opening opening           // of the run folder, on rank 0
	from    resumed
	stop    error      // on rank 0 of a run that was asked to stop: what it ends with
	peers   world.Comm // the graph ranks; nil on servers
	shard   *shard.Shard
	crew    *crew // nil on servers
	tensor  tensor.Backend
	ops     func() (kernels.Ops, error) // makes what a worker of a graph rank computes with
	packers *kernels.Team               // of exchanges, which encode and decode side by side
	arena   *mapped.Arena
	net     model.Spec
	codecs  []codec.Codec   // the one that was given, or those to choose from
	rows    *halo.Reduction // what ranks send each other; nil: every ghost's row
	choice  string          // of orders, for the header
	voice   *voice          // rank 0's, else nil
	fault   *inject.Fault   // nil but in tests
	stash   int64           // of a server in bounded asynchrony, at its peak
	arrays  int64           // of a graph rank in bounded asynchrony, at its peak

	tuning *tuning // nil where there is nothing to choose

	recorders []*trace.Recorder // of the workers, none without --trace
	origin    int64             // of the timeline, on rank 0's clock
	offset    trace.Offset      // of this rank's clock, at the beginning
}

// trainRank is one rank's part of a run. Collective over the world.
func trainRank(c Config, data string, w world.Comm, kind string, limits world.Limits, watcher *signals.Watcher, out IO) error {
	r := &run{cfg: c, data: data, kind: kind, world: w, limits: limits, watcher: watcher, arena: mapped.NewArena()}
	defer r.close()
	return r.whole(out)
}

// whole is the run. Collective over the world.
func (r *run) whole(out IO) error {
	if err := agree(r.world, r.open(out)); err != nil {
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
	if err := r.voice.header(r); err != nil {
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
	r.fault.At(inject.Start, 0)
	if r.rank != 0 {
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
	return r.partition(meta)
}

// assign settles what follows from the configuration and the world alone.
func (r *run) assign() error {
	var err error
	if r.roles, err = assign(r.cfg, r.world); err != nil {
		return err
	}
	if r.fault, err = inject.New(os.Getenv, r.rank); err != nil {
		return err
	}
	r.codecs, err = r.cfg.Codecs()
	return err
}

// partition makes parts/P where it is missing or is not what was asked for.
func (r *run) partition(meta *graph.Meta) error {
	made, err := partition.Find(r.data, r.Graph)
	if err != nil && !(fault.KindOf(err) == fault.Missing || errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	o := partition.Options{Method: r.cfg.Partitioner, Order: r.cfg.VertexOrder, Parts: r.Graph, Seed: 1}
	if err == nil && made.Serves(o) {
		return nil
	}
	o = made.Complete(o)
	r.voice.log("partition parts=%d method=%s vertex_order=%s dataset=%s", r.Graph, o.Method, o.Order, meta.Name)
	report, err := partition.Run(r.data, o)
	if err != nil {
		return err
	}
	debug.FreeOSMemory() // of what partitioning needed
	host.ForgetPeak()
	r.voice.note(report.String())
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
	r.watch()
	if r.isServer() {
		return nil
	}
	r.shard, err = shard.Open(r.data, r.Graph, r.rank)
	if err != nil {
		return err
	}
	return r.hire()
}

// hire starts the workers of a graph rank.
func (r *run) hire() error {
	var err error
	if r.ops == nil {
		r.ops = r.processor
	}
	if r.crew, err = newCrew(r.threads, r.ops, r.recorders); err != nil {
		return err
	}
	r.crew.fault = r.fault
	r.packers, err = newTeam(r.cfg.Kernel, r.threads)
	if r.tensor == nil {
		r.tensor = tensor.CPU{}
	}
	return err
}

// processor is an Ops that computes on a processor of this machine.
func (r *run) processor() (kernels.Ops, error) { return newTeam(r.cfg.Kernel, 1) }

// close gives back what the rank holds.
func (r *run) close() {
	r.crew.close()
	if r.packers != nil {
		r.packers.Close()
	}
	if r.shard != nil {
		r.shard.Close()
	}
	r.voice.close()
	r.arena.Free()
}

// arrange agrees on the graph ranks' communicator and on the order of products.
// Collective over the world.
func (r *run) arrange() error {
	var err error
	if r.peers, err = r.world.Sub(r.graphRanks()); err != nil {
		return err
	}
	if err := r.sameAssignment(); err != nil {
		return err
	}
	return r.chooseOrders()
}

// initialWeights agrees on the first weights: random ones, or those of a file
// that rank 0 reads. Collective over the world.
func (r *run) initialWeights() ([]float32, error) {
	weights := mapped.Make[float32](r.arena, r.net.NumWeights())
	r.net.Initialize(weights, r.cfg.Initializer, r.cfg.Seed)
	if err := r.takeUp(weights); err != nil {
		return nil, err
	}
	if r.cfg.Init == "" || r.from.epoch > 0 {
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

// train is the life of a graph rank.
func (r *run) train(weights []float32) error {
	if r.asynchronous() {
		return r.trainAsync(weights)
	}
	source, err := r.source(r.from.epoch, weights)
	if err != nil {
		return err
	}
	return r.trainFrom(r.from.epoch+1, source, r.history())
}

// trainFrom trains synchronously from an epoch on. Collective over the graph
// ranks.
func (r *run) trainFrom(epoch int, source params.Source, h *history) error {
	if err := r.reduce(); err != nil {
		return err
	}
	t := r.trainer(source)
	t.emit, t.history, t.saver = r.voice.epoch, h, r.newSaver()
	for _, c := range []world.Comm{r.world, r.peers} {
		c.SetLimits(r.explained(t.during, nil))
		defer c.SetLimits(r.limits)
	}
	if t.net.CacheInput {
		if err := r.keepInput(t.intervals, r.arena); err != nil {
			return err
		}
	}
	if err := r.beginTuning(t.lockstep, epoch); err != nil {
		return err
	}
	if err := t.train(epoch); err != nil {
		return err
	}
	if err := t.settle(); err != nil || t.stopped {
		return err
	}
	r.voice.result(t.history)
	return nil
}

// source is where weights come from after an epoch. Without servers every rank
// steps them with an updater of its own.
func (r *run) source(epoch int, weights []float32) (params.Source, error) {
	if r.Servers > 0 {
		o, err := kernels.NewOptimizer(r.cfg.OptimizerConfig())
		if err != nil {
			return nil, err
		}
		setting := params.Setting(r.Graph, r.Servers, epoch)
		return params.NewClient(r.world, setting, r.net.Layers(), len(weights), o.StateSlots()), nil
	}
	u, err := r.newUpdater(r.crew.team())
	if err != nil {
		return nil, err
	}
	return params.NewReplicated(r.peers, r.net, weights, u, r.arena), nil
}

// newUpdater makes an updater that computes with ops, with the state of a run that
// goes on, if this one does.
func (r *run) newUpdater(ops kernels.Ops) (*params.Updater, error) {
	var state [][]float32
	if r.from.epoch > 0 {
		state = r.from.slots
	}
	return params.NewUpdater(r.cfg.OptimizerConfig(), r.net, r.cfg.WeightDecayOn == "all", state, ops, r.arena)
}

// explained are the run's limits on waits, with what they say of one.
func (r *run) explained(during func() string, awaited func() []int) world.Limits {
	l := r.limits
	l.During, l.Awaited = during, awaited
	return l
}

// localIDs are the dataset ids of own vertices and then ghosts.
func (r *run) localIDs(a *mapped.Arena) []uint32 {
	ids := mapped.Make[uint32](a, r.shard.NumOwn()+r.shard.NumGhosts())
	copy(ids[copy(ids, r.shard.Own):], r.shard.Ghosts)
	return ids
}

// modelFile is where a run folder keeps its weights.
func modelFile(dir string) string { return filepath.Join(dir, "model.safetensors") }
