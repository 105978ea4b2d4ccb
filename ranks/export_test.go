package ranks

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels/model"
	"siafu/ranks/predictions"
	"siafu/ranks/pytorch"
)

// withPyTorch returns a Python with PyTorch, or skips the test.
func withPyTorch(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import importlib.util as u; exit(u.find_spec('torch') is None)").Run() == nil {
			return python
		}
	}
	t.Skip("no Python here has PyTorch: install python3-torch")
	return ""
}

// inPython runs each exported network on its dataset in PyTorch, compares the logits, and
// writes the weights under the names of PyTorch Geometric's layers, or siafu's for other
// layers. It also continues to train the exported network, and saves its state dict and
// logits. Arguments alternate between run folders and datasets.
const inPython = `
import array, importlib.util, sys
import torch

for run, data in zip(sys.argv[1::2], sys.argv[2::2]):
    spec = importlib.util.spec_from_file_location("model", run + "/model.py")
    m = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(m)
    sys.argv = ["model.py", data, run + "/predictions/logits.npy"]
    m.main()
    net, graph = m.load().train(), m.read_dataset(data)
    optimiser = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.1)
    for _ in range(3):
        optimiser.zero_grad()
        net(*graph).square().mean().backward()
        optimiser.step()
    torch.save(net.state_dict(), run + "/../tuned.pt")
    with open(run + "/../tuned.logits", "wb") as f:
        array.array("f", net.eval()(*graph).flatten().tolist()).tofile(f)
    w, about = m.read_safetensors(run + "/model.safetensors")
    design = m.json.loads(about.get("design", "{}"))
    mlp = {"weight": "weight", "bias": "bias"}
    names = {
        "gcn": {"lin.weight": "weight", "bias": "bias"},
        "sage": {"lin_l.weight": "weight", "lin_l.bias": "bias", "lin_r.weight": "self.weight"},
        "sage-max": {"lin_l.weight": "weight", "lin_l.bias": "bias", "lin_r.weight": "self.weight"},
        "sage-pool": {"lin.weight": "pool.weight", "lin.bias": "pool.bias",
                      "lin_l.weight": "weight", "lin_l.bias": "bias", "lin_r.weight": "self.weight"},
        "gin": {"nn.0.weight": "weight", "nn.0.bias": "bias", "nn.2.weight": "mlp.weight", "nn.2.bias": "mlp.bias"},
        "gatv2": {"lin_l.weight": "weight", "lin_r.weight": "target.weight", "lin_r.bias": "target.bias", "lin_edge.weight": "edge.weight",
                  "att": "attention", "bias": "bias"},
        "gat": {"lin.weight": "weight", "att_src": "source", "att_dst": "target", "bias": "bias"},
        "mlp": mlp, "appnp": mlp, "gcnii": mlp, "sgc": {"lin.weight": "weight", "lin.bias": "bias"},
    }.get(about["model"], {})
    state = {}
    def put(module, l, names):
        for theirs, ours in names.items():
            x = w.get("layers.%d.%s" % (l, ours))
            if x is not None:
                x = x.unsqueeze(0) if theirs.startswith("att") else x
                state[module + theirs] = x.t() if x.dim() == 2 and theirs != "weight1" else x
    if about["model"] == "sign":  # which PyTorch Geometric has no layer of
        torch.save(w, run + "/../state.pt")
        continue
    if "project.weight" in w:
        state["first.weight"] = w.pop("project.weight").t()
    layers = 1 + max(int(name.split(".")[1]) for name in w)
    for l in range(layers):
        if l == layers - 1 and "jumping" in design:
            put("lin.", l, mlp)
        elif about["model"] == "rgcn":
            root, blocks = w["layers.%d.self.weight" % l], design.get("blocks", 0)
            shape = [blocks, root.shape[0] // blocks, root.shape[1] // blocks] if blocks else root.shape
            matrices = w.get("layers.%d.basis" % l, w.get("layers.%d.weight" % l))
            module = "convs.%d." % l
            state.update({module + "weight": matrices.reshape(-1, *shape), module + "root": root, module + "bias": w["layers.%d.bias" % l]})
            if design.get("bases"):
                state[module + "comp"] = w["layers.%d.comp" % l]
        elif about["model"] == "sgc":
            put("conv.", l, names)
        elif about["model"] == "gcnii" and 0 < l < layers - 1:
            put("convs.%d." % l, l, {"weight1": "weight"})
        else:
            put("convs.%d." % l, l, names)
        norm = {name: "norm." + name for name in ("weight", "bias", "running_mean", "running_var")}
        put("norms.%d.%s" % (l, "module." * (design.get("norm") == "batch")), l, norm)
        if "layers.%d.norm.running_var" % l in w:
            state["norms.%d.module.num_batches_tracked" % l] = torch.tensor(12)
        put("acts.%d." % l, l, {"weight": "activation.weight"})
    if about["model"] == "gin":
        state["convs.1.eps"] = torch.zeros(1)
    torch.save(state, run + "/../state.pt")
`

