package trials

import (
	"path/filepath"

	"siafu/internal/fault"
)

// Options are the common options of books. Defaults are variables that the command sets.
type Options struct {
	Partitioner string   `default:"multilevel" help:"Partitioner of all trainings."`
	Seeds       int      `default:"${seeds=5}" help:"Number of seeds to average, from 1."`
	Epochs      int      `default:"100" help:"Epochs of accuracy runs. ${epochs=}"`
	Timed       int      `default:"${timed=21}" help:"Epochs of timed runs. The mean excludes the first epoch."`
	Turns       int      `default:"1" help:"Repetitions of each timed run."`
	Work        string   `default:"${work}" placeholder:"DIR" help:"Folder for results and synthetic graphs. Existing results are reused."`
	Hours       float64  `default:"0" help:"Hours after which trainings stop; 0: no limit."`
	HTML        string   `name:"html" placeholder:"FILE" help:"HTML file for the tables and charts, self-contained."`
	Only        []string `help:"Tables and figures to create. Values: ${parts}. Empty: ${all=all}."`
	Train       []string `arg:"" optional:"" help:"Flags of train, after --."`
}

// Open checks the options, and completes a book of all parts: it has the selected ones, and the
// archive of their results. op names the command in faults.
func (o *Options) Open(op string, b Book) (_ *Book, err error) {
	if err := b.Select(op, o.Only, o.HTML); err != nil {
		return nil, err
	}
	if o.Seeds < 1 || o.Epochs < 2 || o.Timed < 2 || o.Turns < 1 {
		return nil, fault.New(fault.Usage, op, "", "--seeds=%d --epochs=%d --timed=%d --turns=%d", o.Seeds, o.Epochs, o.Timed, o.Turns).
			Then("set at least 1 seed and turn, and 2 epochs")
	}
	b.Archive, err = NewArchive(op, filepath.Join(o.Work, "results"), o.Hours)
	return &b, err
}
