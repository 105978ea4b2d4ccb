package cli

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"siafu/cli/commandline"
	"siafu/graph"
	"siafu/graph/download"
	"siafu/graph/generate"
	"siafu/graph/importers"
	"siafu/graph/pairs"
	"siafu/graph/partition"
	"siafu/internal/fault"
	"siafu/ranks"
	"siafu/ranks/config"
	"siafu/ranks/plan"
	"siafu/ranks/report"
	"siafu/ranks/runfolder"
	"siafu/ranks/world/mpi"
	"siafu/slurm/launch"
)

// grammar is the grammar of the command line.
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
	Leave      leaveCmd      `cmd:"" group:"Cluster" help:"Move the parts of hosts to other ranks of a run (--survive)."`
	Join       joinCmd       `cmd:"" group:"Cluster" help:"Join a run from another machine, as a spare rank (--survive)."`
	Submit     submitCmd     `cmd:"" group:"Cluster" help:"Write a batch script for Slurm, PBS or LSF and submit it."`
	Status     statusCmd     `cmd:"" group:"Cluster" help:"Print the state of runs and jobs."`
	Spot       spotCmd       `cmd:"" group:"Cluster" help:"Generate traces of spot machines, and simulate training on them."`
	Lambda     lambdaCmd     `cmd:"" group:"Cluster" help:"Deploy, inspect or remove the function in AWS Lambda."`
	Predict    predictCmd    `cmd:"" group:"Results" help:"Predict every vertex with a trained network."`
	Export     exportCmd     `cmd:"" group:"Results" help:"Export a trained network for other programs."`
	Report     reportCmd     `cmd:"" group:"Results" help:"Compare run folders."`
	Bench      benchCmd      `cmd:"" group:"Results" help:"Run benchmarks and reproduce published tables."`
	Doctor     doctorCmd     `cmd:"" group:"This machine" help:"Print what this machine and this build support."`
	Clean      cleanCmd      `cmd:"" group:"This machine" help:"Remove leftovers of killed commands."`
	Version    versionCmd    `cmd:"" group:"This machine" help:"Print the version, the commit, the MPI library and the kernels."`
	Completion completionCmd `cmd:"" group:"This machine" help:"Write a shell completion script."`
	Man        manCmd        `cmd:"" group:"This machine" help:"Write the manual page."`
	Shield     shieldCmd     `cmd:"" hidden:"" help:"Run a command that does not receive SIGTERM."`
}

type importCmd struct {
	From    string            `default:"auto" values:"formats" help:"Source format: auto, ${formats=}."`
	Options importers.Options `embed:""`
}

// Help returns the layouts of folders of tables.
func (*importCmd) Help() string {
	return `A folder of tables has one of these layouts. Their first lines name the columns:

    nodes.csv            id,age,label         edges.csv                       src,dst
    nodes/customer.csv   id,age,label         edges/customer__buys__item.csv  customer,item

In the second layout each kind of vertices and each relation has a table. See docs/importing.md.`
}

func (c *importCmd) Run(io commandline.Console) error {
	c.Options.Stdin = io.In
	c.Options.Log = func(format string, args ...any) { fmt.Fprintf(io.Out, "import "+format+"\n", args...) }
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
	return printWritten(io.Out, c.Options.Dst, report)
}

type downloadCmd struct {
	Name    string           `arg:"" help:"Dataset to download. Values: cora, citeseer, pubmed, ogbn-arxiv, ogbn-products, ogbn-papers100M."`
	Options download.Options `embed:""`
}

func (c *downloadCmd) Run(ctx context.Context, io commandline.Console) error {
	if c.Options.Dst == "" {
		c.Options.Dst = "data/" + c.Name
	}
	c.Options.Log = func(format string, args ...any) { fmt.Fprintf(io.Out, "download "+format+"\n", args...) }
	report, err := download.Get(ctx, c.Name, c.Options)
	if err != nil {
		return err
	}
	return printWritten(io.Out, c.Options.Dst, report)
}

type generateCmd struct {
	Dst     string           `arg:"" help:"Dataset folder to create."`
	Options generate.Options `embed:""`
	Force   bool             `help:"Replace an existing dataset folder."`
}

func (c *generateCmd) Run(io commandline.Console) error {
	report, err := generate.Write(c.Dst, c.Options, c.Force)
	if err != nil {
		return err
	}
	return printWritten(io.Out, c.Dst, report)
}

type holdoutCmd struct {
	Data    string               `arg:"" help:"Dataset folder."`
	Dst     string               `arg:"" help:"Dataset folder to create."`
	Options pairs.HoldOutOptions `embed:""`
	Force   bool                 `help:"Replace an existing dataset folder."`
}