// distinct returns a graph without repeated edges, which PyTorch Geometric's layers gather again.
func distinct(c graph.Content) graph.Content {
	seen, pairs := map[[2]uint32]bool{}, graph.EdgePairs{}
	c.Edges.Each(func(s, d uint32) error {
		if e := [2]uint32{s, d}; !seen[e] {
			seen[e], pairs = true, append(pairs, s, d)
		}
		return nil
	})
	c.Edges = pairs
	return c
}

// TestPyTorch: the exported file gives siafu's logits in PyTorch. It covers every network with
// several layers and heads, all options between and after layers, and graphs that are
// directed, undirected, with weights and with features of edges. Weights saved by PyTorch give
// the same bits in predict, and a training can start from them.
func TestPyTorch(t *testing.T) {
	t.Parallel()
	python := withPyTorch(t)
	script := filepath.Join(t.TempDir(), "all.py")
	if err := os.WriteFile(script, []byte(inPython), 0o600); err != nil {
		t.Fatal(err)
	}
	half, plain := distinct(smallGraph(true, false, 4)), distinct(smallGraph(true, false, 3))
	half.FeatureFormat = graph.Bfloat16
	pairs := plain.Edges.(graph.EdgePairs)
	plain.Edges = heavy{pairs}
	directed, undirected, weights := write(t, half), write(t, smallGraph(false, true, 5)), write(t, plain)
	plain.Edges = described{pairs, 3}
	described, mutual := write(t, plain), describedGraph(t, false, 2)
	related, blocks := write(t, relatedGraph(12, true, 1)), write(t, relatedGraph(5, false, 2))
	args, met := []string{script}, map[string]bool{}
	var runs []Config
	var data []string
	for _, k := range []struct {
		kind, norm, activation, jumping, residual string
		data                                      string
	}{
		{"gcn", "", "", "", "", directed},
		{"sage", "", "", "", "", undirected},
		{"gin", "", "", "", "", directed},
		{"gat", "", "", "", "", undirected},
		{"mlp", "", "", "", "", directed},
		{"gcn", "", "", "", "", weights},
		{"sage", "batch", "prelu", "cat", "", weights},
		{"gin", "pair", "leaky", "", "initial", weights},
		{"sage-max", "layer", "", "max", "", directed},
		{"sage-pool", "", "", "", "", undirected},
		{"sage-pool", "l2", "", "", "", directed},
		{"sage", "l2", "gelu", "cat", "", directed},
		{"sage-pool", "ball", "", "", "", undirected},
		{"sage-max", "l2", "", "", "add", undirected},
		{"gat", "batch", "", "", "add", directed},
		{"mlp", "", "gelu", "max", "", directed},
		{"gcn", "", "prelu", "", "", undirected},
		{"gcnii", "", "", "", "", weights},
		{"appnp", "", "", "", "", directed},
		{"sgc", "", "", "", "", directed},
		{"sign", "", "", "", "", directed},
		{"sign", "", "", "", "", weights},
		{"gatv2", "", "", "", "", undirected},
		{"gatv2", "layer", "", "", "add", weights},
		{"gatv2", "", "", "", "", described},
		{"gatv2", "batch", "", "cat", "", mutual},
		{"gcn", "", "", "", "", described},
		{"rgcn", "", "", "", "", related},
		{"rgcn", "layer", "", "", "add", blocks},
		{"rgcn bases", "", "", "cat", "", related},
		{"rgcn blocks", "", "", "", "", blocks},
		{"rgcn", "", "", "", "", directed},
		{"sage projected", "", "", "", "", blocks},
	} {
		c := quick(t)
		kind, form, _ := strings.Cut(k.kind, " ")
		c.Model, c.Layers, c.Epochs, c.Heads, c.OutputHeads, c.Hidden = kind, 3, 12, 2, 3, 8
		switch form {
		case "bases":
			c.Bases = 2
		case "blocks":
			c.Blocks, c.Hidden = 3, 6
		case "projected":
			c.Project = "on"
		}
		c.Dropout, c.Norm, c.Activation = 0, cmp.Or(k.norm, c.Norm), cmp.Or(k.activation, c.Activation)
		c.Jumping, c.Residual = cmp.Or(k.jumping, c.Jumping), cmp.Or(k.residual, c.Residual)
		i := len(runs)
		data = append(data, k.data)
		train(t, c, data[i])
		runs = append(runs, c)
		p := PredictConfig{Logits: true, StallWarn: "1m", StallAbort: "1m"}
		if err := Predict(context.Background(), p, c.Out, data[i], IO{Out: io.Discard, Err: os.Stderr}); err != nil {
			t.Fatal(err)
		}
		if err := Export(ExportOptions{Run: c.Out, PyTorch: true}, io.Discard); err != nil {
			t.Fatal(err)
		}
		args, met[kind] = append(args, c.Out, data[i]), true
	}
	for _, kind := range model.Kinds() {
		if pytorch.Knows(kind) && !met[kind] {
			t.Errorf("nobody tests %s", kind)
		}
	}
	if out, err := exec.Command(python, args...).CombinedOutput(); err != nil ||
		bytes.Count(out, []byte("largest_difference=")) != len(runs) {
		t.Fatalf("%v:\n%s", err, out)
	}
	for i, c := range runs {
		state := filepath.Join(filepath.Dir(c.Out), "state.pt")
		p := PredictConfig{Logits: true, Weights: state, Out: filepath.Join(t.TempDir(), "p"), StallWarn: "1m", StallAbort: "1m"}
		err := Predict(context.Background(), p, c.Out, data[i], IO{Out: io.Discard, Err: os.Stderr})
		if foreign := data[i] == weights && c.Model != "gatv2" || data[i] == directed && slices.Contains([]string{"gcn", "appnp", "sgc"},
			c.Model); foreign && c.Model != "sign" || c.Model == "gcn" && data[i] == described {
			if err == nil || !strings.Contains(err.Error(), "the logits differ") {
				t.Errorf("%s: PyTorch's layers have another formula on %s: %v", c.Model, data[i], err)
			}
			trainedOn(t, runs[i], data[i])
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(c.Out, "predictions", predictions.LogitFile))
		got, failed := os.ReadFile(filepath.Join(p.Out, predictions.LogitFile))
		if err != nil || failed != nil || len(got) < 200 || !bytes.Equal(got, want) {
			t.Errorf("%s: other logits of PyTorch's weights: %v %v", c.Model, err, failed)
		}
		c.Init, c.Out, c.Epochs = state, filepath.Join(t.TempDir(), "again"), 1
		if first := train(t, c, data[i]).Epochs[0].TestAcc; first == nil ||
			math.Abs(*first-readRun(t, runs[i].Out).Summary.TestAccAtBestVal) > 1e-9 {
			t.Errorf("%s: a training from PyTorch's weights does not begin where they were", c.Model)
		}
		trainedOn(t, runs[i], data[i])
	}
}

