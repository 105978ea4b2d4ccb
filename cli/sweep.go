package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"siafu/cli/commandline"
	"siafu/internal/fault"
	"siafu/ranks/report"
	"siafu/ranks/runfolder"
	"siafu/slurm"
)

type sweepCmd struct {
	Out    string   `default:"" placeholder:"DIR" help:"Folder of the run folders, which are named after their settings. Empty: runs/NAME-sweep."`
	Launch int      `default:"0" placeholder:"RANKS" help:"Ranks of each training under mpirun, as in siafu launch. 0: one process; flags of train set its number of ranks."`
	Submit *string  `aliases:"slurm" placeholder:"FLAGS" help:"Submit the sweep as a job array, with these flags of submit. Quote the flags. With --dry-run among them, the script is printed only."`
	DryRun bool     `name:"dry-run" help:"Print the command line of each training without running it."`
	HTML   string   `name:"html" placeholder:"FILE" help:"HTML file for a report at the end."`
	Args   []string `arg:"" name:"data" passthrough:"" help:"[CONFIG.toml] DATA, then flags of train with lists of values. Example: --seed 1..10 --codec none,int4. Other flags of train follow --."`
}

func (c *sweepCmd) Run(ctx context.Context, io commandline.Console, flags trainFlags) error {
	data, axes, err := gridOf(c.Args)
	if err != nil {
		return err
	}
	c.Out = cmp.Or(c.Out, filepath.Join("runs", filepath.Base(filepath.Clean(data[len(data)-1]))+"-sweep"))
	if c.Submit != nil {
		return c.submit(io, data, axes, flags)
	}
	s := &slurm.Sweep{Dir: c.Out, Out: io.Out, Err: io.Err}
	if s.Settings, err = slurm.Grid("sweep", axes); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fault.System("sweep", "", err)
	}
	train := slices.Concat([]string{"train"}, data, flags)
	s.Check = func(s slurm.Setting) error {
		_, err := parseTrain(slices.Concat(train, s.Flags()))
		return err
	}
	s.Command = func(s slurm.Setting, out string) []string {
		line := []string{self}
		if c.Launch > 0 {
			line = append(line, "launch", "--ranks", strconv.Itoa(c.Launch))
		}
		return slices.Concat(line, train, s.Flags(), []string{"--out", noFlag(out)}, resumeFlags(flags))
	}
	if c.DryRun {
		for _, setting := range s.Settings {
			fmt.Fprintln(io.Out, slurm.Quote(s.Command(setting, filepath.Join(c.Out, setting.Folder()))...))
		}
		return nil
	}
	failed, err := s.Run(ctx)
	return cmp.Or(c.conclude(io, s, failed), err, failure(s, failed))
}

// sweepFlags returns the flags of sweep and of every command, and whether each takes a value.
func sweepFlags() map[string]bool {
	flags := map[string]bool{"--help": false, "-h": false}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[sweepCmd]()) {
		if _, arg := f.Tag.Lookup("arg"); !arg {
			for _, name := range strings.Fields(cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name)) + " " + f.Tag.Get("aliases")) {
				flags["--"+name] = f.Type.Kind() != reflect.Bool
			}
		}
	}
	return flags
}

// sweepFlagsFirst moves the flags of sweep in front of DATA. kong passes everything after
// DATA through unparsed. It also joins values to their flags, since kong accepts no separate
// value that begins with a dash.
func sweepFlagsFirst(args []string) []string {
	flags, front, rest := sweepFlags(), args[:1:1], []string(nil)
	for i := 1; i < len(args); i++ {
		name, _, joined := strings.Cut(args[i], "=")
		takesValue, own := flags[name]
		switch {
		case args[i] == "--":
			return slices.Concat(front, rest, args[i:])
		case own && takesValue && !joined && i+1 < len(args):
			front = append(front, name+"="+args[i+1])
			i++
		case own:
			front = append(front, args[i])
		default:
			rest = append(rest, args[i])
		}
	}
	return slices.Concat(front, rest)
}

// notAxes are flags for a run folder. sweep sets them itself.
var notAxes = []string{"resume", "force"}

// gridOf splits arguments into [CONFIG.toml] DATA and the axes after it.
func gridOf(args []string) (data []string, axes []slurm.Axis, err error) {
	for len(args) > 0 && !strings.HasPrefix(args[0], "--") {
		data, args = append(data, args[0]), args[1:]
	}
	if err := (&trainCmd{Args: data}).check(); err != nil || len(args) == 0 {
		return nil, nil, fault.New(fault.Usage, "sweep", "", "expected [CONFIG.toml] DATA and lists of values, got %q %q", data, args).
			Then(`see "siafu help sweep"`)
	}
	for len(args) > 0 {
		flag, values, whole := strings.Cut(args[0], "=")
		args = args[1:]
		if !whole && len(args) > 0 {
			values, args = args[0], args[1:]
		}
		a, err := slurm.NewAxis("sweep", flag, values)
		if err != nil {
			return nil, nil, err
		}
		if slices.Contains(notAxes, a.Flag) || slices.ContainsFunc(axes, a.Varies) {
			return nil, nil, fault.New(fault.Usage, "sweep", "", "%s %s is not a list of values, or is given twice", flag, values).
				Then("put flags common to all trainings after --")
		}
		axes = append(axes, a)
	}
	return data, axes, nil
}

// submit submits the grid as a job.
func (c *sweepCmd) submit(io commandline.Console, data []string, axes []slurm.Axis, flags trainFlags) error {
	args := append([]string{"submit"}, strings.Fields(*c.Submit)...)
	for _, a := range axes {
		args = append(args, "--array="+a.Flag+"="+strings.Join(a.Values, ","))
	}
	return dispatch(slices.Concat(args, data, []string{"--", "--out", noFlag(c.Out)}, flags), io)
}

// conclude compares the existing runs.
func (c *sweepCmd) conclude(io commandline.Console, s *slurm.Sweep, failed []slurm.Failure) error {
	o := report.Options{HTML: c.HTML}
	for _, setting := range s.Settings {
		if dir := filepath.Join(c.Out, setting.Folder()); runfolder.IsRun(dir) {
			o.Runs = append(o.Runs, dir)
		}
	}
	for _, v := range s.Settings[0] {
		if strings.HasPrefix(v, "seed=") && len(o.Runs) > 1 {
			o.Over = []string{"seed"}
		}
	}
	var err error
	if len(o.Runs) > 0 {
		fmt.Fprintln(io.Out)
		err = o.Run(io.Out)
	}
	for _, f := range failed {
		fmt.Fprintf(io.Out, "failed %s: %s\n", f.Setting, f.Detail)
	}
	return err
}

// failure returns the fault of failed trainings, with the kind of the first failure.
func failure(s *slurm.Sweep, failed []slurm.Failure) error {
	if len(failed) == 0 {
		return nil
	}
	return fault.New(failed[0].Kind, "sweep", s.Dir, "%d of %d trainings failed", len(failed), len(s.Settings)).
		Then("run the same command again to train those that did not finish")
}
