package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"siafu/cli/commandline"
	"siafu/internal/fault"
	"siafu/internal/inventory"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
	"siafu/slurm/launch"
)

type launchCmd struct {
	Options   launch.Options `embed:""`
	InProcess bool           `name:"in-process" help:"Run the ranks in one process, without a launcher."`
	Container string         `placeholder:"LINE" help:"Container command for each rank, such as \"apptainer exec siafu.sif\"."`
	Program   string         `placeholder:"PATH" help:"Path of siafu on the ranks. Empty: this program, or siafu in a container."`
	Args      []string       `arg:"" name:"command" passthrough:"" help:"Command to run: train, predict, doctor or bench, with its arguments."`
}

func (c *launchCmd) Run(io commandline.Console) error {
	self, err := os.Executable()
	if err != nil {
		return fault.System("launch", "", err)
	}
	o := c.Options
	o.Wrap, o.Program, o.Self = strings.Fields(c.Container), c.program(self), self
	o.Out, o.Err = io.Out, io.Err
	o.Log = func(format string, args ...any) { fmt.Fprintf(io.Err, "siafu: launch: "+format+"\n", args...) }
	if c.InProcess {
		o.Launcher = launch.InProcess
	}
	if o.Ranks == 0 {
		o.Ranks = launch.DefaultRanks(o.Hostfile)
	}
	if o.Args, o.Survive, err = command(c.Args, o.Program == self); err != nil {
		return err
	}
	if o.Survive && o.Launcher == launch.Srun {
		return fault.New(fault.Usage, "launch", "", "--survive with --launcher srun, which ends all ranks when one ends").
			Then("use --launcher mpirun")
	}
	if c.InProcess && !takes(o.Args, "ranks") {
		o.Ranks = 0
	}
	if o.Args[0] == "train" {
		o.Env = []string{runfolder.LaunchVariable + "=" + launchID()}
	}
	return launch.Run(o)
}

func (c *launchCmd) program(self string) string {
	switch {
	case c.Program != "":
		return c.Program
	case c.Container != "":
		return "siafu"
	}
	return self
}

// launchID returns the id of this launch. All starts of a batch script have the same id.
func launchID() string { return cmp.Or(os.Getenv(runfolder.LaunchVariable), inventory.NewID()) }

// command returns the command line of the ranks, the same for every attempt: an attempt
// recognises the files of earlier ones by the id of the launch. Training gets a run folder, so
// that all attempts share it. If ranks run this program, the command line is parsed here, so
// that errors are reported before any rank starts. survive reports whether ranks continue after the
// loss of others.
func command(args []string, same bool) (line []string, survive bool, err error) {
	if args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return nil, false, fault.New(fault.Usage, "launch", "", "it needs a command, such as train").Then(`see "siafu help launch"`)
	}
	if args[0] != "train" || !same {
		survive = slices.ContainsFunc(args, func(arg string) bool { return arg == "--survive" || strings.HasPrefix(arg, "--survive=") })
		return args, survive, nil
	}
	t, err := parseTrain(args)
	if err != nil {
		return nil, false, err
	}
	if t.Config.Out == "" {
		args = append(args, "--out", freshRun(t.data()))
	}
	return args, t.Config.Survive, nil
}

// takes reports whether the command of a command line has a flag.
func takes(args []string, flag string) bool { return describe().Find(args...).Flag(flag) != nil }

// parseTrain parses a command line of train with its TOML file and the environment, as the
// ranks will do.
func parseTrain(args []string) (*trainCmd, error) {
	var g struct {
		Train trainCmd `cmd:""`
	}
	settings, err := loadConfig(args)
	if err != nil {
		return nil, err
	}
	parser, err := commandline.NewParser(&g, kong.Resolvers(kong.ResolverFunc(settings.resolve)))
	if err != nil {
		return nil, err
	}
	args, err = config.Separate(args)
	if err != nil {
		return nil, err
	}
	if _, err := parser.Parse(args); err != nil {
		if f := (*fault.Error)(nil); errors.As(err, &f) {
			return nil, f
		}
		return nil, fault.New(fault.Usage, "", "", "%s", config.Spelled(err.Error())).Then(`see "siafu help train"`)
	}
	if err := g.Train.check(); err != nil {
		return nil, err
	}
	return &g.Train, g.Train.Config.Validate()
}

// freshRun returns the name that training on this dataset would give a new run folder.
func freshRun(data string) string {
	return filepath.Join("runs", filepath.Base(filepath.Clean(data))+"-"+time.Now().Format("20060102-150405"))
}

// resumeFlags returns the flags to resume training from the newest checkpoint of the run
// folder, unless args contain other settings.
func resumeFlags(args []string) []string {
	given := slices.ContainsFunc(args, func(s string) bool { return s == "--resume" || strings.HasPrefix(s, "--resume=") })
	if given {
		return nil
	}
	return []string{"--resume", "auto"}
}

type shieldCmd struct {
	Parent  int      `placeholder:"PROCESS" help:"Process ID of the parent, whose exit ends the command."`
	Exposed bool     `help:"The command receives SIGTERM."`
	Agent   bool     `help:"The command starts a daemon of mpirun on another host, which may be lost later."`
	Command []string `arg:"" passthrough:"" help:"Command to run."`
}

func (c *shieldCmd) Run() error {
	if !c.Agent {
		return launch.Shield(c.Parent, c.Exposed, c.Command)
	}
	code, err := launch.Agent(c.Command)
	if err == nil && code != 0 {
		err = &launch.Ended{Code: code} // the command has printed the reason
	}
	return err
}
