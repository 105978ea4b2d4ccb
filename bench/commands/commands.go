// Package commands is the command line of siafu-bench: the commands of "siafu bench". Each
// parses its flags into the options of the package that measures, and calls that package. The
// command all makes the tables and figures of all papers.
package commands

import (
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"siafu/bench"
	"siafu/bench/digest"
	"siafu/bench/dorylus"
	"siafu/bench/neutronstar"
	"siafu/bench/sat"
	"siafu/bench/spot"
	"siafu/bench/trials"
	"siafu/cli/commandline"
	"siafu/ranks/simulate"
)

// Main runs siafu-bench with the arguments of this process, and ends the process.
func Main() { commandline.Main(append([]string{"bench"}, os.Args[1:]...), Run) }

// Run runs a command line of siafu that begins with "bench".
func Run(args []string, io commandline.Console) error {
	return commandline.Parse(args, io, new(grammar))
}

type grammar struct {
	Bench benchCmd `cmd:"" group:"Benchmarks" help:"Run benchmarks and reproduce published tables."`
}

// benchCmd lists the commands.
type benchCmd struct {
	Accuracy    measurement[bench.AccuracyOptions]  `cmd:"" help:"Compare test accuracy on real graphs with published figures."`
	All         command[allOptions]                 `cmd:"" help:"Create one page with the tables and figures of all papers."`
	Async       measurement[bench.AsyncOptions]     `cmd:"" help:"Compare bounded asynchrony with the synchronous pipeline."`
	Breakdown   command[bench.BreakdownOptions]     `cmd:"" help:"Break down the time of an epoch. Prints tasks, hidden communication and idle time of ranks."`
	CUDA        measurement[bench.CUDAOptions]      `cmd:"" name:"cuda" help:"Time gathers, products and epochs on a GPU. Compares with cuSPARSE, cuBLAS, PyTorch Geometric and DGL."`
	Digest      paper[digest.Options]               `cmd:"" help:"Compare ways of training with stale ghost rows. Reproduces the tables and figures of DIGEST."`
	Disk        measurement[bench.DiskOptions]      `cmd:"" help:"Measure the rates of a disk and of random rows in memory, which decide epochs of graphs larger than memory."`
	Dorylus     paper[dorylus.Options]              `cmd:"" help:"Compare tensor work in functions, on CPUs and on GPUs. Synchronous and with bounded asynchrony: the tables and figures of Dorylus."`
	Epoch       measurement[bench.EpochOptions]     `cmd:"" help:"Time an epoch and its tasks on a dataset."`
	Links       command[bench.LinksOptions]         `cmd:"" help:"Train over emulated links with given rates between hosts."`
	Kernels     measurement[bench.KernelsOptions]   `cmd:"" help:"Time every kernel on the shapes of layers."`
	Lambda      measurement[bench.LambdaOptions]    `cmd:"" help:"Compare tensor work in functions with the CPU. Measures functions also without each task optimisation."`
	NeutronStar paper[neutronstar.Options]          `cmd:"" name:"neutronstar" help:"Compare received and computed ghost rows. Reproduces the dependency handling of NeutronStar."`
	Partition   measurement[bench.PartitionOptions] `cmd:"" help:"Compare partitioners with each other and with METIS."`
	Replay      measurement[bench.ReplayOptions]    `cmd:"" help:"Compare simulated epoch times with measured ones. Measures over emulated links with given rates between hosts."`
	SAT         paper[sat.Options]                  `cmd:"" name:"sat" help:"Compare stale ghost rows with predicted ones. Reproduces the tables and figures of SAT."`
	Spot        command[spot.Options]               `cmd:"" help:"Simulate training on spot machines. Reproduces the simulations of Bamboo."`
	Simulate    simulateCmd                         `cmd:"" help:"Simulate a recorded run on other links, workers and numbers of ranks."`

	Describe describeCmd `cmd:"" hidden:"" help:"Print the commands and their flags as JSON."`
}

// command is a command whose options are the options of the package that measures.
type command[O interface {
	Run(ctx context.Context, w io.Writer) error
}] struct {
	Options O `embed:""`
}

func (c *command[O]) Run(ctx context.Context, io commandline.Console) error {
	return c.Options.Run(ctx, io.Out)
}

// paper is a command that makes the tables and figures of a paper.
type paper[O interface{ Book() (*trials.Book, error) }] struct {
	Options O `embed:""`
}

func (c *paper[O]) Run(ctx context.Context, io commandline.Console) error {
	b, err := c.Options.Book()
	if err != nil {
		return err
	}
	return b.Run(ctx, io.Out)
}

// measurement is a command that prints this machine first.
type measurement[O interface {
	Run(ctx context.Context, w io.Writer) error
}] struct {
	command[O] `embed:""`
}

func (c *measurement[O]) Run(ctx context.Context, io commandline.Console) error {
	trials.Machine(io.Out)
	return c.command.Run(ctx, io)
}

type simulateCmd struct {
	Options simulate.Options `embed:""`
}

func (c *simulateCmd) Run(io commandline.Console) error { return c.Options.Print(io.Out) }

// describeCmd describes the commands of siafu-bench to siafu, for help, completion and the
// manual page.
type describeCmd struct{}

func (c *describeCmd) Run(io commandline.Console, ctx *kong.Context) error {
	return json.NewEncoder(io.Out).Encode(commandline.Describe(ctx.Model.Node))
}
