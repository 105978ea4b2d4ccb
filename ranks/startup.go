package ranks

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/mapped"
	"siafu/ranks/config"
	"siafu/ranks/engine"
	"siafu/ranks/inject"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
)

// open runs on rank 0: it checks the dataset and that the network's weights fit, claims the
// run folder, and partitions if that has not been done.
func (r *run) open(out IO) error {
	if err := r.assign(); err != nil {
		return err
	}
	if err := r.elastic.attach(r); err != nil {
		return err
	}
	r.fault.At(inject.Start, 0)
	if r.rank != 0 || r.elastic.restoreOpened(r) {
		return nil
	}
	meta, err := graph.ReadMeta(r.data)
	if err != nil {
		return err
	}
	if err := meta.Trains("train", r.data); err != nil {
		return err
	}
	if meta.Train == 0 {
		return fault.New(fault.Data, "train", r.data, "no vertex is in the training split").
			Then("import the dataset with a split")
	}
	if err := trainGate(&r.cfg, out).weights(r, meta); err != nil {
		return err
	}
	if _, err := r.cfg.TaskOf(meta); err != nil {
		return err
	}
	r.meta, r.net = meta, r.cfg.NetworkOf(meta)
	if err := r.cfg.CheckGathers(meta, r.net); err != nil {
		return err
	}
	if text := config.IgnoredWeights(meta, r.net); text != "" {
		fmt.Fprintf(out.Err, "siafu: warning: %s\n", text)
	}
	if err := r.checkTimeline(); err != nil {
		return err
	}
	if err := r.admit(out); err != nil {
		return err
	}
	r.elastic.saveOpened(r)
	err = r.partition(meta, r.reporter.folder.Dir())
	r.elastic.saveOpened(r)
	return err
}

// assign sets the fields that depend only on the configuration and the world.
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
	if r.tensor == nil && r.cfg.Tensor != config.TensorLambda { // tests set their own
		r.tensor = tensor.CPU{}
	}
	if r.codecs, err = r.cfg.Codecs(); err != nil {
		return err
	}
	return r.openGPU()
}

// partition makes the requested shards if they are missing. If the dataset's folder is not
// writable, it uses the run folder.
func (r *run) partition(meta *graph.Meta, folder string) (err error) {
	o := partition.Options{Method: r.cfg.Partitioner, Order: r.cfg.VertexOrder, Parts: r.Graph, Seed: 1}
	place := partition.Place{Data: r.data, Root: r.cfg.PartsDir, Spare: filepath.Join(folder, "parts"), Fingerprint: meta.Fingerprint()}
	var report *partition.Report
	r.shards, report, err = place.Ensure(o, func(o partition.Options) {
		r.reporter.log("partition parts=%d method=%s vertex_order=%s dataset=%s", r.Graph, o.Method, o.Order, meta.Name)
	})
	if err != nil || report == nil {
		return err
	}
	debug.FreeOSMemory() // memory of the partitioner
	host.ForgetPeak()
	r.reporter.Note(report.String())
	return nil
}

// printShards shares the location of the shards with all ranks. Collective over the world.
func (r *run) printShards() error {
	folder, err := world.BcastBlob(r.world, []byte(r.shards), 0)
	r.shards = string(folder)
	return err
}

// join runs on every rank after rank 0 has opened the run: it reads meta.json, and on graph
// ranks the shard.
func (r *run) join() error {
	var err error
	if r.meta, err = graph.ReadMeta(r.data); err != nil {
		return err
	}
	if r.task, err = r.cfg.TaskOf(r.meta); err != nil {
		return err
	}
	r.net = r.cfg.NetworkOf(r.meta)
	if err := r.cfg.Divide(r.meta.Train, r.Graph); err != nil {
		return err
	}
	r.record()
	if r.isServer() {
		return nil
	}
	if err := r.openHeldOut(); err != nil {
		return err
	}
	r.shard, err = shard.OpenIn(r.shards, r.data, r.Graph, r.rank)
	return err
}

// openHeldOut opens the held-out edges of a dataset, if any, for link prediction.
func (r *run) openHeldOut() (err error) {
	if r.meta.Task == graph.Links && r.task == graph.Links {
		r.heldOut, r.letGo, err = graph.OpenHeldOut(r.data)
	}
	return err
}

// startEngine starts the engine of a graph rank, after all settings are resolved. Collective
// over the world.
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
			Config: r.cfg, World: r.world, Peers: peers, Limits: r.limits, Shard: r.shard, Network: r.net, Task: r.task, Meta: r.meta, HeldOut: r.heldOut, Codecs: r.codecs,
			Tensor: r.tensor, Ops: r.ops, Arena: r.arena, Threads: r.threads, Recorders: r.timeline.recorders, Fault: r.fault, Reporter: r.reporter,
		}
		if r.elastic != nil {
			rank.Views = r
		}
		if r.engine, err = engine.New(rank); err != nil {
			r.tensor.Close()
		}
	}
	if err := agree(r.world, err); err != nil || r.isServer() {
		return err
	}
	return r.engine.PrepareTargets()
}

// arrange agrees on the partition and on the order of products, and starts the
// engines. Collective over the world.
func (r *run) arrange() error {
	if err := r.sameAssignment(); err != nil {
		return err
	}
	if err := r.agreeOnGPUs(); err != nil {
		return err
	}
	if err := r.chooseOrders(); err != nil {
		return err
	}
	return r.startEngine()
}

// initialWeights agrees on the first weights: random, or from a file that rank 0 reads.
// Collective over the world.
func (r *run) initialWeights() ([]float32, error) {
	weights := mapped.Make[float32](r.arena, r.net.NumWeights())
	r.net.Initialize(weights, r.cfg.Initializer, r.cfg.Seed)
	r.net.ScaleInput(weights, r.cfg.InputScale)
	if err := r.restore(weights); err != nil {
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

// sameAssignment fails if the shards come from two partitionings of the same dataset, for
// example if it is partitioned again while a run starts. Collective over the world.
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
		err = fault.New(fault.Data, "train", r.shards, "the shards of rank %d and rank 0 belong to different partitionings", r.rank).
			Then(`run "siafu partition --parts %d %s" and start again`, r.Graph, r.data)
	}
	return agree(r.world, err)
}
