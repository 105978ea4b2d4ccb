package cli

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"siafu/bench"
	"siafu/bench/all"
	"siafu/bench/digest"
	"siafu/bench/dorylus"
	"siafu/graph"
	"siafu/graph/download"
	"siafu/graph/generate"
	"siafu/graph/holdout"
	"siafu/graph/importers"
	"siafu/graph/partition"
	"siafu/internal/fault"
	"siafu/ranks"
	"siafu/ranks/config"
	"siafu/ranks/plan"
	"siafu/ranks/report"
	"siafu/ranks/runfolder"
	"siafu/ranks/simulate"
	"siafu/ranks/world/mpi"
	"siafu/slurm/launch"
)

// grammar is the command line.
type grammar struct {
	Import     importCmd     `cmd:"" group:"Data" help:"Convert a graph in another format into a dataset folder."`
	Download   downloadCmd   `cmd:"" group:"Data" help:"Download a public dataset and import it."`
	Generate   generateCmd   `cmd:"" group:"Data" help:"Generate a synthetic graph with skewed degrees and planted classes."`
	Holdout    holdoutCmd    `cmd:"" group:"Data" help:"Create a dataset for link prediction by holding out edges."`
	Info       infoCmd       `cmd:"" group:"Data" help:"Verify a dataset folder and print its contents."`
	Partition  partitionCmd  `cmd:"" group:"Data" help:"Partition a dataset among graph ranks."`
	Plan       planCmd       `cmd:"" group:"Training" help:"Estimate memory, traffic and epoch time of a training run."`
	Train      trainCmd      `cmd:"" group:"Training" help:"Train a network."`
	Sweep      sweepCmd      `cmd:"" group:"Training" help:"Train once for each combination of flag values."`
	Launch     launchCmd     `cmd:"" group:"Cluster" help:"Run a command on ranks under mpirun, and restart it after a crash."`
	Submit     submitCmd     `cmd:"" group:"Cluster" help:"Write a batch script for Slurm and submit it."`
	Status     statusCmd     `cmd:"" group:"Cluster" help:"Print the state of runs and jobs."`
	Lambda     lambdaCmd     `cmd:"" group:"Cluster" help:"Deploy, inspect or remove the function in AWS Lambda."`
	Predict    predictCmd    `cmd:"" group:"Results" help:"Predict every vertex with a trained network."`
	Export     exportCmd     `cmd:"" group:"Results" help:"Export a trained network for other programs."`
	Report     reportCmd     `cmd:"" group:"Results" help:"Compare run folders."`
	Bench      benchCmd      `cmd:"" group:"Benchmarks" help:"Run benchmarks and reproduce published tables."`
	Doctor     doctorCmd     `cmd:"" group:"This machine" help:"Print what this machine and this build support."`
	Clean      cleanCmd      `cmd:"" group:"This machine" help:"Remove leftovers of killed commands."`
	Version    versionCmd    `cmd:"" group:"This machine" help:"Print the version."`
	Completion completionCmd `cmd:"" group:"This machine" help:"Write a shell completion script."`
	Man        manCmd        `cmd:"" group:"This machine" help:"Write the manual page."`
	Shield     shieldCmd     `cmd:"" hidden:"" help:"Run a command that does not receive SIGTERM."`
}

type importCmd struct {
	From    string            `default:"auto" values:"formats" help:"Source format: auto, ${formats=}."`
	Options importers.Options `embed:""`
}

func (c *importCmd) Run(io console) error {
	c.Options.Stdin = io.in
	c.Options.Log = func(format string, args ...any) { fmt.Fprintf(io.out, "import "+format+"\n", args...) }
	if like := c.Options.TableOptions.Like; like != "" && runfolder.ReadMarker(like) != nil {
		var err error
		if c.Options.Schema, err = ranks.Schema(like); err != nil {
			return err
		}
	}
	report, err := importers.Import(c.From, c.Options)
	if err != nil {
		return err
	}
	return printWritten(io.out, c.Options.Dst, report)
}

type downloadCmd struct {
	Name    string           `arg:"" help:"Dataset to download. Values: cora, citeseer, pubmed, ogbn-arxiv, ogbn-products, ogbn-papers100M."`
	Options download.Options `embed:""`
}

func (c *downloadCmd) Run(ctx context.Context, io console) error {
	if c.Options.Dst == "" {
		c.Options.Dst = "data/" + c.Name
	}
	c.Options.Log = func(format string, args ...any) { fmt.Fprintf(io.out, "download "+format+"\n", args...) }
	report, err := download.Get(ctx, c.Name, c.Options)
	if err != nil {
		return err
	}
	return printWritten(io.out, c.Options.Dst, report)
}

type generateCmd struct {
	Dst     string           `arg:"" help:"Dataset folder to create."`
	Options generate.Options `embed:""`
	Force   bool             `help:"Replace an existing dataset folder."`
}

