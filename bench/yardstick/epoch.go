package yardstick

import (
	"context"
	"encoding/json"
	"math"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/ranks/config"
)

// Training is a run that PyTorch repeats: full graph, Adam, the network of a model.Spec.
type Training struct {
	Model        string  `json:"model"`        // gcn, sage, gat or rgcn with independent matrices
	Device       string  `json:"device"`       // PyTorch's name, cpu or cuda:0
	Dims         []int   `json:"dims"`         // input, hidden…, classes
	Heads        int     `json:"heads"`        // of attention, in a hidden layer
	OutputHeads  int     `json:"output_heads"` // and in the last one
	Dropout      float64 `json:"dropout"`
	InputDropout float64 `json:"input_dropout"`
	LR           float64 `json:"lr"`
	// AttentionDropout is only for siafu's side. Libraries returns no library for a run with it.
	AttentionDropout float64 `json:"-"`
	WeightDecay      float64 `json:"weight_decay"`
	DecayAll         bool    `json:"decay_all"` // not only the first layer
	Project          bool    `json:"project"`   // of rgcn: the first layer projects the features
	Threads          int     `json:"threads"`
	// Weights are the initial ones in siafu's order: for each layer of a GCN its
	// matrix [in x out], then its bias.
	Weights []float32 `json:"-"`
}

// TrainingOf returns the training of c for PyTorch, with the same initial weights.
func TrainingOf(c config.Config, d *graph.Dataset) (Training, error) {
	if err := c.Validate(); err != nil {
		return Training{}, err
	}
	if err := d.Meta.Trains("bench", d.Dir); err != nil {
		return Training{}, err
	}
	if d.Meta.Task == graph.Links {
		return Training{}, fault.New(fault.Usage, "bench", d.Dir, "a dataset with held-out edges has no labels").
			Then("measure on the dataset that it was created from")
	}
	s := c.NetworkOf(d.Meta)
	g := Training{
		Model: c.Model, Device: "cpu", Dims: s.Dims, Heads: s.Heads, OutputHeads: s.OutputHeads,
		Dropout: s.Dropout, InputDropout: s.InputDropout, AttentionDropout: s.AttentionDropout,
		Project: s.Design.Project,
		LR:      c.LR, WeightDecay: c.WeightDecay, DecayAll: c.WeightDecayOn == "all",
		Threads: runtime.GOMAXPROCS(0), Weights: make([]float32, s.NumWeights()),
	}
	if c.Threads > 0 {
		g.Threads = c.Threads * max(c.Ranks, 1)
	}
	s.Initialize(g.Weights, c.Initializer, c.Seed)
	return g, nil
}

// Variant is one of the ways to write the same epoch in PyTorch, by hand or with
// the layers of a library.
type Variant string

// BestOrder multiplies each layer in the order that gathers fewer columns. Once
// does the same with ÂX computed before the first epoch, which input dropout
// forbids. Sparse keeps sparse features sparse, as siafu does; the other two
// make them dense. With bags a gather is a sum of weighted embeddings instead of a product with a CSR matrix.
// Matrices, Bags and Scatter are forms of the sparse products of rgcn, Bags of attention.
const (
	BestOrder Variant = "best order"
	Once      Variant = "ÂX once"
	OrderBags Variant = "best order, embedding bags"
	OnceBags  Variant = "ÂX once, embedding bags"
	Sparse    Variant = "sparse X"
	Matrices  Variant = "CSR matrices"
	Bags      Variant = "embedding bags"
	Scatter   Variant = "index_add"
	PyG       Variant = "PyG"
	DGL       Variant = "DGL"
)

// module returns the Python package of a library's layers, "" for none.
func (v Variant) module() string {
	return map[Variant]string{PyG: "torch_geometric", DGL: "dgl"}[v]
}

// Variants returns the hand-written variants that dataset and run allow.
func (g Training) Variants(d *graph.Dataset) []Variant {
	switch {
	case g.Model == "rgcn" && d.Meta.Relations != nil:
		return []Variant{Matrices, Bags, Scatter}
	case g.Model == "gat" && g.Dropout+g.InputDropout+g.AttentionDropout+g.WeightDecay == 0 && d.Features.Sparse == nil:
		return []Variant{Bags}
	case g.Model != "gcn" && g.Model != "sage":
		return nil
	}
	v := []Variant{BestOrder, OrderBags}
	if g.InputDropout == 0 {
		v = append(v, Once, OnceBags)
	}
	if d.Features.Sparse != nil {
		v = append(v, Sparse)
	}
	return v
}

