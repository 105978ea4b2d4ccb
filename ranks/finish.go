package ranks

import (
	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/safetensors"
	"siafu/kernels/model"
	"siafu/ranks/engine"
	"siafu/ranks/inject"
	"siafu/ranks/pytorch"
	"siafu/ranks/runfolder"
	"siafu/ranks/world"
)

// Version of this program.
const Version = "0.1.0"

// finish gathers the reports of all ranks and ends the run. Collective over the world.
func (r *begun) finish() error {
	r.fault.At(inject.Finish, 0)
	var used engine.Usage
	if !r.isServer() {
		used = r.engine.Usage()
	}
	mine := runfolder.RankReport{
		Rank: r.view.Rank(r.rank), Part: r.part(), Role: r.name(), Host: r.world.Hosts()[r.rank], PeakRSSBytes: host.PeakRSS(),
		ArrayBytes: max(used.ArrayBytes, r.arena.Used()), StashBytes: r.stash,
		LambdaInvocations: r.tensor.Invocations(),
		ActivationBytes:   used.Bytes, ActivationBytesKept: used.KeptBytes,
	}
	if mine.ScratchBytes = r.arena.Spilled(); r.cfg.Scratch != "" {
		mine.ArrayBytes = max(mine.ArrayBytes-mine.ScratchBytes, 0)
		mine.DiskBytesRead, mine.DiskBytesWritten = host.DiskBytes()
	}
	if t := r.tensor.Tuning(); t != nil {
		mine.LambdaAtOnce = &runfolder.AtOnce{First: t.First, Last: t.Last, Least: t.Least, Most: t.Most, Changes: t.Changes}
	}
	if r.shard != nil {
		mine.Vertices, mine.Ghosts = int64(r.shard.NumOwn()), int64(r.shard.NumGhosts())
		mine.Edges, mine.RowsTo = int64(len(r.shard.In.Cols)), used.RowsTo
	}
	reports, err := world.GatherValues(r.world, 0, mine)
	if err != nil {
		return err
	}
	r.tensor.Settle()
	spent, err := world.GatherValues(r.world, 0, r.tensor.TakeSpent())
	if err != nil {
		return err
	}
	bridges, err := r.bridgeReports()
	if err != nil {
		return err
	}
	reports = append(reports, bridges...)
	if r.reporter != nil {
		for _, s := range spent {
			r.reporter.account.add(s)
		}
		err = r.reporter.finish(r, reports)
	}
	return agree(r.world, err)
}

// part returns the number of this part, nil with one part per rank and on a server.
func (r *member) part() *int {
	if r.view.Flat() || r.isServer() {
		return nil
	}
	return &r.rank
}

// readWeights reads the tensors of the network s from a file of weights, siafu's or
// PyTorch's, in the order of its parameters, and the metadata of the file. PyTorch's must have the formulas of
// s on the graph.
func readWeights(path string, s model.Spec, on *graph.Meta) ([]safetensors.Tensor, map[string]string, error) {
	list, md, err := pytorch.Read(path)
	if err == nil {
		list, err = pytorch.Weights(path, list, s, on, md == nil)
	}
	if err == nil {
		list, err = weightsOf(path, list, s)
	}
	return list, md, err
}

// weightsOf selects the tensors of the network s from those of a file, in the order of its
// parameters. It allocates no memory for tensors that the file does not contain.
func weightsOf(path string, list []safetensors.Tensor, s model.Spec) ([]safetensors.Tensor, error) {
	found := map[string]safetensors.Tensor{}
	for _, t := range list {
		found[t.Name] = t
	}
	var weights []safetensors.Tensor
	for _, p := range s.Params() {
		t, ok := found[p.Name]
		if !ok {
			return nil, fault.New(fault.Data, "init", path, "tensor %q is missing", p.Name).
				Then("use a file with the weights of a %s with dimensions %v", s.Kind, s.Dims)
		}
		if !shapeFits(t.Shape, p) {
			return nil, fault.New(fault.Data, "init", path, "tensor %q has shape %v, but the network needs [%d %d]",
				p.Name, t.Shape, p.Rows, p.Cols).
				Then("set the layers and widths of the network in the file")
		}
		weights = append(weights, t)
	}
	return weights, nil
}

// fillWeights copies tensors in the order of the parameters into a vector.
func fillWeights(s model.Spec, list []safetensors.Tensor, weights []float32) {
	for i, p := range s.Params() {
		copy(p.Of(weights), list[i].Data)
	}
}

func shapeFits(shape []int, p model.Param) bool {
	if p.Bias && len(shape) == 1 {
		return shape[0] == p.Cols
	}
	return len(shape) == 2 && shape[0] == p.Rows && shape[1] == p.Cols
}
