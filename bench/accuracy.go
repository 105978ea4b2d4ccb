package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"siafu/bench/trials"
	"siafu/graph/importers"
	"siafu/internal/fault"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// AccuracyCase is one line of the accuracy table: a real graph, its import, its training, and
// the published result.
type AccuracyCase struct {
	Graph     string // folder or archive in the data folder
	Split     string // file of the folder, "" for split.bin
	Normalize bool
	Published string  // the source's result
	Want      float64 // the mean that siafu must reach
	AtBestVal bool    // accuracy at the best validation epoch, else of the last weights
	Seeds     int     // maximum, as in the published protocol
	Configure func(*config.Config)
}

// kipf sets the protocol of Kipf & Welling 2017, §5.2: two layers, 16 hidden units, dropout 0.5
// before both layers, L2 on the first, weights of Glorot & Bengio, Adam, 200 epochs.
func kipf(c *config.Config) {
	c.Hidden, c.Epochs, c.Dropout, c.InputDropout = 16, 200, 0.5, 0.5
	c.WeightDecay, c.WeightDecayOn = 5e-4, "first"
	c.Initializer = "xavier"
	c.EvalEvery = 0 // use the last weights
}

// shchur sets kipf's protocol with the width of Shchur et al. 2018, §3, and the weights of the
// best validation epoch.
func shchur(c *config.Config) {
	kipf(c)
	c.Hidden, c.EvalEvery = 64, 1
}

// velickovic sets the transductive protocol of Veličković et al. 2018, §3.3: two layers, 8 heads
// of 8 units, one output head, and dropout 0.6 of both layers' inputs and attention, L2 on all
// layers, and Adam. Patience is 100 on validation accuracy and loss, and the weights with the
// best of both are used. The number of epochs is so large that only patience ends the run.
func velickovic(c *config.Config) {
	c.Model, c.Hidden, c.Heads, c.OutputHeads = "gat", 8, 8, 1
	c.Epochs, c.LR, c.Patience, c.Monitor, c.Dropout = 100000, 0.005, 100, "both", 0.6
	c.WeightDecay, c.WeightDecayOn, c.Initializer = 5e-4, "all", "xavier"
}

// sage sets kipf's protocol for the mean of neighbours.
func sage(c *config.Config) {
	kipf(c)
	c.Model = "sage"
}

// schools trains on Facebook100 with ghosts on every rank: a hash partition
// cuts three quarters of the edges.
func schools(c *config.Config) {
	c.Hidden, c.Epochs, c.Dropout, c.InputDropout, c.WeightDecay = 128, 100, 0.2, 0, 0
	c.Partitioner, c.Initializer = "hash", "xavier"
}

// AccuracyCases has the lines of the table.
var AccuracyCases = []AccuracyCase{
	{Graph: "cora", Normalize: true, Published: "81.5 (Kipf & Welling 2017)", Want: 0.810, Seeds: 10, Configure: kipf},
	{Graph: "cora", Normalize: true, Published: "83.0 ± 0.7 (Veličković et al. 2018)", Want: 0.820, AtBestVal: true,
		Seeds: 10, Configure: velickovic},
	{Graph: "cora", Normalize: true, Published: "none on this split", Want: 0.805, Seeds: 10, Configure: sage},
	{Graph: "citeseer", Normalize: true, Published: "70.3 (Kipf & Welling 2017)", Want: 0.698, Seeds: 10, Configure: kipf},
	{Graph: "citeseer", Normalize: true, Published: "72.5 ± 0.7 (Veličković et al. 2018)", Want: 0.715, AtBestVal: true,
		Seeds: 10, Configure: velickovic},
	{Graph: "amazon-photo", Split: "split_20_30.bin", Published: "91.2 ± 1.2 (Shchur et al. 2018)", Want: 0.910, AtBestVal: true,
		Seeds: 10, Configure: shchur},
	{Graph: "coauthor-cs", Split: "split_20_30.bin", Normalize: true, Published: "91.1 ± 0.5 (Shchur et al. 2018)", Want: 0.915,
		AtBestVal: true, Seeds: 10, Configure: shchur},
	{Graph: "fb100-10schools-year", Published: "none; Facebook100 by Traud, Mucha & Porter 2011", Want: 0.720, AtBestVal: true,
		Seeds: 1, Configure: schools},
}

func (c AccuracyCase) config() config.Config {
	cfg := config.Defaults()
	c.Configure(&cfg)
	return cfg
}

