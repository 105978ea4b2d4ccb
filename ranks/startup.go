package ranks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/mapped"
	"siafu/internal/safetensors"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/engine"
	"siafu/ranks/inject"
	"siafu/ranks/tensor"
	"siafu/ranks/trace"
	"siafu/ranks/world"
)

// open opens the run. On rank 0 it checks the dataset and that the network's weights fit,
// claims the run folder, and partitions if that has not been done. A later view continues with
// the files of the first one.
func (r *member) open() (*opened, error) {
	if err := r.assign(); err != nil {
		return nil, err
	}
	if err := r.attachViews(); err != nil {
		return nil, err
	}
	r.fault.At(inject.Start, 0)
	o := &opened{member: r}
	if r.rank != 0 {
		return o, nil
	}
	if o.files = r.views.files; o.reporter != nil {
		return o, nil
	}
	if r.view.Number > 0 { // another rank has written the folder
		r.cfg.Out = r.views.runFolder()
		if r.out.Lead != nil {
			r.out.Lead()
		}
	}
	err := (&opener{opened: o}).open()
	r.views.files = o.files
	return o, err
}

// opener is rank 0 while it opens a run.
type opener struct {
	*opened
	meta *graph.Meta
	net  model.Spec
}

func (r *opener) open() (err error) {
	if r.meta, err = graph.ReadMeta(r.data); err != nil {
		return err
	}
	if err := r.meta.Trains("train", r.data); err != nil {
		return err
	}
	if r.meta.Train == 0 {
		return fault.New(fault.Data, "train", r.data, "no vertex is in the training split").
			Then("import the dataset with a split")
	}
	if err := r.trainGate().weights(r.member, r.meta); err != nil {
		return err
	}
	if _, err := r.cfg.TaskOf(r.meta); err != nil {
		return err
	}
	r.net = r.cfg.NetworkOf(r.meta)
	if err := r.cfg.CheckGathers(r.meta, r.net); err != nil {
		return err
	}
	if text := config.IgnoredWeights(r.meta, r.net); text != "" {
		fmt.Fprintf(r.out.Err, "siafu: warning: %s\n", text)
	}
	if r.meta.Edges == 0 && r.net.Propagates() {
		fmt.Fprintf(r.out.Err, "siafu: warning: %s has no edges, so that vertices learn nothing from each other; import the dataset with "+
			"edges, or train with --model mlp\n", r.data)
	}
	if r.cfg.Trace != "" {
		if err := trace.Check(r.cfg.Trace); err != nil {
			return err
		}
	}
	if err := r.admit(); err != nil {
		return err
	}
	return r.partition(r.meta, r.reporter.folder.Dir())
}

// assign sets the fields that depend only on the configuration and the world.
func (r *member) assign() error {
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
	if r.codecs, err = r.cfg.Codecs(); err != nil {
		return err
	}
	if err := r.openGPU(); err != nil {
		return err
	}
	r.closes(r.arena.Free, true) // before its GPU
	return nil
}

// partition makes the requested shards if they are missing. If the dataset's folder is not
// writable, it uses the run folder.
func (r *opened) partition(meta *graph.Meta, folder string) (err error) {
	o := partitionOptions(&r.cfg, r.partitions())
	place := partition.Place{Data: r.data, Root: r.cfg.PartsDir, Spare: filepath.Join(folder, "parts"), Fingerprint: meta.Fingerprint()}
	var report *partition.Report
	r.shards, report, err = place.Ensure(o, func(o partition.Options) {
		r.reporter.log("partition parts=%d method=%s vertex_order=%s dataset=%s", r.partitions(), o.Method, o.Order, meta.Name)
	})
	if err != nil || report == nil {
		return err
	}
	host.FreeMemory() // memory of the partitioner
	host.ForgetPeak()
	r.reporter.Note(report.String())
	return nil
}

func partitionOptions(c *Config, parts int) partition.Options {
	return partition.Options{Method: c.Partitioner, Order: c.VertexOrder, Parts: parts, Seed: 1}
}

