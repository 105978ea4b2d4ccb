package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"siafu/cli/commandline"
	"siafu/internal/fault"
	"siafu/internal/inventory"
	"siafu/internal/screen"
	"siafu/ranks/config"
	"siafu/slurm"
	"siafu/slurm/launch"
)

type submitCmd struct {
	Options slurm.Options `embed:""`
	Args    []string      `arg:"" name:"data" help:"[CONFIG.toml] DATA, then -- and flags of train."`
}

func (c *submitCmd) Run(io commandline.Console, flags trainFlags) error {
	if note := c.Options.ChooseScheduler(); note != "" {
		fmt.Fprintf(io.Err, "siafu: %s\n", note)
	}
	if err := c.Options.Validate(); err != nil {
		return err
	}
	job, err := c.job(io, append(slices.Clone(c.Args), flags...))
	if err != nil {
		return err
	}
	record, err := job.Submit()
	if err != nil {
		return err
	}
	if c.Options.DryRun {
		text := job.Script()
		if job.PartitionJob {
			text = job.PartitionScript() + "\n" + text
		}
		_, err = fmt.Fprintf(io.Out, "%swrote script=%s run=%s\n", text, record.Script, job.Run)
		return err
	}
	if record.PartitionJob != "" {
		fmt.Fprintf(io.Out, "submitted partition_job=%s\n", record.PartitionJob)
	}
	_, err = fmt.Fprintf(io.Out, "submitted job=%s script=%s run=%s log=%s\n", record.Job, record.Script, job.Run, job.Log(record.Job))
	return err
}

// job creates the job. It parses the command line of train for each setting of a sweep,
// so that errors are reported before the job is submitted.
func (c *submitCmd) job(io commandline.Console, line []string) (*slurm.Job, error) {
	settings, err := c.Options.Settings()
	if err != nil {
		return nil, err
	}
	args := append([]string{"train"}, line...)
	train, err := parseTrain(args)
	if err != nil {
		return nil, err
	}
	var runs []*config.Config
	for _, s := range settings {
		one, err := parseTrain(append(slices.Clone(args), strings.Fields("--"+strings.ReplaceAll(s, " ", " --"))...))
		if err != nil {
			return nil, err
		}
		runs = append(runs, &one.Config)
	}
	if settings == nil {
		runs = append(runs, &train.Config)
	}
	if err := cmp.Or(c.askGPUs(runs), c.foresee(io, train.data(), runs)); err != nil {
		return nil, err
	}
	j := &slurm.Job{Options: c.Options, Run: train.Config.Out, Settings: settings, ID: inventory.NewID()}
	j.Survive = slices.ContainsFunc(runs, func(r *config.Config) bool { return r.Survive })
	// With --force the first start replaces an existing run folder. Later starts recognise the
	// run by its id and resume it.
	if !train.Config.Force {
		j.Resume = resumeFlags(line)
	}
	if j.Run == "" {
		j.Run = freshRun(train.data())
	}
	j.Run = noFlag(filepath.Clean(j.Run))
	j.Options.Script = noFlag(j.Options.Script)
	if j.JobName == "" {
		j.JobName = "siafu-" + filepath.Base(filepath.Clean(train.data()))
	}
	j.Train = withoutFlag(line, "--out")
	if j.Parts, err = partitionArgs(&train.Config, train.data(), c.Options.Ranks()); err != nil {
		return nil, err
	}
	j.Self, err = os.Executable()
	if err != nil {
		return nil, fault.System("submit", "", err)
	}
	return j, nil
}

// askGPUs requests GPUs for the job if one of its runs computes on GPUs.
func (c *submitCmd) askGPUs(runs []*config.Config) error {
	most := 0
	for _, r := range runs {
		if r.Tensor != config.TensorCUDA {
			continue
		}
		v, err := r.View(c.Options.Ranks())
		if err != nil {
			return err
		}
		most = max(most, v.Ranks)
	}
	return c.Options.AskGPUs(most)
}

// partitionArgs returns the arguments of the partition command for training on the given
// number of ranks.
func partitionArgs(c *config.Config, data string, size int) ([]string, error) {
	v, err := c.View(size)
	if err != nil {
		return nil, err
	}
	args := []string{data, "--parts", fmt.Sprint(v.Parts)}
	if c.Partitioner != "" {
		args = append(args, "--method", c.Partitioner)
	}
	if c.VertexOrder != "" {
		args = append(args, "--vertex-order", c.VertexOrder)
	}
	if c.PartsDir != "" {
		args = append(args, "--parts-dir", c.PartsDir)
	}
	return args, nil
}

// noFlag prevents a path from being parsed as a flag.
func noFlag(path string) string {
	if strings.HasPrefix(path, "-") {
		return "./" + path
	}
	return path
}

// withoutFlag removes a flag and its value.
func withoutFlag(args []string, flag string) []string {
	var rest []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == flag:
			i++
		case !strings.HasPrefix(args[i], flag+"="):
			rest = append(rest, args[i])
		}
	}
	return rest
}

type statusCmd struct {
	Runs  []string      `arg:"" optional:"" name:"run" help:"Run folders, folders of runs, or job numbers. None: all runs below runs/."`
	Watch bool          `short:"w" help:"Repeat until all runs have ended."`
	Every time.Duration `default:"2s" help:"Interval between two updates of --watch."`
	JSON  bool          `name:"json" help:"Print a JSON array with one element for each run."`
}

func (c *statusCmd) Run(ctx context.Context, io commandline.Console) error {
	if !c.Watch {
		_, err := c.look(io)
		return err
	}
	if c.Every <= 0 {
		return fault.New(fault.Usage, "status", "", "--every=%v", c.Every).Then("set it above 0")
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	for {
		if screen.Width(io.Out, false) > 0 {
			fmt.Fprint(io.Out, screen.Clear)
		}
		over, err := c.look(io)
		if over {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.Every):
		}
	}
}

// look prints the table once. over reports whether all jobs have ended. A job that cannot be
// read has its error in its line.
func (c *statusCmd) look(io commandline.Console) (over bool, err error) {
	list, damaged := slurm.Watch{Queue: slurm.Queue, Now: time.Now()}.All(c.Runs)
	over = !slices.ContainsFunc(list, func(s slurm.Status) bool { return !s.Over() })
	if len(list) == 1 && damaged != nil {
		return over, damaged // a table would contain the same error
	}
	write := slurm.Print
	if c.JSON {
		write = slurm.PrintJSON
	}
	if err := write(io.Out, list); err != nil {
		return true, err
	}
	if damaged != nil {
		return over, &launch.Ended{Code: fault.ExitCode(damaged)}
	}
	return over, nil
}