func (c *holdoutCmd) Run(io commandline.Console) error {
	c.Options.Log = func(format string, args ...any) { fmt.Fprintf(io.Out, "holdout "+format+"\n", args...) }
	report, err := pairs.HoldOut(c.Data, c.Dst, c.Options, c.Force)
	if err != nil {
		return err
	}
	return printWritten(io.Out, c.Dst, report)
}

type infoCmd struct {
	Data string `arg:"" help:"Dataset folder."`
	JSON bool   `name:"json" help:"Print meta.json, the fingerprint and the partitionings as JSON."`
}

func (c *infoCmd) Run(io commandline.Console) error {
	if c.JSON {
		return printInfoJSON(io.Out, c.Data)
	}
	return printInfo(io.Out, c.Data)
}

type partitionCmd struct {
	Data    string            `arg:"" help:"Dataset folder."`
	Options partition.Options `embed:""`
}

func (c *partitionCmd) Run(io commandline.Console) error {
	report, err := partition.Run(c.Data, c.Options)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(io.Out, report)
	return err
}

type planCmd struct {
	Options plan.Options `embed:""`
}

func (c *planCmd) Run(io commandline.Console, line *kong.Context) error {
	suit((*config.Config)(&c.Options.Config), c.Options.Data, line)
	c.Options.Progress = io.Err
	return plan.Run(c.Options, io.Out)
}

// suit sets the options that the command line does not set to values that suit the dataset. If
// the dataset cannot be read, suit changes nothing; the command reports the error.
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

// check returns a fault unless the arguments are [CONFIG.toml] DATA.
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

func (c *trainCmd) Run(ctx context.Context, io commandline.Console, line *kong.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	suit(&c.Config, c.data(), line)
	checkJob(io.Err, c.Config.Ranks)
	return ranks.Train(ctx, c.Config, c.data(), ranks.IO{Out: io.Out, Err: io.Err, Last: io.Last, Lead: io.Lead, Done: io.Done})
}

type predictCmd struct {
	RunDir string              `arg:"" name:"run" help:"Run folder."`
	Data   string              `arg:"" help:"Dataset folder."`
	Config ranks.PredictConfig `embed:""`
}

func (c *predictCmd) Run(ctx context.Context, io commandline.Console) error {
	return ranks.Predict(ctx, c.Config, c.RunDir, c.Data, ranks.IO{Out: io.Out, Err: io.Err, Last: io.Last})
}

type leaveCmd struct {
	Options ranks.LeaveOptions `embed:""`
}

func (c *leaveCmd) Run(io commandline.Console) error { return ranks.Leave(c.Options, io.Out) }

type joinCmd struct {
	Options ranks.JoinOptions `embed:""`
}

func (c *joinCmd) Run(ctx context.Context, io commandline.Console) error {
	return ranks.Join(ctx, c.Options, ranks.IO{Out: io.Out, Err: io.Err, Last: io.Last, Lead: io.Lead})
}

type exportCmd struct {
	Options ranks.ExportOptions `embed:""`
}

func (c *exportCmd) Run(io commandline.Console) error { return ranks.Export(c.Options, io.Out) }

type reportCmd struct {
	Options report.Options `embed:""`
}

func (c *reportCmd) Run(io commandline.Console) error { return c.Options.Run(io.Out) }

type doctorCmd struct {
	JSON bool `name:"json" help:"Print a JSON object with a list for each kind of line."`
}

func (c *doctorCmd) Run(io commandline.Console) error {
	checkJob(io.Err, 1)
	left := io.Out
	if c.JSON {
		left = io.Err
	}
	launch.Release(func(line string) { fmt.Fprintln(left, line) })
	return ranks.Doctor(c.JSON, ranks.IO{Out: io.Out, Err: io.Err, Last: io.Last})
}

type versionCmd struct{}

// toldOfBuild maps Go's names of the build settings that version prints to siafu's names.
var toldOfBuild = map[string]string{"-tags": "tags", "GOARCH": "arch", "vcs.revision": "commit",
	"vcs.time": "date", "vcs.modified": "modified"}

func (c *versionCmd) Run(io commandline.Console) error {
	line, known := "siafu "+ranks.Version, false
	if info, ok := debug.ReadBuildInfo(); ok {
		line += " " + info.GoVersion
		for _, s := range info.Settings {
			if name, ok := toldOfBuild[s.Key]; ok {
				line += " " + name + "=" + s.Value
				known = known || name == "commit"
			}
		}
	}
	if !known {
		line += " commit=unknown"
	}
	built, usable := ranks.Kernels()
	line += " kernels=" + strings.Join(built, ",") + " usable=" + strings.Join(usable, ",")
	library := " mpi=none"
	if mpi.Available() {
		library = fmt.Sprintf(" mpi=%q library=%s", mpi.Library(), mpi.File())
	}
	_, err := fmt.Fprintln(io.Out, line+library)
	return err
}