// shareFolders shares the locations of the shards and of the run with all ranks. Collective over the
// world.
func (r *opened) shareFolders() error {
	run := ""
	if r.reporter != nil {
		run = r.reporter.folder.Dir()
	}
	for _, path := range []*string{&r.shards, &run} {
		shared, err := world.BcastBlob(r.world, []byte(*path), 0)
		if err != nil {
			return err
		}
		*path = string(shared)
	}
	r.views.setRunFolder(run)
	return nil
}

// join reads meta.json, and on graph ranks the shard. Collective over the world.
func (r *opened) join() (*joined, error) {
	if err := r.shareFolders(); err != nil {
		return nil, err
	}
	j := &joined{opened: r}
	if err := agree(r.world, j.read()); err != nil {
		return j, err
	}
	return j, j.shareHops()
}

func (r *joined) read() error {
	var err error
	if r.meta, err = graph.ReadMeta(r.data); err != nil {
		return err
	}
	if r.task, err = r.cfg.TaskOf(r.meta); err != nil {
		return err
	}
	r.net = r.cfg.NetworkOf(r.meta)
	if err := r.cfg.Divide(r.meta.Train, int64(r.meta.Vertices), r.partitions()); err != nil {
		return err
	}
	r.record()
	if r.cfg.Survive && r.view.Number == 0 {
		if err := opens("train", r.views.host, shard.Paths(r.shards, r.partitions())); err != nil {
			return err
		}
	}
	if r.isServer() {
		return nil
	}
	return r.openShard()
}

// openShard opens the shard of a graph rank, and for link prediction the held-out edges of the
// dataset, if any.
func (r *joined) openShard() (err error) {
	if r.meta.Task == graph.Links && r.task == graph.Links {
		var release func() error
		if r.heldOut, release, err = graph.OpenHeldOut(r.data); err != nil {
			return err
		}
		r.closes(func() { _ = release() }, true)
	}
	if r.shard, err = shard.OpenIn(r.shards, r.data, r.partitions(), r.ownPartition()); err == nil {
		r.closes(func() { _ = r.shard.Close() }, true)
	}
	return err
}

// startEngine starts the engine of a graph rank, after all settings are resolved. Collective
// over the world.
func (r *joined) startEngine(orders string) (*prepared, error) {
	p := &prepared{joined: r, orders: orders, tensor: tensor.CPU{}}
	graph, err := r.world.Sub(r.graphRanks())
	if err != nil {
		return nil, err
	}
	peers, stages, err := r.divide(graph)
	if err != nil {
		return nil, err
	}
	if !r.isServer() {
		p.tensor, err = r.newBackend()
	}
	if !r.isServer() && err == nil {
		rank := engine.Rank{
			Problem: engine.Problem{
				Config: r.cfg, Shard: r.shard, Network: r.net, Task: r.task, Meta: r.meta, HeldOut: r.heldOut, Codecs: r.codecs,
			},
			Comms: engine.Comms{World: r.world, Peers: peers, Graph: graph, Stages: stages, Limits: r.limits},
			Machine: engine.Machine{
				Tensor: p.tensor, Ops: r.ops, Arena: r.arena, Files: r.placement.pool(), Threads: r.threads,
				Recorders: r.timeline.recorders, Fault: r.fault, Watch: r.out.Watch,
			},
			Reporter: r.reporter, Clusters: engine.NoClusters,
		}
		if r.views.replaceable {
			rank.Views, rank.Clusters = r, r.views.clusters
		}
		for _, member := range r.pipelineRanks(r.ownPartition()) {
			rank.Carriers = append(rank.Carriers, r.view.Rank(member))
		}
		if p.engine, err = engine.New(rank); err != nil {
			p.tensor.Close()
		} else {
			r.closes(p.engine.Close, false)
		}
	}
	if err := agree(r.world, err); err != nil || r.isServer() {
		return p, err
	}
	return p, p.engine.PrepareTargets()
}

