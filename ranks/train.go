package ranks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"

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
	"siafu/ranks/inject"
	"siafu/ranks/signals"
	"siafu/ranks/tensor"
	"siafu/ranks/trace"
	"siafu/ranks/world"
)

// Train trains a network on the dataset folder data as c says and leaves a run
// folder. Under a launcher every rank calls it; else it starts an in-process
// world. It returns the first failure of any rank.
func Train(_ context.Context, c Config, data string, out IO) error {
	if err := c.Validate(); err != nil {
		return err
	}
	limits, err := c.limits(func(msg string) { fmt.Fprintln(out.Err, "siafu: "+msg) })
	if err != nil {
		return err
	}
	if c.ended() {
		if l, launched := world.Launched(); !launched || l.Rank == 0 {
			fmt.Fprintf(out.Out, "the run in %s has ended already\n", c.Out)
		}
		return nil
	}
	watcher := c.watch(out)
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
	lock    *checkpoint.Lock  // of the run folder, on rank 0
	state   *checkpoint.State // that rank 0 has read
	from    resumed
	stop    error      // on rank 0 of a run that was asked to stop: what it ends with
	peers   world.Comm // the graph ranks; nil on servers
	shard   *shard.Shard
	crew    *crew // nil on servers
	tensor  tensor.Backend
	packers *kernels.Team // of exchanges, which encode and decode side by side
	arena   *mapped.Arena
	net     model.Spec
	codecs  []codec.Codec   // the one that was given, or those to choose from
	rows    *halo.Reduction // what ranks send each other; nil: every ghost's row
	choice  string          // of orders, for the header
	voice   *voice          // rank 0's, else nil
	fault   *inject.Fault   // nil but in tests
	stash   int64           // of a server in bounded asynchrony, at its peak

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
	weights, err := r.initialWeights()
	if err != nil {
		return err
	}
	if err := r.voice.header(r); err != nil {
		return err
	}
	if err := r.checkMemory(out); err != nil {
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
	if err := r.finish(); err != nil {
		return err
	}
	return r.saveTimeline()
}

// open is what rank 0 does for all: check the dataset, make the run folder,
// partition where that has not been done.
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
	if err := r.enter(meta, out); err != nil {
		return err
	}
	if err := r.checkTimeline(); err != nil {
		return err
	}
	r.fault.At(inject.Opened, 0)
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
	r.codecs, err = r.cfg.codecs()
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
	forgetPeak()
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
	r.net = r.cfg.spec(r.meta.FeatureDim, r.meta.Classes)
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
	if r.crew, err = newCrew(r.threads, r.cfg.Kernel, r.recorders); err != nil {
		return err
	}
	r.crew.fault = r.fault
	r.packers, err = newTeam(r.cfg.Kernel, r.threads)
	if r.tensor == nil {
		r.tensor = tensor.CPU{}
	}
	return err
}

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
	if r.lock != nil {
		r.lock.Release()
	}
	r.arena.Free()
}

// initialWeights agrees on the graph ranks' communicator, on the order of
// products and on the first weights: random ones, or those of a file that
// rank 0 reads. Collective over the world.
func (r *run) initialWeights() ([]float32, error) {
	var err error
	if r.peers, err = r.world.Sub(r.graphRanks()); err != nil {
		return nil, err
	}
	if err := r.sameAssignment(); err != nil {
		return nil, err
	}
	fits := []int64{1}
	if !r.isServer() {
		fits[0] = r.cacheFits()
	}
	if err := world.MinInt64s(r.world, fits); err != nil {
		return nil, err
	}
	r.choice = r.cfg.choose(&r.net, r.meta, fits[0] == 1)

	weights := mapped.Make[float32](r.arena, r.net.NumWeights())
	r.net.Initialize(weights, r.cfg.Initializer, r.cfg.Seed)
	if err := r.takeUp(weights); err != nil {
		return nil, err
	}
	if r.cfg.Init == "" || r.from.epoch > 0 {
		return weights, nil
	}
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

// cacheFits is 1 where ÂX fits into half of this host's free memory, shared by
// the ranks on it.
func (r *run) cacheFits() int64 {
	need := r.cfg.KeepBytes(int64(r.shard.NumOwn()), int64(r.shard.NumGhosts()), r.meta.FeatureDim)
	here := int64(0)
	for _, h := range r.world.Hosts() {
		if h == r.world.Hosts()[r.rank] {
			here++
		}
	}
	if need*here <= availableMemory()/2 {
		return 1
	}
	return 0
}

func sparseNNZ(m *graph.Meta) int64 {
	if m.FeatureKind == "sparse" {
		return m.FeatureNNZ
	}
	return 0
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
func (r *run) trainFrom(epoch int, source weightSource, h *history) error {
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
		if err := r.keepInput(t.intervals); err != nil {
			return err
		}
	}
	if err := r.beginTuning(t.lockstep, epoch); err != nil {
		return err
	}
	if err := t.train(epoch); err != nil || t.stopped {
		return err
	}
	r.voice.result(t.history)
	return nil
}

// source is where weights come from after an epoch. Without servers every rank
// steps them with an updater of its own.
func (r *run) source(epoch int, weights []float32) (weightSource, error) {
	if r.Servers > 0 {
		o, err := kernels.NewOptimizer(r.cfg.optimizer())
		if err != nil {
			return nil, err
		}
		s := &served{comm: r.world, server: r.ServerOf(r.rank), weights: len(weights), slots: o.StateSlots()}
		return &shifted{s, epoch}, nil
	}
	u, err := r.newUpdater()
	return newReplicated(r.peers, r.net, weights, u), err
}

// explained are the run's limits on waits, with what they say of one.
func (r *run) explained(during func() string, awaited func() []int) world.Limits {
	l := r.limits
	l.During, l.Awaited = during, awaited
	return l
}

// localIDs are the dataset ids of own vertices and then ghosts.
func (r *run) localIDs() []uint32 {
	ids := mapped.Make[uint32](r.arena, r.shard.NumOwn()+r.shard.NumGhosts())
	copy(ids[copy(ids, r.shard.Own):], r.shard.Ghosts)
	return ids
}

// modelFile is where a run folder keeps its weights.
func modelFile(dir string) string { return filepath.Join(dir, "model.safetensors") }