func (c *generateCmd) Run(io console) error {
	report, err := generate.Write(c.Dst, c.Options, c.Force)
	if err != nil {
		return err
	}
	return printWritten(io.out, c.Dst, report)
}

type holdoutCmd struct {
	Data    string          `arg:"" help:"Dataset folder."`
	Dst     string          `arg:"" help:"Dataset folder to create."`
	Options holdout.Options `embed:""`
	Force   bool            `help:"Replace an existing dataset folder."`
}

func (c *holdoutCmd) Run(io console) error {
	report, err := holdout.Write(c.Data, c.Dst, c.Options, c.Force)
	if err != nil {
		return err
	}
	return printWritten(io.out, c.Dst, report)
}

type infoCmd struct {
	Data string `arg:"" help:"Dataset folder."`
	JSON bool   `name:"json" help:"Print meta.json, the fingerprint and the partitionings as JSON."`
}

func (c *infoCmd) Run(io console) error {
	if c.JSON {
		return printInfoJSON(io.out, c.Data)
	}
	return printInfo(io.out, c.Data)
}

type partitionCmd struct {
	Data    string            `arg:"" help:"Dataset folder."`
	Options partition.Options `embed:""`
}

func (c *partitionCmd) Run(io console) error {
	report, err := partition.Run(c.Data, c.Options)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(io.out, report)
	return err
}

type planCmd struct {
	Options plan.Options `embed:""`
}

func (c *planCmd) Run(io console, line *kong.Context) error {
	suit((*config.Config)(&c.Options.Config), c.Options.Data, line)
	return plan.Run(c.Options, io.out)
}

// suit takes settings for a dataset where the command line does not say otherwise. Where
// it cannot be read, the command says so.
func suit(c *config.Config, data string, line *kong.Context) {
	given := map[string]bool{}
	for _, p := range line.Path {
		if p.Flag != nil {
			given[p.Flag.Name] = true
		}
	}
	if m, err := graph.ReadMeta(data); err == nil {
		c.Suit(m, func(flag string) bool { return given[flag] })
	}
}

type trainCmd struct {
	Args   []string      `arg:"" name:"data" help:"Dataset folder, optionally preceded by CONFIG.toml."`
	Config config.Config `embed:""`
}

// check reports whether the arguments are [CONFIG.toml] DATA.
func (c *trainCmd) check() error {
	data := c.Args
	if len(data) > 1 && strings.HasSuffix(data[0], ".toml") {
		data = data[1:]
	}
	if len(data) != 1 || strings.HasSuffix(data[0], ".toml") {
		return fault.New(fault.Usage, "train", "", "expected [CONFIG.toml] DATA, got %q", c.Args).Then(`see "siafu help train"`)
	}
	return nil
}

// data returns the dataset folder of checked arguments.
func (c *trainCmd) data() string { return c.Args[len(c.Args)-1] }

func (c *trainCmd) Run(ctx context.Context, io console, line *kong.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	suit(&c.Config, c.data(), line)
	checkJob(io.err, c.Config.Ranks)
	return ranks.Train(ctx, c.Config, c.data(), ranks.IO{Out: io.out, Err: io.err, Last: io.last})
}

type predictCmd struct {
	RunDir string              `arg:"" name:"run" help:"Run folder."`
	Data   string              `arg:"" help:"Dataset folder."`
	Config ranks.PredictConfig `embed:""`
}

func (c *predictCmd) Run(ctx context.Context, io console) error {
	return ranks.Predict(ctx, c.Config, c.RunDir, c.Data, ranks.IO{Out: io.out, Err: io.err, Last: io.last})
}

type exportCmd struct {
	Options ranks.ExportOptions `embed:""`
}

func (c *exportCmd) Run(io console) error { return ranks.Export(c.Options, io.out) }

type reportCmd struct {
	Options report.Options `embed:""`
}

func (c *reportCmd) Run(io console) error { return c.Options.Run(io.out) }