// chosen reports whether the options select this line.
func (o AccuracyOptions) chosen(c AccuracyCase) bool {
	return (o.Only == "" || o.Only == c.Graph) && (o.Model == "" || o.Model == c.config().Model)
}

// AccuracyOptions are the options of bench accuracy.
type AccuracyOptions struct {
	Data  string `required:"" placeholder:"DIR" help:"Folder with the raw graphs NAME or NAME.tar.zst."`
	Work  string `default:"build/accuracy" placeholder:"DIR" help:"Folder for imported datasets."`
	Only  string `default:"" placeholder:"NAME" help:"Measure one graph instead of all available graphs."`
	Model string `default:"" placeholder:"KIND" help:"Measure one network instead of all."`
	Seeds int    `default:"10" help:"Number of seeds to average, from 1. A row may use fewer seeds."`
	Ranks []int  `default:"1,4" help:"Numbers of ranks of the in-process world, servers included."`

	adjust func(*config.Config) // after a line's own Configure; nil but in tests
}

// AccuracyResult is one measured line.
type AccuracyResult struct {
	Case         AccuracyCase
	Ranks, Seeds int
	Mean, Std    float64
}

// Run runs Accuracy only for its table.
func (o AccuracyOptions) Run(ctx context.Context, w io.Writer) error {
	_, err := Accuracy(ctx, o, w)
	return err
}

// Accuracy measures the lines with an available graph and prints each when it is finished.
func Accuracy(ctx context.Context, o AccuracyOptions, w io.Writer) ([]AccuracyResult, error) {
	var results []AccuracyResult
	fmt.Fprintf(w, "%-22s %-5s %5s %5s %-14s %9s %12s %9s  %s\n",
		"graph", "model", "ranks", "seeds", "test accuracy", "s/epoch", "ghost B/ep", "peak MiB", "published")
	for _, c := range AccuracyCases {
		if !o.chosen(c) {
			continue
		}
		data, err := importRaw(o.Data, o.Work, c)
		if err != nil {
			return results, err
		}
		for _, n := range o.Ranks {
			r, err := c.measure(ctx, data, n, o, w)
			if err != nil {
				return results, err
			}
			results = append(results, r)
		}
	}
	if len(results) == 0 {
		return nil, fault.New(fault.Usage, "bench accuracy", o.Data, "no line has graph %q and model %q", o.Only, o.Model)
	}
	return results, nil
}

// importRaw imports the raw graph of a case into a work folder, unless that is done.
func importRaw(data, work string, c AccuracyCase) (string, error) {
	dst := filepath.Join(work, c.Graph)
	if _, err := os.Stat(filepath.Join(dst, "meta.json")); err == nil {
		return dst, nil
	}
	src := filepath.Join(data, c.Graph)
	if _, err := os.Stat(src); err != nil {
		src += ".tar.zst"
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		return "", fault.System("bench accuracy", work, err)
	}
	_, err := importers.Import("raw", importers.Options{
		Src: src, Dst: dst, Split: c.Split, Normalize: c.Normalize,
		Log: func(string, ...any) {},
	})
	return dst, err
}

// measure trains with seeds 1, 2, … and prints means: of the epochs the last seed's.
func (c AccuracyCase) measure(ctx context.Context, data string, n int, o AccuracyOptions, w io.Writer) (AccuracyResult, error) {
	r := AccuracyResult{Case: c, Ranks: n, Seeds: min(o.Seeds, c.Seeds)}
	e := &experiment{op: "bench accuracy", data: data, config: c.config()}
	if o.adjust != nil {
		o.adjust(&e.config)
	}
	s := e.add(c.Graph, func(c *config.Config, turn int) { c.Ranks, c.Seed = n, uint64(turn+1) })
	if err := e.train(ctx, "seeds", r.Seeds); err != nil {
		return r, err
	}
	accuracy := func(s runfolder.Summary) float64 { return s.FinalTestAcc }
	if c.AtBestVal {
		accuracy = func(s runfolder.Summary) float64 { return s.TestAccAtBestVal }
	}
	r.Mean, r.Std = trials.MeanStd(s.each(accuracy))
	last := s.last()
	_, err := fmt.Fprintf(w, "%-22s %-5s %5d %5d %5.2f ± %-5.2f  %9.4f %12d %9d  %s\n", c.Graph, e.config.Model, n, r.Seeds,
		100*r.Mean, 100*r.Std, last.EpochSecondsMedian, last.GhostBytesRaw/int64(max(last.Epochs, 1)), last.PeakRSSBytes>>20, c.Published)
	return r, err
}
