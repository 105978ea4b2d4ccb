package ranks

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/safetensors"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/engine"
	"siafu/ranks/forecast"
	"siafu/ranks/predictions"
	"siafu/ranks/pytorch"
	"siafu/ranks/runfolder"
	"siafu/ranks/world"
)

// PredictConfig has the options of "siafu predict".
type PredictConfig struct {
	Ranks      int    `default:"0" help:"Number of graph ranks of an in-process world; 0: 1. Omit it under mpirun or srun, where the launcher sets it."`
	Parts      int    `default:"0" help:"Number of graph partitions, at least the number of graph ranks. 0: one for each graph rank."`
	Threads    int    `default:"0" help:"Worker threads of each rank, shared by its partitions. 0: the machine's processors divided by the ranks on it."`
	Tensor     string `default:"cpu" enum:"cpu,cuda" help:"Where tensor work runs: cpu or cuda. cpu: on the ranks; cuda: on GPUs, with graph work unless --graph cpu."`
	GraphWork  string `name:"graph" default:"" enum:",cpu,cuda" help:"Where graph work runs: cpu or cuda. cuda needs --tensor cuda. Empty: as --tensor."`
	PartsDir   string `name:"parts-dir" default:"" placeholder:"DIR" help:"Folder in which shards are found or created. Empty: parts in the dataset folder, or in the run folder if the dataset folder is read-only."`
	Weights    string `default:"" placeholder:"FILE" help:"Weights that replace the run's model.safetensors. File: safetensors or a PyTorch state dict, with the names of the network that siafu export writes, or of PyTorch Geometric's layers."`
	Out        string `default:"" placeholder:"DIR" help:"Folder for the predictions. Empty: RUN/predictions, or RUN/predictions-NAME for a dataset other than that of the training."`
	New        bool   `help:"Write only vertices whose ids were not in the training graph."`
	Embeddings bool   `help:"Write embeddings, the input of the last layer, too."`
	Pairs      string `default:"" placeholder:"FILE" help:"CSV file of vertex pairs to score, with columns src and dst, and relation of a relational graph. Scores go to pairs.csv. The network must be trained with --task links."`
	Logits     bool   `help:"Write logits, the input of the softmax, too."`
	CSV        bool   `name:"csv" default:"true" negatable:"" help:"Write predictions.csv, too."`
	ByClass    bool   `name:"csv-classes" help:"Add a column for each class's probability to predictions.csv."`
	Parquet    bool   `help:"Write predictions.parquet, with each class's probability, too."`
	Force      bool   `name:"force-memory" help:"Predict even if the estimated memory exceeds the available memory."`
	StallWarn  string `default:"60s" help:"Wait of a rank for others after which it prints a warning."`
	StallAbort string `default:"10m" help:"Wait of a rank for others after which the job ends."`

	run string // the run folder
}

// Predict applies a trained network to every vertex of the dataset folder data. It writes
// classes, probabilities and embeddings by the user's vertex ids. runDir is a run folder.
// Collective over the world. Each rank writes the rows of its own vertices, one part at a
// time if it carries several, so that no rank stores all rows.
func Predict(_ context.Context, p PredictConfig, runDir, data string, out IO) error {
	p.run = runDir
	c := p.config()
	if err := c.CheckCUDA("predict"); err != nil {
		return err
	}
	limits, err := c.Limits(func(msg string) { fmt.Fprintln(out.Err, "siafu: "+msg) })
	if err != nil {
		return err
	}
	if p.Weights == "" {
		p.Weights = modelFile(runDir)
	}
	if p.Out == "" {
		p.Out = filepath.Join(runDir, folderFor(runDir, data))
	}
	v, err := viewOf(&c)
	if err != nil {
		return err
	}
	g := memoryGate{"predict", p.Force, out.Err}
	if err := g.world(carried(v), c.Threads/(v.Parts/v.Ranks)); err != nil {
		return err
	}
	return launchParts(c.Ranks, v, limits, out, func(w world.Comm, kind string, _ world.Limits) error {
		r := newMember(c, data, v, w, kind, out)
		defer r.close()
		_, err := r.predict(p, g)
		return err
	})
}

// folderFor returns the folder in a run folder for predictions on a dataset.
func folderFor(runDir, data string) string {
	summary := runfolder.Ended(runDir)
	meta, err := graph.ReadMeta(data)
	if err != nil || summary == nil || meta.Name == summary.Dataset {
		return runfolder.Predictions
	}
	return runfolder.Predictions + "-" + filepath.Base(meta.Name)
}