// divide returns the communicators of the graph ranks with the same stage, and of the stages of a pipeline.
// Without pipelines all graph ranks have the same stage, and stages is nil. Collective over the graph
// ranks.
func (r *joined) divide(graph world.Comm) (peers, stages world.Comm, err error) {
	if r.cfg.Pipeline == "" || r.isServer() {
		return graph, nil, nil
	}
	join := func(mine *world.Comm, ranks []int) {
		c, failed := graph.Sub(ranks)
		if err = errors.Join(err, failed); c != nil && slices.Contains(ranks, r.rank) {
			*mine = c
		}
	}
	for s := range r.Stages {
		join(&peers, r.stageRanks(s))
	}
	for d := range r.partitions() {
		join(&stages, r.pipelineRanks(d))
	}
	return peers, stages, err
}

// newBackend makes the backend of a graph rank's tensor tasks. The engine closes it.
func (r *joined) newBackend() (tensor.Backend, error) {
	switch {
	case r.backend != nil:
		return r.backend(r), nil
	case r.cfg.Tensor == config.TensorLambda:
		return r.invoke()
	case r.gpu != nil && r.cfg.GPUsApply():
		return r.applyOnGPU()
	}
	return tensor.CPU{}, nil
}

// prepare agrees on the partition and on the order of products, checks the memory, and starts
// the engines. Collective over the world.
func (r *joined) prepare() (*prepared, error) {
	if err := r.sameAssignment(); err != nil {
		return nil, err
	}
	if err := r.agreeOnGPUs(); err != nil {
		return nil, err
	}
	if err := errors.Join(r.agreeOnKernels(), r.shareDecisions()); err != nil {
		return nil, err
	}
	orders, err := r.chooseOrders()
	if err != nil {
		return nil, err
	}
	if err := r.chooseEdges(r.forecast); err != nil {
		return nil, err
	}
	if err := r.placeValues(); err != nil {
		return nil, err
	}
	p, err := r.startEngine(orders)
	if err != nil {
		return nil, err
	}
	if err := r.reporter.header(p); err != nil {
		return nil, err
	}
	return p, r.checkMemory()
}

// begin agrees on the first weights: random, from a file that rank 0 reads, or those of a
// checkpoint. Then rank 0 begins to write the run folder. Collective over the world.
func (r *prepared) begin() (*begun, error) {
	b := &begun{prepared: r, weights: mapped.Make[float32](r.arena, r.net.NumWeights())}
	r.net.Initialize(b.weights, r.cfg.Initializer, r.cfg.Seed)
	r.net.ScaleInput(b.weights, r.cfg.InputScale)
	if err := b.restore(); err != nil {
		return nil, err
	}
	if r.cfg.Init != "" && b.from.Epoch == 0 {
		var err error
		if r.world.Rank() == 0 {
			var list []safetensors.Tensor
			if list, _, err = readWeights(r.cfg.Init, r.net, r.meta); err == nil {
				fillWeights(r.net, list, b.weights)
			}
		}
		if err := agree(r.world, err); err != nil {
			return nil, err
		}
		if err := r.world.Bcast(mapped.Bytes(b.weights), 0); err != nil {
			return nil, err
		}
	}
	// All checks are done, and nothing has been written yet.
	if err := agree(r.world, b.beginFolder()); err != nil {
		return nil, err
	}
	r.invite()
	return b, nil
}

// sameAssignment fails if the shards come from two partitionings of the same dataset, for
// example if it is partitioned again while a run starts. Collective over the world.
func (r *joined) sameAssignment() error {
	mine := ""
	if r.shard != nil {
		mine = r.shard.Assignment
	}
	first, err := world.BcastBlob(r.world, []byte(mine), 0)
	if err != nil {
		return err
	}
	if r.shard != nil && mine != string(first) {
		err = fault.New(fault.Data, "train", r.shards, "the shards of rank %d and rank 0 belong to different partitionings", r.rank).
			Then(`run "siafu partition --parts %d %s" and start again`, r.partitions(), r.data)
	}
	return agree(r.world, err)
}
