package engine

import (
	"time"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/internal/signals"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/objective"
	"siafu/kernels/task"
	"siafu/ranks/checkpoint"
	"siafu/ranks/config"
	"siafu/ranks/graphwork"
	"siafu/ranks/inject"
	"siafu/ranks/runfolder"
	"siafu/ranks/tensor"
	"siafu/ranks/trace"
	"siafu/ranks/world"
)

// Rank has the resolved settings of a graph rank for its engine. All fields are set before
// New, and do not change afterwards.
type Rank struct {
	Problem
	Comms
	Machine
	Reporter Reporter
	Views    Views // nil with a single view
	Clusters StoredClusters
}

// Beginning is what a synchronous training begins with.
type Beginning struct {
	Epoch int       // first one
	Exact bool      // of --refresh auto: the run continues after its epochs without ghosts
	Part  []byte    // the part's own state, if the run continues
	Step  StepState // of a step that a loss has interrupted, if the run continues in it
	Rows  []byte    // on rank 0: checkpoint.State.History, if the run continues
}

// Problem is what a rank trains: a network on its part of the graph.
type Problem struct {
	Config  config.Config // valid; "auto" settings of the engine are resolved in Network and Codecs
	Shard   *shard.Shard  // the part of this rank, one of Peers.Size()
	Network model.Spec
	Task    string         // graph.MultiClass, …: the task; empty: the task of the shard's labels
	Meta    *graph.Meta    // of the dataset, for the names of classes
	HeldOut *graph.HeldOut // of the task graph.Links, if the dataset has held-out edges
	Codecs  []codec.Codec  // one, or the candidates of --codec auto; rows begin with the first
}

// Comms are the communicators of a graph rank.
type Comms struct {
	World    world.Comm   // graph ranks first, then servers
	Peers    world.Comm   // the graph ranks of World, which have the same numbers in both; with pipelines, those of the same stage
	Graph    world.Comm   // all graph ranks of World
	Stages   world.Comm   // the stages of this rank's pipeline, by number; nil without pipelines
	Limits   world.Limits // on waits for other ranks
	Carriers []int        // with pipelines: the process of each stage of this rank's pipeline
}

// Machine is what a rank computes with.
type Machine struct {
	Tensor    tensor.Backend              // closed by Close
	Ops       func() (kernels.Ops, error) // makes a worker's Ops; nil: kernels on a processor of this machine
	Arena     *mapped.Arena               // memory for the whole run
	Files     *mapped.Pool                // reads files for tasks of training; closed by Close; nil: the page cache
	Threads   int
	Recorders []*trace.Recorder // one per thread, and one of the fetcher if memory is limited; none without a timeline
	Fault     *inject.Fault     // nil except in tests
	// Watch wraps the Ops of a worker, to measure its calls; nil: none.
	Watch func(kernels.Ops) kernels.Ops
}

// Reporter receives the output of a run during training. Rank 0's reporter writes to the
// user and the run folder. The reporters of other ranks do nothing.
type Reporter interface {
	// Epoch receives the line of a trained epoch, and the cost of the invocations of all
	// ranks since the previous line.
	Epoch(line runfolder.Epoch, spent tensor.Spent) error
	// Note receives lines for the log.
	Note(lines string)
}

// Saver writes the checkpoints of a run for its engine.
type Saver interface {
	// Every returns how often the run saves.
	Every() checkpoint.Interval
	// Pending returns the request of this rank at the end of an epoch, which may already be
	// trained: the signals of its process, and on rank 0 also a due checkpoint.
	Pending(epoch int, trained bool) signals.Request
	// Save writes a checkpoint of a state on rank 0, and adds the identity and the cost of the run to it. If
	// the run stops with it, the saver stores the error of the run. Otherwise a failure to write the checkpoint
	// does not end the run.
	Save(s checkpoint.State, stop bool)
	// Served is called on every rank after a request has been served. took is its duration.
	Served(took time.Duration)
}

