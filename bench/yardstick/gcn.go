package yardstick

import (
	"context"
	"encoding/json"
	"os/exec"
	"strconv"

	"siafu/graph"
	"siafu/graph/fault"
	"siafu/graph/mapped"
)

// GCN is a training run that PyTorch repeats: full graph, Adam, a network as
// that of model.Spec.
type GCN struct {
	Dims         []int   `json:"dims"` // input, hidden…, classes
	Dropout      float64 `json:"dropout"`
	InputDropout float64 `json:"input_dropout"`
	LR           float64 `json:"lr"`
	WeightDecay  float64 `json:"weight_decay"`
	DecayAll     bool    `json:"decay_all"` // not the first layer alone
	Threads      int     `json:"threads"`
	// Weights are the initial ones: for each layer its matrix [in x out], then
	// its bias.
	Weights []float32 `json:"-"`
}

// Variant is one of the ways to write the same epoch in PyTorch.
type Variant string

// BestOrder multiplies each layer in the order that gathers fewer columns. Once
// does the same with ÂX computed before the first epoch, which input dropout
// forbids. Sparse keeps sparse features sparse, as siafu does; the other two
// make them dense.
const (
	BestOrder Variant = "best order"
	Once      Variant = "ÂX once"
	Sparse    Variant = "sparse X"
)

// Variants are those that dataset and run allow.
func (g GCN) Variants(d *graph.Dataset) []Variant {
	v := []Variant{BestOrder}
	if g.InputDropout == 0 {
		v = append(v, Once)
	}
	if d.Features.Sparse != nil {
		v = append(v, Sparse)
	}
	return v
}

// handover is what epoch.py reads beside the arrays.
type handover struct {
	GCN
	Variant  Variant `json:"variant"`
	Directed bool    `json:"directed"`
	Sparse   bool    `json:"sparse_features"`
}

// Epoch is PyTorch ready to train; a repetition is one epoch without
// evaluation. Result is the losses of all epochs since the start, the first one
// before any step.
func (l *Lab) Epoch(ctx context.Context, d *graph.Dataset, g GCN, v Variant) (*Rival, error) {
	python, err := l.interpreter(ctx)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(handover{g, v, d.Meta.Directed, d.Features.Sparse != nil})
	if err != nil {
		return nil, err
	}
	files := operands{
		"config": config, "weights": mapped.Bytes(g.Weights),
		"offsets": mapped.Bytes(d.In.Offsets), "cols": mapped.Bytes(d.In.Cols),
		"labels": mapped.Bytes(d.Labels), "split": mapped.Bytes(d.Split),
	}
	if d.Meta.Directed {
		files["out_offsets"], files["out_cols"] = mapped.Bytes(d.Out.Offsets), mapped.Bytes(d.Out.Cols)
	}
	if x := d.Features.Sparse; x != nil {
		files["x_offsets"], files["x_cols"], files["x_vals"] = mapped.Bytes(x.Offsets), mapped.Bytes(x.Cols), mapped.Bytes(x.Vals)
	} else {
		files["x"] = mapped.Bytes(d.Features.Dense)
	}
	dir, err := l.stage(files)
	if err != nil {
		return nil, err
	}
	return start(ctx, "PyTorch, "+string(v), dir, tuned(g.Threads), python, l.source("epoch.py"), dir)
}

// tuned is the environment in which PyTorch is fastest: allocations come from
// huge pages and stay with the process, where the C library's defaults take
// fresh pages for every activation, and OpenBLAS uses its best routines.
func tuned(threads int) []string {
	env := []string{
		"GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=4294967296",
		"OPENBLAS_NUM_THREADS=" + strconv.Itoa(threads),
	}
	for _, core := range coreTypes() {
		if core != "" {
			env = append(env, "OPENBLAS_CORETYPE="+core)
		}
	}
	return env
}

// interpreter is a Python that has PyTorch.
func (l *Lab) interpreter(ctx context.Context) (string, error) {
	if l.python != "" {
		return l.python, nil
	}
	// A Python of the user's own often hides the system's, which has PyTorch
	// from a package.
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		has := exec.CommandContext(ctx, python, "-c", `import importlib.util as u; exit(not (u.find_spec("torch") and u.find_spec("numpy")))`)
		if has.Run() == nil {
			l.python = python
			return python, nil
		}
	}
	return "", fault.New(fault.Missing, opYardstick, "epoch.py", "no Python with PyTorch and NumPy").
		Then("install python3-torch and python3-numpy")
}