// trainedOn checks that siafu computes the logits of an exported network after further
// training in PyTorch, and that training starts from its weights.
func trainedOn(t *testing.T, c Config, data string) {
	t.Helper()
	folder := filepath.Dir(c.Out)
	p := PredictConfig{Logits: true, Weights: filepath.Join(folder, "tuned.pt"), Out: filepath.Join(t.TempDir(), "p"),
		StallWarn: "1m", StallAbort: "1m"}
	if err := Predict(context.Background(), p, c.Out, data, IO{Out: io.Discard, Err: os.Stderr}); err != nil {
		t.Errorf("%s: %v", c.Model, err)
		return
	}
	bytesOf, err := os.ReadFile(filepath.Join(folder, "tuned.logits"))
	if err != nil {
		t.Fatal(err)
	}
	want := mapped.Cast[float32](bytesOf)
	got := readFloats(t, filepath.Join(p.Out, predictions.LogitFile), 3)
	before := readFloats(t, filepath.Join(c.Out, "predictions", predictions.LogitFile), 3)
	predicted := len(want)
	if meta, err := graph.ReadMeta(data); err == nil && meta.Relations != nil { // of the kind with labels, which is the first
		predicted = 3 * int(meta.Relations.Kinds[0].Vertices)
	}
	if len(got) != predicted || slices.Equal(got, before) {
		t.Fatalf("%s: %d logits of PyTorch, %d of siafu, which PyTorch must have changed", c.Model, len(want), len(got))
	}
	for i, x := range got {
		if math.Abs(float64(x-want[i])) > 1e-4*math.Max(1, math.Abs(float64(want[i]))) { // sums in another order
			t.Errorf("%s: logit %d is %v, PyTorch has %v", c.Model, i, x, want[i])
			return
		}
	}
	c.Init, c.Out, c.Epochs = p.Weights, filepath.Join(t.TempDir(), "tuned"), 1
	loss := train(t, c, data).Epochs[0].Loss
	if want := meanCrossEntropy(t, want, data); c.Norm != "batch" && math.Abs(loss-want) > 1e-4 { // batch norm uses other means in training
		t.Errorf("%s: training begins with the loss %v, PyTorch's logits have %v", c.Model, loss, want)
	}
}

