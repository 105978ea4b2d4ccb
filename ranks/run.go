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
	"siafu/ranks/forecast"
	"siafu/ranks/inject"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
	"siafu/ranks/world/membership"
)

// A run of one member of the world is a pipeline of values. Each stage embeds the stage before
// it, and a method belongs to the first stage that has all that it needs:
//
//	member    a part of the graph, a server or a bridge: its role and its devices
//	opened    rank 0 has checked the dataset and claimed the run folder; shards exist
//	joined    the dataset, the network, and on graph ranks the shard
//	prepared  the orders of products, and on graph ranks the engine
//	begun     the state to continue from

// member is a member of the world of a command: a part of the graph, a server or a bridge.
type member struct {
	roles
	resources
	cfg      Config
	data     string // the dataset folder
	kind     string // of world: mpi or in-process
	world    world.Comm
	everyone world.Comm // world and bridges
	limits   world.Limits
	watcher  *signals.Watcher // of this process, shared by in-process ranks; nil without signal handling
	arena    *mapped.Arena    // memory for the whole run
	out      IO
	views    *viewSequence          // of a training run, empty in other commands
	client   *bridge.Client         // of this part's bridge; nil without one
	copied   func(membership.State) // copies a stored state to another rank
	fault    *inject.Fault          // nil but in tests
	codecs   []codec.Codec          // the given codec, or the candidates
	gpus     gpus                   // of this host
	gpu      *gpu                   // the GPU of this member, or nil
	ops      func() (kernels.Ops, error)
	// backend makes the backend of tensor tasks, and functions changes the settings of
	// invocations; nil except in tests.
	backend   func(*joined) tensor.Backend
	functions func(*functions)
	rates     func(*forecast.Forecast) forecast.Rates // of ghostRates; nil except in tests
}

// newMember makes a member of the world w, which belongs to a view. An empty view means one
// part per graph rank.
func newMember(c Config, data string, v world.View, w world.Comm, kind string, out IO) *member {
	m := &member{cfg: c, data: data, world: w, everyone: w, kind: kind, out: out, arena: mapped.NewArena(),
		gpus: gpusHere(), views: &viewSequence{}}
	m.view = v
	return m
}

// opened is a member of an opened run. It has the files of rank 0.
type opened struct {
	*member
	files
	partState []byte // state to continue from in a later view
}

// files are the files of a run. A later view of the run continues with them.
type files struct {
	reporter  *reporter         // nil on other ranks than 0
	state     *checkpoint.State // read by rank 0 to resume from; nil in a new run
	beginning beginning
	shards    string // folder of the shards, on all ranks
}

// joined is a member that has read its part of the dataset.
type joined struct {
	*opened
	meta     *graph.Meta
	net      model.Spec
	task     string // of the training
	timeline timeline
	shard    *shard.Shard   // nil on servers
	hops     []shard.Hop    // counts of the shard's ghosts; nil on servers, and if they are not counted
	heldOut  *graph.HeldOut // of link prediction, else nil

	earlier   decisions         // of the run, before this attempt or view
	decided   map[string]string // flags that repeat the decisions of this run
	codedBits float64           // estimated bits of a coded edge, 0 if edges are plain
	placement placement         // of values in memory and in the scratch file
}

// prepared is a member that is ready to compute.
type prepared struct {
	*joined
	orders string         // chosen orders of products
	tensor tensor.Backend // unused on servers
	engine *engine.Engine // nil on servers
}

// begun is a member whose training has begun.
type begun struct {
	*prepared
	from    checkpoint.State // that the run resumes from; zero in a new run
	weights []float32        // the first ones
	stop    error            // on rank 0 of a stopped run: its error
	stash   int64            // bytes of a server in bounded asynchrony, at their peak
}

// train runs a member of a training run. Collective over the world.
func (r *member) train() (err error) {
	defer func() { r.torn = tears(err) }()
	if err := r.enter(); err != nil {
		return err
	}
	if r.isBridge() {
		return r.bridge()
	}
	_, err = r.stages()
	return r.leaveBridge(err)
}

// stages trains as a graph rank or a server, and returns the last stage. Collective over the
// world.
func (r *member) stages() (*begun, error) {
	o, err := r.open()
	if err := agree(r.world, err); err != nil {
		return nil, err
	}
	if err := o.agreeOnState(); err != nil {
		return nil, err
	}
	j, err := o.join()
	if err != nil {
		return nil, err
	}
	if err := j.beginTimeline(); err != nil {
		return nil, err
	}
	p, err := j.prepare()
	if err != nil {
		return nil, err
	}
	b, err := p.begin()
	if err != nil {
		return nil, err
	}
	if err := b.run(); err != nil {
		return nil, err
	}
	if left, err := b.viewEnds(); left || err != nil {
		return b, err
	}
	if err := agree(r.world, b.stop); err != nil {
		return nil, err
	}
	end := b.finish()
	if end != nil && fault.KindOf(end) != fault.Diverged {
		return b, end
	}
	return b, errors.Join(end, b.saveTimeline())
}

// tears reports whether the error of a member interrupts other members. This is not the case if all
// have the same error, or if the view has ended.
func tears(err error) bool {
	ended := (*world.EndedError)(nil)
	return err != nil && !errors.As(err, &agreed{}) && !errors.As(err, &ended)
}

// resources is the list of the open resources of a member.
type resources struct {
	list []resource
	// torn means that the member has failed and the other ranks do not know it yet. Ranks in this
	// process may still copy rows from its arrays.
	torn bool
}

// resource is an opened resource. Memory that other ranks copy from is shared.
type resource struct {
	close  func()
	shared bool
}

// closes adds a resource.
func (r *resources) closes(close func(), shared bool) {
	r.list = append(r.list, resource{close, shared})
}

// close closes all resources, the last one first. Shared resources of a torn run remain until
// the process ends, soon after.
func (r *resources) close() {
	for k := len(r.list) - 1; k >= 0; k-- {
		if !r.torn || !r.list[k].shared {
			r.list[k].close()
		}
	}
	r.list = nil
}