// config returns the configuration of a run that predicts.
func (p *PredictConfig) config() Config {
	return Config{
		RankOptions: config.RankOptions{Ranks: p.Ranks, Parts: p.Parts, Threads: p.Threads, PartsDir: p.PartsDir, Mode: "pipe",
			StallWarn: p.StallWarn, StallAbort: p.StallAbort},
		ExchangeOptions: config.ExchangeOptions{Codec: "none"},
		ComputeOptions:  config.ComputeOptions{Tensor: p.Tensor, GraphWork: p.GraphWork, Kernel: "auto", Edges: config.AutoEdges},
	}
}

// predict runs a member of a prediction. Collective over the world.
func (r *member) predict(p PredictConfig, g memoryGate) (*prepared, error) {
	m, err := r.openModel(p, g)
	if err != nil {
		return nil, err
	}
	of, err := m.selectedVertices(p)
	if err != nil {
		return nil, err
	}
	ready, err := m.startEngine("")
	if err != nil {
		return nil, err
	}
	found, err := ready.engine.Infer(m.weights)
	if err != nil {
		return nil, err
	}
	all, err := found.Metrics()
	if err != nil {
		return nil, err
	}
	o := p.files(m.net, m.task)
	o.Of, o.Schema, o.Task = of, m.schema, m.task
	var scores *runfolder.Scores
	if r.rank == 0 {
		scores = runfolder.NewScores(all, m.schema.ClassName)
		o.Metrics, err = runfolder.JSON(scores)
	}
	if err := agree(r.world, err); err != nil {
		return nil, err
	}
	if err := m.writePredictions(o, found); err != nil {
		return nil, err
	}
	if err := r.scorePairs(p, m.net, found); err != nil {
		return nil, err
	}
	if r.rank == 0 {
		m.report(p, found, of, scores)
	}
	return ready, nil
}

// report prints the results of a prediction.
func (r *joined) report(p PredictConfig, found *engine.Inference, selected []uint32, scores *runfolder.Scores) {
	out := r.out
	fmt.Fprintf(out.Out, "predicted dataset=%s vertices=%d", r.meta.Name, r.meta.Vertices)
	switch {
	case p.New:
		fmt.Fprintf(out.Out, " new=%d", len(selected))
	case selected != nil && int64(len(selected)) < r.meta.Vertices:
		fmt.Fprintf(out.Out, " written=%d (vertices of the kinds with labels)", len(selected))
	}
	if r.meta.Train+r.meta.Val+r.meta.Test > 0 && (r.task == graph.Links) == (r.meta.Task == graph.Links) {
		train, val, test := found.Accuracies()
		m := metricLabel(metricOf(r.task))
		fmt.Fprintf(out.Out, " train_%s=%.4f val_%s=%.4f test_%s=%.4f", m, train, m, val, m, test)
	}
	fmt.Fprintln(out.Out)
	printMetrics(func(format string, args ...any) { fmt.Fprintf(out.Out, format+"\n", args...) }, scores)
	scores.WriteClasses(out.Out)
	fmt.Fprintf(out.Out, "wrote predictions=%s\n", p.Out)
}

// selectedVertices returns the vertices to write, in ascending order; nil: all. They are new with --new,
// and of the kinds that have labels in the training data. Collective over the world.
func (r *predicting) selectedVertices(p PredictConfig) ([]uint32, error) {
	if !p.New && r.meta.Relations == nil {
		return nil, nil
	}
	var list []uint32
	var err error
	if r.world.Rank() == 0 {
		if list, err = r.chooseVertices(p); err == nil && len(list) == 0 {
			err = fault.New(fault.Data, "predict", r.data, "all of its %d vertices were in the training", r.meta.Vertices).
				Then("leave --new out, or predict on a dataset with new vertices")
		}
	}
	if err := agree(r.world, err); err != nil {
		return nil, err
	}
	blob, err := world.BcastBlob(r.world, mapped.Bytes(list), 0)
	return mapped.Cast[uint32](blob), err
}