// meanCrossEntropy returns the mean cross entropy of logits over the training vertices of a
// dataset with 3 classes.
func meanCrossEntropy(t *testing.T, logits []float32, data string) float64 {
	t.Helper()
	d, err := graph.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sum, n := 0.0, 0.0
	for v, l := range d.Labels {
		if d.Split[v] != graph.SplitTrain {
			continue
		}
		total := 0.0
		for _, x := range logits[3*v : 3*v+3] {
			total += math.Exp(float64(x))
		}
		sum, n = sum+math.Log(total)-float64(logits[3*v+int(l)]), n+1
	}
	return sum / n
}

// Existing files are not overwritten, and the target format must be given.
func TestExportRefuses(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.Epochs = 1
	train(t, c, write(t, smallGraph(false, false, 1)))
	dir := t.TempDir()
	for range 2 {
		if err := Export(ExportOptions{Run: c.Out, PyTorch: true}, io.Discard); err != nil {
			t.Errorf("again: %v", err)
		}
	}
	o := ExportOptions{Run: c.Out, PyTorch: true, Out: filepath.Join(dir, "new")}
	if err := Export(o, io.Discard); err != nil {
		t.Error(err)
	}
	if err := Export(ExportOptions{Run: o.Out, PyTorch: true, Out: c.Out}, io.Discard); fault.KindOf(err) != fault.Usage {
		t.Errorf("over the model of a run: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.py"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Export(ExportOptions{Run: c.Out, PyTorch: true, Out: dir}, io.Discard); fault.KindOf(err) != fault.Usage ||
		!strings.Contains(fmt.Sprint(err), "model.py") {
		t.Errorf("over a foreign file: %v", err)
	}
	if err := Export(ExportOptions{Run: c.Out}, io.Discard); fault.KindOf(err) != fault.Usage {
		t.Errorf("without a target: %v", err)
	}
}

// A second export replaces the first one, also a partial one, but neither the model of a run nor another file.
func TestExportAgain(t *testing.T) {
	c := quick(t)
	c.Epochs = 1
	train(t, c, generated(t, false))
	out := t.TempDir()
	export := func(to string) error { return Export(ExportOptions{Run: c.Out, PyTorch: true, Out: to}, io.Discard) }
	for range 2 {
		if err := export(out); err != nil {
			t.Error(err)
		}
		if err := os.Remove(filepath.Join(out, "model.py")); err != nil { // as a killed process leaves it
			t.Error(err)
		}
	}
	if err := export(c.Out); fault.KindOf(err) != fault.Usage {
		t.Errorf("over a run: %v", err)
	}
	if err := os.WriteFile(modelFile(out), []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := export(out); fault.KindOf(err) != fault.Usage {
		t.Errorf("over another file: %v", err)
	}
}