type benchCmd struct {
	Accuracy  measurement[bench.AccuracyOptions]  `cmd:"" help:"Compare test accuracy on real graphs with published figures."`
	All       allCmd                              `cmd:"" help:"Create one page with the tables and figures of all papers."`
	Async     measurement[bench.AsyncOptions]     `cmd:"" help:"Compare bounded asynchrony with the synchronous pipeline."`
	Breakdown breakdownCmd                        `cmd:"" help:"Break down the time of an epoch. Prints tasks, hidden communication and idle time of ranks."`
	Codecs    measurement[bench.CodecsOptions]    `cmd:"" help:"Compare codecs of ghost rows by traffic and accuracy."`
	CUDA      measurement[bench.CUDAOptions]      `cmd:"" name:"cuda" help:"Time gathers, products and epochs on a GPU. Compares with cuSPARSE, cuBLAS, PyTorch Geometric and DGL."`
	Digest    digestCmd                           `cmd:"" help:"Compare ways of training with stale ghost rows. Reproduces the tables and figures of DIGEST."`
	Dorylus   dorylusCmd                          `cmd:"" help:"Compare tensor work in functions, on CPUs and on GPUs. Synchronous and with bounded asynchrony: the tables and figures of Dorylus."`
	Epoch     measurement[bench.EpochOptions]     `cmd:"" help:"Time an epoch and its tasks on a dataset."`
	Links     linksCmd                            `cmd:"" help:"Train over emulated links with given rates between hosts."`
	Kernels   measurement[bench.KernelsOptions]   `cmd:"" help:"Time every kernel and compare with this machine's limits."`
	Lambda    measurement[bench.LambdaOptions]    `cmd:"" help:"Compare tensor work in functions with the CPU. Measures functions also without each task optimisation."`
	Partition measurement[bench.PartitionOptions] `cmd:"" help:"Compare partitioners with each other and with METIS."`
	Replay    measurement[bench.ReplayOptions]    `cmd:"" help:"Compare simulated epoch times with measured ones. Measures over emulated links with given rates between hosts."`
	Simulate  simulateCmd                         `cmd:"" help:"Simulate a recorded run on other links, workers and numbers of ranks."`

	Initializers measurement[bench.InitializersOptions] `cmd:"" help:"Compare random initialisers by test accuracy. Trains every network on real graphs."`
}

// measurement is a command that measures this machine, and names it first.
type measurement[O interface {
	Run(ctx context.Context, w io.Writer) error
}] struct {
	Options O `embed:""`
}

func (c *measurement[O]) Run(ctx context.Context, io console) error {
	bench.Machine(io.out)
	return c.Options.Run(ctx, io.out)
}

type breakdownCmd struct {
	Options bench.BreakdownOptions `embed:""`
}

func (c *breakdownCmd) Run(ctx context.Context, io console) error {
	if c.Options.From == "" { // else it was another machine
		bench.Machine(io.out)
	}
	return bench.Breakdown(ctx, c.Options, io.out)
}

type simulateCmd struct {
	Options simulate.Options `embed:""`
}

func (c *simulateCmd) Run(io console) error { return c.Options.Print(io.out) }

type digestCmd struct {
	Options digest.Options `embed:""`
}

func (c *digestCmd) Run(ctx context.Context, io console) error {
	c.Options.Origin = origin(io)
	return c.Options.Run(ctx, io.out)
}

type dorylusCmd struct {
	Options dorylus.Options `embed:""`
}

func (c *dorylusCmd) Run(ctx context.Context, io console) error {
	c.Options.Origin = origin(io)
	return c.Options.Run(ctx, io.out)
}

type allCmd struct {
	Options all.Options `embed:""`
}

func (c *allCmd) Run(ctx context.Context, io console) error {
	c.Options.Origin = origin(io)
	return c.Options.Run(ctx, io.out)
}

// origin prints which machine and command line tables are from, and is the same for a page.
func origin(io console) string {
	var text strings.Builder
	bench.Machine(&text)
	fmt.Fprint(io.out, text.String())
	return text.String()
}

type linksCmd struct {
	Options bench.LinksOptions `embed:""`
}

func (c *linksCmd) Run(ctx context.Context, io console) error {
	if !c.Options.JSON {
		bench.Machine(io.out)
	}
	return bench.Links(ctx, c.Options, io.out)
}

type doctorCmd struct {
	JSON bool `name:"json" help:"Print a JSON object with a list for each kind of line."`
}

func (c *doctorCmd) Run(io console) error {
	checkJob(io.err, 1)
	left := io.out
	if c.JSON {
		left = io.err
	}
	launch.Release(func(line string) { fmt.Fprintln(left, line) })
	return ranks.Doctor(c.JSON, ranks.IO{Out: io.out, Err: io.err, Last: io.last})
}

type versionCmd struct{}

// toldOfBuild lists the build settings that version prints, by Go's and siafu's names.
var toldOfBuild = map[string]string{"-tags": "tags", "GOARCH": "arch", "vcs.revision": "commit", "vcs.time": "date", "vcs.modified": "modified"}

func (c *versionCmd) Run(io console) error {
	line := "siafu " + ranks.Version
	if info, ok := debug.ReadBuildInfo(); ok {
		line += " " + info.GoVersion
		for _, s := range info.Settings {
			if name, ok := toldOfBuild[s.Key]; ok {
				line += " " + name + "=" + s.Value
			}
		}
	}
	_, err := fmt.Fprintf(io.out, "%s mpi=%t\n", line, mpi.Available())
	return err
}