// chooseVertices is selectedVertices on rank 0.
func (r *predicting) chooseVertices(p PredictConfig) (list []uint32, err error) {
	if !p.New {
		list = make([]uint32, r.meta.Vertices)
		for v := range list {
			list[v] = uint32(v)
		}
	} else if list, err = predictions.NewVertices(p.run, r.data); err != nil {
		return nil, err
	}
	trained := r.schema.Relations
	if r.meta.Relations == nil || trained == nil || trained.Labels() == 0 {
		return list, nil
	}
	return slices.DeleteFunc(list, func(v uint32) bool {
		return trained.Kinds[r.meta.Relations.KindOf(int64(v))].Labels == 0
	}), nil
}

// writePredictions writes the files of a prediction. Collective over the world.
func (r *joined) writePredictions(o predictions.Options, found *engine.Inference) error {
	files, err := predictions.Create(r.world, o, int(r.meta.Vertices), r.net.Dims[r.net.Layers()])
	defer files.Abort()
	if err := agree(r.world, err); err != nil {
		return err
	}
	rows := predictions.Rows{IDs: r.shard.Own}
	if o.Logits {
		rows.Logits = found.Logits()
	}
	switch r.task {
	case graph.MultiLabel:
		rows.Said, rows.Probabilities = found.Labels()
	case graph.Links:
		rows.Embeddings = found.Logits()
	case graph.Regression:
		values := found.Values()
		rows.Values, rows.Logits = values, values
	default:
		rows.Class, rows.Probabilities = found.Classes()
	}
	if o.EmbeddingWidth > 0 && r.task != graph.Links {
		rows.Embeddings = found.Embeddings()
	}
	if err := agree(r.world, files.Write(rows)); err != nil {
		return err
	}
	return agree(r.world, files.Commit(r.data))
}

// files returns the files to write for a network.
func (p *PredictConfig) files(net model.Spec, task string) predictions.Options {
	if task == graph.Links { // the output is embeddings
		return predictions.Options{Dir: p.Out, Task: task, EmbeddingWidth: net.Dims[net.Layers()], Pairs: p.Pairs != ""}
	}
	o := predictions.Options{Dir: p.Out, CSV: p.CSV || p.ByClass, ByClass: p.ByClass, Logits: p.Logits, Parquet: p.Parquet}
	if p.Embeddings {
		o.EmbeddingWidth = net.Dims[net.Top()]
	}
	return o
}

// predicting is a member with a trained network.
type predicting struct {
	*joined
	schema  *graph.Schema // of the training dataset, on rank 0
	weights []float32
}

// openModel reads the weights on rank 0 and gives all ranks the network, its weights and the
// shards. Collective over the world.
func (r *member) openModel(p PredictConfig, g memoryGate) (*predicting, error) {
	m := &predicting{joined: &joined{opened: &opened{member: r}}}
	var blob []byte
	var found []safetensors.Tensor
	err := r.assign()
	if err == nil && r.world.Rank() == 0 {
		blob, found, err = m.readModel(p)
	}
	if err := agree(r.world, err); err != nil {
		return nil, err
	}
	if blob, err = world.BcastBlob(r.world, blob, 0); err != nil {
		return nil, err
	}
	var loaded loadedModel
	if err := json.Unmarshal(blob, &loaded); err != nil {
		return nil, err
	}
	m.net, m.task = loaded.spec(), loaded.Task
	if err := m.shareFolders(); err != nil {
		return nil, err
	}
	if m.meta, err = graph.ReadMeta(r.data); err == nil {
		m.meta.TargetScaling = loaded.TargetScaling // of the training targets
		err = m.openShard()
	}
	if err := agree(r.world, err); err != nil {
		return nil, err
	}
	if err := m.sameAssignment(); err != nil {
		return nil, err
	}
	if err := r.agreeOnGPUs(); err != nil {
		return nil, err
	}
	Config{ComputeOptions: config.ComputeOptions{Order: "auto", CacheInput: "off"}}.Orders(&m.net, m.meta, false)
	forecasts := func() (*forecast.Forecast, error) { return forecast.OfPrediction(r.cfg, m.net, m.meta, r.Graph) }
	if err := m.chooseEdges(forecasts); err != nil {
		return nil, err
	}
	f, err := forecasts()
	if err != nil {
		return nil, err
	}
	if err := g.all(m.joined, f); err != nil {
		return nil, err
	}
	if err := g.onGPUs(m.joined, f); err != nil {
		return nil, err
	}
	m.weights = mapped.Make[float32](r.arena, m.net.NumWeights())
	if r.world.Rank() == 0 {
		fillWeights(m.net, found, m.weights)
	}
	return m, r.world.Bcast(mapped.Bytes(m.weights), 0)
}