// Engine runs the tasks of a graph rank on its own workers.
type Engine struct {
	Rank
	workers *workers
	packers *kernels.Team // of exchanges, to encode and decode in parallel
	codec   chosenCodec
	targets task.Target         // of all own vertices
	metrics []objective.Metrics // by split, on rank 0 after the best weights are known
	codes   *graphwork.Codes    // of the shard's edges; nil if they are plain

	usage
	ghostInputs
	outbox   *world.Outbox // of asynchronous stretches
	slotRows int           // of a sketch, whose intervals are larger: rows of a run's intervals
}

// usage is the memory of an engine and the size of its exchanges so far.
type usage struct {
	arrays  int64 // bytes in bounded asynchrony, at their peak
	values  Values
	rowsTo  []int64 // by rank: rows sent in an exchange; nil before the plan of training is known
	outline Outline // of an epoch of training
}

// ghostInputs are the ghosts whose rows a rank computes, and their inputs.
type ghostInputs struct {
	halo          *localHalo
	ghostFeatures graph.Features // without values if the computation reads none
	ghostInput    kernels.Mat    // cached ÂX, if any
}

// New starts the workers of a rank.
func New(r Rank) (*Engine, error) {
	e := &Engine{Rank: r}
	var err error
	if e.workers, err = newWorkers(r); err != nil {
		return nil, err
	}
	if e.packers, err = newTeam(&r.Config, r.Threads); err != nil {
		e.workers.close()
		return nil, err
	}
	if r.Config.Asynchronous() {
		e.outbox = world.NewOutbox(r.World)
	}
	if r.Config.Edges == config.CodedEdges {
		e.codes = graphwork.NewCodes(e.packers, r.Arena, 0)
	}
	e.Tensor.Follow(e.workers.pool.Queue)
	return e, nil
}

// Close stops the workers.
func (e *Engine) Close() {
	e.Tensor.Close()
	e.workers.close()
	e.packers.Close()
	e.Files.Close()
}

// Fork returns another Ops with the arithmetic and memory of the workers.
func (e *Engine) Fork() kernels.Ops { return e.workers.newOps() }

// Kernel returns the variant of the kernels, and that of tensor work if it differs.
func (e *Engine) Kernel() string {
	name := e.workers.teams[0].Kernel()
	if other := e.Tensor.Kernel(); other != "" {
		name += " and " + other
	}
	return name
}

// Values is the memory for the values of layers: the actual bytes, and the bytes without
// recomputation.
type Values struct{ Bytes, KeptBytes int64 }

// Usage has the memory of an engine and the size of its exchanges.
type Usage struct {
	Values           // in training
	ArrayBytes int64 // peak memory of arrays
	// RowsTo is the number of rows, or sums of rows, that this rank sends to each rank in an
	// exchange of training. It is nil if no exchange covers all vertices.
	RowsTo  []int64
	Outline Outline // of an epoch
}

// Usage returns the usage so far.
func (e *Engine) Usage() Usage {
	return Usage{e.values, max(e.arrays, e.Arena.Used()), e.rowsTo, e.outline}
}

// recordPlan records the plan of training, which is the first plan.
func (e *Engine) recordPlan(p *halo.Plan) {
	if len(e.rowsTo) > 0 {
		return
	}
	for q := range p.Parts {
		e.rowsTo = append(e.rowsTo, p.SendStart[q+1]-p.SendStart[q])
	}
}

// describeWaits registers functions that return the activity of this rank and the ranks that it waits
// for. Messages about long waits report both. remove removes the functions.
func (e *Engine) describeWaits(during func() string, awaited func() []int, comms ...world.Comm) (remove func()) {
	l := e.Limits
	l.During, l.Awaited = during, awaited
	for _, c := range comms {
		c.SetLimits(l)
	}
	return func() {
		for _, c := range comms {
			c.SetLimits(e.Limits)
		}
	}
}

// VertexIDs is the purpose of the memory for the ids of own vertices and ghosts.
const VertexIDs = "vertex ids"

// localIDs returns the dataset ids of own vertices and then ghosts.
func (e *Engine) localIDs(a *mapped.Arena) []uint32 {
	ids := mapped.Make[uint32](a.For(VertexIDs), e.Shard.NumOwn()+e.Shard.NumGhosts())
	a.Fill(func() { copy(ids[copy(ids, e.Shard.Own):], e.Shard.Ghosts) })
	return ids
}
