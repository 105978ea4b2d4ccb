package ranks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime/debug"

	"siafu/graph"
	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/server"
	"siafu/ranks/server/async"
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
	return launch(c.Ranks, limits, out, func(w world.Comm, kind string) error {
		return trainRank(c, data, w, kind, out)
	})
}

// run is what a rank needs while it trains; what it opened is closed by close.
type run struct {
	roles
	cfg    Config
	data   string
	kind   string
	meta   *graph.Meta
	world  world.Comm
	peers  world.Comm // the graph ranks; nil on servers
	shard  *shard.Shard
	team   *kernels.Team
	arena  *mapped.Arena
	net    model.Spec
	codec  halo.Codec
	choice string // of orders, for the header
	voice  *voice // rank 0's, else nil

	timeline *trace.Recorder // nil without --trace
	origin   int64           // of the timeline, on rank 0's clock
	offset   trace.Offset    // of this rank's clock, at the beginning
}

// trainRank is the whole run of one rank. Collective over the world.
func trainRank(c Config, data string, w world.Comm, kind string, out IO) error {
	r := &run{cfg: c, data: data, kind: kind, world: w, arena: mapped.NewArena()}
	defer r.close()
	if err := agree(w, r.open(out)); err != nil {
		return err
	}
	if err := agree(w, r.join()); err != nil {
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
	if err := r.finish(); err != nil {
		return err
	}
	return r.saveTimeline()
}

// open is what rank 0 does for all: check the dataset, make the run folder,
// partition where that has not been done.
func (r *run) open(out IO) error {
	if err := r.assign(); err != nil || r.world.Rank() != 0 {
		return err
	}
	meta, err := graph.ReadMeta(r.data)
	if err != nil {
		return err
	}
	if meta.Train == 0 {
		return fault.New(fault.Data, "train", r.data, "no vertex is in the training split").
			Then("import the dataset with a split")
	}
	if r.voice, err = newVoice(r.cfg, meta.Name, r.kind, out); err != nil {
		return err
	}
	if err := r.checkTimeline(); err != nil {
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
	r.codec, err = halo.CodecByName(r.cfg.Codec)
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
	r.team, err = newTeam(r.cfg.Kernel, r.threads)
	return err
}

// newTeam starts the workers of a rank on the kernels asked for.
func newTeam(kernel string, threads int) (*kernels.Team, error) {
	if kernel == "auto" {
		kernel, _ = kernels.Fastest()
	}
	t := kernels.NewTeam(threads)
	if err := t.Use(kernel); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// close gives back what the rank holds.
func (r *run) close() {
	if r.team != nil {
		r.team.Close()
	}
	if r.shard != nil {
		r.shard.Close()
	}
	r.voice.close()
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
	if r.cfg.Init == "" {
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

// serve is the life of a parameter server.
func (r *run) serve(weights []float32) error {
	u, err := newUpdater(r.cfg, r.net, r.arena)
	if err != nil {
		return err
	}
	var timed server.Updater = u
	if r.timeline != nil {
		timed = timedUpdater{u, newClock(r.timeline)}
	}
	layers := layerRanges(r.net)
	if r.cfg.Mode == "async" {
		setting, err := r.setting()
		if err != nil {
			return err
		}
		s := async.New(setting, r.rank-r.Graph, layers, weights, timed)
		if err := serveAsync(r.world, s); err != nil || r.cfg.SwitchToSync == 0 {
			return err
		}
		return r.serveAfter(s, timed)
	}
	return serve(r.world, server.New(r.Topology, r.rank-r.Graph, layers, weights, timed))
}

// train is the life of a graph rank.
func (r *run) train(weights []float32) error {
	if r.cfg.Mode == "async" {
		return r.trainAsync(weights)
	}
	source, err := r.source(weights)
	if err != nil {
		return err
	}
	return r.trainFrom(1, source)
}

// trainFrom trains synchronously from an epoch on. Collective over the graph
// ranks.
func (r *run) trainFrom(epoch int, source weightSource) error {
	t := r.trainer(source)
	t.emit = r.voice.epoch
	if t.net.Spec.CacheInput {
		if err := t.keepInput(); err != nil {
			return err
		}
		t.clock.take() // no epoch's work
	}
	if err := t.train(epoch); err != nil {
		return err
	}
	r.voice.result(t.history)
	return nil
}

func (r *run) source(weights []float32) (weightSource, error) {
	if r.Servers > 0 {
		return &served{comm: r.world, server: r.ServerOf(r.rank)}, nil
	}
	u, err := newUpdater(r.cfg, r.net, r.arena)
	return newReplicated(r.peers, r.net, weights, u), err
}

// trainer puts a graph rank together.
func (r *run) trainer(source weightSource) *trainer {
	t := &trainer{
		cfg: r.cfg, comm: r.peers, shard: r.shard, weights: source,
		team: r.team, arena: r.arena, clock: newClock(r.timeline), sum: make([]float64, 1),
		net:     model.New(r.net, model.Input{Features: r.shard.Features, IDs: r.shard.Own, LocalIDs: r.localIDs()}, r.team, r.arena),
		history: &history{patience: r.cfg.Patience, target: r.cfg.TargetAcc, hasVal: r.meta.Val > 0},
	}
	if r.net.Propagates() {
		t.graph = newGraphWork(r.cfg, r.net, r.shard, r.team, t.clock, r.codec, r.arena)
		t.graph.prepareBack(t.net.Layers)
		t.graph.connect(r.peers, t.net.MaxGather(), r.arena)
	}
	t.delay, _ = newDelay(r.cfg.Delay, r.rank, r.cfg.Seed) // Validate has read it
	return t
}

// localIDs are the dataset ids of own vertices and then ghosts.
func (r *run) localIDs() []uint32 {
	ids := mapped.Make[uint32](r.arena, r.shard.NumOwn()+r.shard.NumGhosts())
	copy(ids[copy(ids, r.shard.Own):], r.shard.Ghosts)
	return ids
}

// modelFile is where a run folder keeps its weights.
func modelFile(dir string) string { return filepath.Join(dir, "model.safetensors") }