// loadedModel is the description of a network in a model file.
type loadedModel struct {
	Kind  string
	Task  string // graph.MultiClass, …
	Dims  []int
	Heads [2]int // of hidden layers and of the last

	Design model.Design
	// TargetScaling is the scaling of the training targets.
	TargetScaling []graph.Scaling
}

func (m *loadedModel) spec() model.Spec {
	return model.Spec{Kind: m.Kind, Dims: m.Dims, Heads: m.Heads[0], OutputHeads: m.Heads[1], Design: m.Design}
}

// readModel reads the network's description and its weights. It checks that the dataset
// fits and is partitioned for this world. The result has been compared with the tensors of
// the file, so that no rank allocates memory for an invalid description.
func (r *predicting) readModel(p PredictConfig) ([]byte, []safetensors.Tensor, error) {
	meta, err := graph.ReadMeta(r.data)
	if err != nil {
		return nil, nil, err
	}
	list, md, m, err := p.weights(meta)
	if err != nil {
		return nil, nil, err
	}
	if m.spec().Sums() && p.Tensor == config.TensorCUDA && p.GraphWork == config.GraphCPU {
		return nil, nil, fault.New(fault.Usage, "predict", p.Weights,
			"--tensor=cuda --graph=cpu with a network of --norm=%s", m.Design.Norm).
			Then("leave --graph out: column normalisation runs where graph work runs")
	}
	if r.schema, err = schemaOf(p.Weights, md, m); err != nil {
		return nil, nil, err
	}
	m.Task, m.TargetScaling = r.schema.TaskName(), r.schema.TargetScaling
	if err := suits(r.data, meta, m, r.schema); err != nil {
		return nil, nil, err
	}
	if p.Pairs != "" && m.Task != graph.Links {
		return nil, nil, fault.New(fault.Usage, "predict", p.Weights, "--pairs needs link prediction, but the network was trained for %s",
			m.Task).Then("leave --pairs out, or train for links")
	}
	if p.Pairs != "" { // before any computation
		if _, _, err := readPairs(p.Pairs, r.data, m.spec()); err != nil {
			return nil, nil, err
		}
	}
	files := p.files(m.spec(), m.Task)
	if err := files.Vet(); err != nil {
		return nil, nil, err
	}
	if err := r.partition(meta, p.run); err != nil {
		return nil, nil, err
	}
	blob, err := json.Marshal(m)
	return blob, list, err
}

// weights returns the weights for the prediction on a graph and the description of their network: from
// their file or, for files without one such as PyTorch's, from the run.
func (p *PredictConfig) weights(on *graph.Meta) ([]safetensors.Tensor, map[string]string, *loadedModel, error) {
	list, md, err := pytorch.Read(p.Weights)
	if err != nil {
		return nil, nil, nil, err
	}
	said, inOrder := p.Weights, md == nil
	if md["model"] == "" && p.Weights != modelFile(p.run) {
		said = modelFile(p.run)
		if _, md, err = safetensors.Read(said); err != nil {
			return nil, nil, nil, err
		}
	}
	m, err := describedBy(said, md)
	if err != nil {
		return nil, nil, nil, err
	}
	if list, err = pytorch.Weights(p.Weights, list, m.spec(), on, inOrder); err == nil {
		list, err = weightsOf(p.Weights, list, m.spec())
	}
	return list, md, m, err
}

// describedBy returns the network described by the metadata of a weights file.
func describedBy(path string, md map[string]string) (*loadedModel, error) {
	m := &loadedModel{Kind: md["model"], Heads: [2]int{1, 1}}
	err := json.Unmarshal([]byte(md["dims"]), &m.Dims)
	if heads, ok := md["heads"]; ok && err == nil {
		err = json.Unmarshal([]byte(heads), &m.Heads)
	}
	if design, ok := md["design"]; ok && err == nil {
		err = json.Unmarshal([]byte(design), &m.Design)
	}
	if err != nil || len(m.Dims) < 2 || min(m.Heads[0], m.Heads[1]) < 1 || m.spec().Check() != nil {
		return nil, fault.New(fault.Data, "predict", path, "its metadata (model=%q dims=%q heads=%q design=%q) does not describe a valid "+
			"network", md["model"], md["dims"], md["heads"], md["design"]).
			Then("use the model.safetensors of a run folder")
	}
	return m, nil
}