// Libraries returns the libraries whose layers support dataset and run.
func (g Training) Libraries(d *graph.Dataset) []Variant {
	if g.Dropout != 0 || g.InputDropout != 0 || g.AttentionDropout != 0 || g.WeightDecay != 0 || d.Features.Sparse != nil {
		return nil
	}
	return []Variant{PyG, DGL}
}

// handover is the input of epoch.py besides the arrays.
type handover struct {
	Training
	Variant  Variant `json:"variant"`
	Directed bool    `json:"directed"`
	Sparse   bool    `json:"sparse_features"`
	// Relations is nil if the graph is not relational.
	Relations *graph.Relations `json:"relations"`
}

// StartPyTorch starts a PyTorch process and waits until it is ready to train. A repetition of the process is one epoch without
// evaluation. The result contains the losses of all epochs since the start; the first loss
// precedes any step.
func (l *Runner) StartPyTorch(ctx context.Context, d *graph.Dataset, g Training, v Variant) (*Reference, error) {
	script, modules := "epoch.py", []string{"torch", "numpy"}
	if m := v.module(); m != "" {
		script, modules = "layers.py", append(modules, m)
	}
	switch {
	case g.Model == "rgcn":
		script = "rgcn.py"
	case v == Bags:
		script = "attention.py"
	}
	python, err := l.interpreter(ctx, modules)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(handover{g, v, d.Meta.Directed, d.Features.Sparse != nil, d.Meta.Relations})
	if err != nil {
		return nil, err
	}
	files := operands{
		"config": config, "weights": mapped.Bytes(g.Weights),
		"offsets": mapped.Bytes(d.In.Offsets), "cols": mapped.Bytes(d.In.Cols),
		"labels": mapped.Bytes(d.Labels), "split": mapped.Bytes(d.Split),
	}
	if g.Model == "rgcn" {
		files["relations"] = mapped.Bytes(d.Relations)
	} else if d.Meta.Directed {
		files["out_offsets"], files["out_cols"] = mapped.Bytes(d.Out.Offsets), mapped.Bytes(d.Out.Cols)
	}
	if x := d.Features.Sparse; x != nil {
		files["x_offsets"], files["x_cols"], files["x_vals"] = mapped.Bytes(x.Offsets), mapped.Bytes(x.Cols), mapped.Bytes(x.Vals)
	} else {
		files["x"] = mapped.Bytes(d.Features.Floats())
	}
	return l.start(ctx, "PyTorch, "+string(v), tuned(g.Threads), files, []string{python, l.source(script)})
}

// Train lets PyTorch train for about the given time. It returns the closed process and all
// losses.
func (l *Runner) Train(ctx context.Context, d *graph.Dataset, g Training, v Variant, budget time.Duration) (*Reference, []float32, error) {
	r, err := l.StartPyTorch(ctx, d, g, v)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	if err := r.Run(budget); err != nil {
		return nil, nil, err
	}
	losses, err := r.Result()
	return r, losses, err
}

// SameLoss returns a fault if a reference's loss after some epochs differs from siafu's by more
// than rounding: without dropout, and from the same weights, they are equal.
func SameLoss(op, reference string, epoch int, theirs, ours float64) error {
	if math.Abs(theirs-ours) <= 1e-3*math.Max(1, ours) {
		return nil
	}
	return fault.New(fault.Runtime, op, reference, "its loss in epoch %d is %v instead of %v", epoch, theirs, ours)
}

// tuned returns the environment in which PyTorch is fastest. Allocations use huge pages and
// stay with the process, while the C library's defaults map new pages for every activation.
// OpenBLAS uses its best routines.
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
	if kernels.Best() == "avx2" {
		env = append(env, "ATEN_CPU_CAPABILITY=avx2")
	}
	return env
}

// interpreter returns a Python with the modules.
func (l *Runner) interpreter(ctx context.Context, modules []string) (string, error) {
	names := strings.Join(modules, ", ")
	if python := l.pythons[names]; python != "" {
		return python, nil
	}
	// A user's Python often hides the system's, which has PyTorch from a package.
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		args := append([]string{"-c", `import importlib.util as u, sys; exit(not all(u.find_spec(m) for m in sys.argv[1:]))`}, modules...)
		if exec.CommandContext(ctx, python, args...).Run() == nil {
			l.pythons[names] = python
			return python, nil
		}
	}
	return "", fault.New(fault.Missing, opYardstick, "", "no Python with %s", names).
		Then("install python3-torch and python3-numpy; for the variants PyG and DGL also install these libraries")
}
