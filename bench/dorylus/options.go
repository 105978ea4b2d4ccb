package dorylus

import (
	"context"
	"io"
	"path/filepath"
	"strings"

	"siafu/bench/trials"
	"siafu/internal/fault"
	"siafu/lambda/bill"
	"siafu/ranks/report/page"
)

const op = "bench dorylus"

// Options are the options of bench dorylus.
type Options struct {
	Data        []string  `placeholder:"DIR" help:"Datasets that replace synthetic graphs, as NAME=DIR. NAME: reddit-small, reddit-large, amazon or friendster; DIR alone: a graph that is not in the paper. Other graphs are omitted."`
	Only        []string  `help:"Tables and figures to create. Values: table1, table2, table3, figure5, figure6, table4, figure7, figure8, figure9, table5, figure10, model. Empty: all."`
	Scale       []float64 `default:"0" help:"Factor for synthetic graphs: one, or one for each of the four. It multiplies vertices and edges. 0: 0.05, 0.01, 0.01, 0.002, at which a GCN has about the paper's accuracies."`
	Ranks       int       `default:"2" help:"Graph ranks of all trainings. One parameter server is added."`
	Hidden      int       `default:"64" help:"Width of the hidden layer."`
	Partitioner string    `default:"multilevel" help:"Partitioner of all trainings."`
	Seeds       int       `default:"1" help:"Number of seeds to average, from 1."`
	Epochs      int       `default:"100" help:"Epochs of synchronous accuracy runs. Runs with bounded asynchrony have twice this number."`
	Timed       int       `default:"4" help:"Epochs of timed runs. The mean excludes the first epoch."`
	Turns       int       `default:"1" help:"Repetitions of each timed run."`
	Instance    string    `default:"c5n.large" help:"Price of this machine for measured costs. Value: EC2 instance type or dollars an hour."`
	GhostPower  float64   `default:"0.5" help:"Exponent P of the scaling of ghost rows in modelled clusters. With N times as many servers, each has N^-P of the ghost rows."`
	Work        string    `default:"build/dorylus" placeholder:"DIR" help:"Folder for results and synthetic graphs. Existing results are reused."`
	Hours       float64   `default:"0" help:"Hours after which no further training starts; 0: no limit."`
	HTML        string    `name:"html" placeholder:"FILE" help:"HTML file for the tables and charts, self-contained."`
	Train       []string  `arg:"" optional:"" help:"Flags of train, after --."`

	Origin string `kong:"-"` // which machine, for the page
}

// bench is a running reproduction.
type bench struct {
	Options
	graphs  []*graphOf
	archive *trials.Archive
	rival   trials.Runner     // of outside programs
	price   bill.Instance     // of this machine
	lacks   map[string]string // by backend: the reason why it does not run here
	without []string          // of these, the ones that the current part requested
}

// Run makes the selected parts and writes each to w when it is finished.
func (o Options) Run(ctx context.Context, w io.Writer) error {
	b, err := o.Book()
	if err != nil {
		return err
	}
	return trials.Run(ctx, w, op, o.Origin, o.HTML, b)
}

// Book returns the selected parts. It makes missing synthetic graphs.
func (o Options) Book() (*trials.Book, error) { return (&bench{Options: o}).book() }

func (b *bench) book() (*trials.Book, error) {
	parts, err := b.open()
	return &trials.Book{Name: "Dorylus", Title: "Dorylus's tables and figures", Keys: keys(), Parts: parts, Archive: b.archive}, err
}

// open checks the options and prepares the graphs.
func (b *bench) open() (parts []trials.Part, err error) {
	if b.HTML != "" {
		if err := page.Check(op, b.HTML); err != nil {
			return nil, err
		}
	}
	if parts = b.parts(); len(b.Only) > 0 {
		if parts, err = trials.Choose(op, parts, b.Only); err != nil {
			return nil, err
		}
	}
	if b.Ranks < 2 || b.Hidden < 1 || b.Seeds < 1 || b.Epochs < 2 || b.Timed < 2 || b.Turns < 1 || !(b.GhostPower >= 0 && b.GhostPower <= 1) {
		return nil, fault.New(fault.Usage, op, "", "--ranks=%d --hidden=%d --seeds=%d --epochs=%d --timed=%d --turns=%d --ghost-power=%g",
			b.Ranks, b.Hidden, b.Seeds, b.Epochs, b.Timed, b.Turns, b.GhostPower).
			Then("it takes a seed, a turn, a unit, 2 epochs and ranks or more, and a power from 0 to 1")
	}
	if b.price, err = bill.ParseInstance(b.Instance); err != nil {
		return nil, err
	}
	b.lacks, b.rival = map[string]string{}, pytorch{}
	if b.archive, err = trials.NewArchive(op, filepath.Join(b.Work, "results"), b.Hours); err != nil {
		return nil, err
	}
	return parts, b.findGraphs()
}

// flags returns the common flags of all trainings of a network.
func (b *bench) flags(model string, more ...string) []string {
	list := append(words("--servers 1 --dropout 0 --checkpoint-every off"), "--model", model, "--hidden", text(b.Hidden), "--partitioner", b.Partitioner)
	return append(append(list, b.Train...), more...)
}

func words(s string) []string { return strings.Fields(s) }
