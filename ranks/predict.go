package ranks

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"siafu/graph"
	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/kernels/model"
	"siafu/ranks/runfolder"
	"siafu/ranks/safetensors"
	"siafu/ranks/world"
)

// PredictConfig is what "siafu predict" can be told.
type PredictConfig struct {
	Ranks      int    `default:"0" help:"Graph ranks of an in-process world; 0 is 1. Under mpirun or srun the launcher decides and this must be left out."`
	Threads    int    `default:"0" help:"Worker threads a rank. 0: this machine's processors shared by the ranks on it."`
	Weights    string `default:"" placeholder:"FILE" help:"Weights to use instead of the run's model.safetensors."`
	Out        string `default:"" placeholder:"DIR" help:"Where to write. Empty: RUN/predictions."`
	Embeddings bool   `help:"Write the input of the last layer as well."`
	CSV        bool   `name:"csv" default:"true" negatable:"" help:"Write predictions.csv as well."`
	StallWarn  string `default:"60s" help:"Say so when a rank has waited this long for others."`
	StallAbort string `default:"10m" help:"End the job when a rank has waited this long for others."`
}

// Predict runs a trained network over every vertex of the dataset folder data
// and writes classes, probabilities and embeddings by the user's own vertex
// ids. run is a run folder. All ranks of the world call it; each writes the
// rows of its own vertices, so that no rank ever holds all of them.
func Predict(_ context.Context, p PredictConfig, runDir, data string, out IO) error {
	c := Config{Servers: 0, Threads: p.Threads, Mode: "pipe", Codec: "none", Kernel: "auto", StallWarn: p.StallWarn, StallAbort: p.StallAbort}
	limits, err := c.limits(func(msg string) { fmt.Fprintln(out.Err, "siafu: "+msg) })
	if err != nil {
		return err
	}
	if p.Weights == "" {
		p.Weights = modelFile(runDir)
	}
	if p.Out == "" {
		p.Out = filepath.Join(runDir, runfolder.Predictions)
	}
	return launch(p.Ranks, limits, out, func(w world.Comm, kind string) error {
		r := &run{cfg: c, data: data, kind: kind, world: w, arena: mapped.NewArena()}
		defer r.close()
		return r.predict(p, out)
	})
}

// predict is the whole run of one rank. Collective over the world.
func (r *run) predict(p PredictConfig, out IO) error {
	weights, err := r.openModel(p)
	if err != nil {
		return err
	}
	r.voice = nil
	if r.peers, err = r.world.Sub(r.graphRanks()); err != nil {
		return err
	}
	t := r.trainer(&replicated{})
	copy(t.flat, weights)
	if err := t.forward(model.Pass{}, true); err != nil {
		return err
	}
	s, err := t.score()
	if err != nil {
		return err
	}
	files, err := newPredictions(r, t, p)
	if err := agree(r.world, err); err != nil {
		return err
	}
	defer files.abort()
	if err := agree(r.world, files.writeRows(t, t.logits())); err != nil {
		return err
	}
	if err := agree(r.world, files.commit(r, p)); err != nil {
		return err
	}
	if r.rank == 0 {
		fmt.Fprintf(out.Out, "predicted dataset=%s vertices=%d train_acc=%.4f val_acc=%.4f test_acc=%.4f\n",
			r.meta.Name, r.meta.Vertices, s.train, s.val, s.test)
		fmt.Fprintf(out.Out, "wrote predictions=%s\n", p.Out)
	}
	return nil
}

// openModel reads the weights on rank 0 and gives everybody the network, its
// weights and the shards. Collective over the world.
func (r *run) openModel(p PredictConfig) ([]float32, error) {
	var blob []byte
	err := r.assign()
	if err == nil && r.world.Rank() == 0 {
		blob, err = r.readModel(p)
	}
	if err := agree(r.world, err); err != nil {
		return nil, err
	}
	if blob, err = world.BcastBlob(r.world, blob, 0); err != nil {
		return nil, err
	}
	var m loadedModel
	if err := json.Unmarshal(blob, &m); err != nil {
		return nil, err
	}
	r.net = model.Spec{Kind: m.Kind, Dims: m.Dims, Heads: m.Heads[0], OutputHeads: m.Heads[1]}
	if err := agree(r.world, r.openShard()); err != nil {
		return nil, err
	}
	if err := r.sameAssignment(); err != nil {
		return nil, err
	}
	r.net.Choose(model.Load{Vertices: r.meta.Vertices, Edges: r.meta.Edges, FeatureNNZ: sparseNNZ(r.meta)},
		model.Choices{Order: "auto", CacheInput: "off"})
	weights := mapped.Make[float32](r.arena, r.net.NumWeights())
	if r.world.Rank() == 0 {
		err = loadWeights(p.Weights, r.net, weights)
	}
	if err := agree(r.world, err); err != nil {
		return nil, err
	}
	return weights, r.world.Bcast(mapped.Bytes(weights), 0)
}

// loadedModel is what a model file says of its network.
type loadedModel struct {
	Kind  string
	Dims  []int
	Heads [2]int // of hidden layers and of the last
}

// describes tells whether there is such a network.
func (m *loadedModel) describes() bool {
	if !contains(model.Kinds(), m.Kind) || len(m.Dims) < 2 || m.Heads[0] < 1 || m.Heads[1] < 1 {
		return false
	}
	for l, d := range m.Dims {
		if d < 1 || l > 0 && l < len(m.Dims)-1 && d%m.Heads[0] != 0 {
			return false
		}
	}
	return true
}

// readModel reads the network's description and sees to it that the dataset
// fits and is partitioned for this world.
func (r *run) readModel(p PredictConfig) ([]byte, error) {
	_, md, err := safetensors.Read(p.Weights)
	if err != nil {
		return nil, err
	}
	m := loadedModel{Kind: md["model"], Heads: [2]int{1, 1}}
	err = json.Unmarshal([]byte(md["dims"]), &m.Dims)
	if heads, ok := md["heads"]; ok && err == nil {
		err = json.Unmarshal([]byte(heads), &m.Heads)
	}
	if err != nil || !m.describes() {
		return nil, fault.New(fault.Data, "predict", p.Weights, "its metadata (model=%q dims=%q heads=%q) describes no network", md["model"], md["dims"], md["heads"]).
			Then("use the model.safetensors of a run folder")
	}
	meta, err := graph.ReadMeta(r.data)
	if err != nil {
		return nil, err
	}
	if m.Dims[0] != meta.FeatureDim || m.Dims[len(m.Dims)-1] != meta.Classes {
		return nil, fault.New(fault.Data, "predict", r.data, "it has %d features and %d classes, the model was trained on %d and %d",
			meta.FeatureDim, meta.Classes, m.Dims[0], m.Dims[len(m.Dims)-1]).
			Then("predict on the dataset %q or one like it", md["dataset"])
	}
	if err := r.partition(meta); err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

// openShard reads what every rank needs of the dataset.
func (r *run) openShard() error {
	var err error
	if r.meta, err = graph.ReadMeta(r.data); err != nil {
		return err
	}
	if r.shard, err = shard.Open(r.data, r.Graph, r.rank); err != nil {
		return err
	}
	return r.hire()
}
