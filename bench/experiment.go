package bench

import (
	"context"
	"io"
	"os"

	"siafu/internal/fault"
	"siafu/internal/scratch"
	"siafu/internal/table"
	"siafu/kernels"
	"siafu/ranks"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// experiment compares settings of a training on a dataset: it trains several times with each
// setting and prints a table with a row for each.
type experiment struct {
	op, data string
	config   config.Config // of all trainings
	settings []*setting
	columns  []string // of package table
	row      func(s, first *setting) []any
}

// setting is a row of an experiment.
type setting struct {
	name string
	set  func(c *config.Config, turn int) // changes a copy of the common configuration
	runs []*runfolder.Run                 // by turn
}

// add adds a setting, which it returns.
func (e *experiment) add(name string, set func(c *config.Config, turn int)) *setting {
	s := &setting{name: name, set: set}
	e.settings = append(e.settings, s)
	return s
}

// train trains with each setting as often as a flag says. Turns are interleaved, so that
// other load on the machine affects all settings alike.
func (e *experiment) train(ctx context.Context, flag string, turns int) error {
	if turns < 1 {
		return fault.New(fault.Usage, e.op, "", "--%s=%d", flag, turns).Then("set 1 or more")
	}
	for turn := range turns {
		for _, s := range e.settings {
			c := e.config
			s.set(&c, turn)
			run, err := trial(ctx, e.op, e.data, c)
			if err != nil {
				return err
			}
			s.runs = append(s.runs, run)
		}
	}
	return nil
}

// print prints the table.
func (e *experiment) print(w io.Writer) error {
	t := table.Right(e.columns...)
	for _, s := range e.settings {
		t.Add(e.row(s, e.settings[0])...)
	}
	return t.Text(w)
}

// each returns a number of all runs of a setting.
func (s *setting) each(of func(runfolder.Summary) float64) (list []float64) {
	for _, r := range s.runs {
		list = append(list, of(r.Summary))
	}
	return list
}

// last returns the summary of the last run.
func (s *setting) last() runfolder.Summary { return s.runs[len(s.runs)-1].Summary }

// trial trains once, prints only warnings, and reads the run folder, which is removed unless c
// names it. op is the command in faults.
func trial(ctx context.Context, op, data string, c config.Config) (*runfolder.Run, error) {
	return watchedTrial(ctx, op, data, c, nil)
}

// watchedTrial is trial with the Ops of workers wrapped by watch, which may be nil.
func watchedTrial(ctx context.Context, op, data string, c config.Config, watch func(kernels.Ops) kernels.Ops) (*runfolder.Run, error) {
	c.Quiet = true
	if c.Out == "" {
		tmp, err := scratch.Temp()
		if err != nil {
			return nil, fault.System(op, "", err)
		}
		defer tmp.Close()
		c.Out, c.Force = tmp.Path, true
	}
	if err := ranks.Train(ctx, c, data, ranks.IO{Out: io.Discard, Err: os.Stderr, Watch: watch}); err != nil {
		return nil, err
	}
	return runfolder.Read(c.Out)
}
