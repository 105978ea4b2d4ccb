package neutronstar

import (
	"slices"

	"siafu/bench/trials"
	"siafu/internal/fault"
)

const op = "bench neutronstar"

// Options are the options of bench neutronstar.
type Options struct {
	Data        []string `placeholder:"DIR" help:"Dataset folders. Empty: a synthetic graph with the statistics of Reddit, generated at --scale in --work."`
	Models      []string `default:"gcn,gin,gat" help:"Networks to train."`
	Hosts       []int    `default:"4,2,8" help:"Numbers of emulated hosts, with one rank each. All tables but hosts use the first one."`
	Rates       []string `default:"200mbit,1gbit,10gbit" help:"Link rates of the hosts. Table hosts uses the first one."`
	Scale       float64  `default:"0.05" help:"Factor for vertices and edges of the synthetic graph."`
	Partitioner string   `default:"multilevel" help:"Partitioner of all trainings."`
	Epochs      int      `default:"11" help:"Epochs of each training. Means exclude the first epoch."`
	Turns       int      `default:"2" help:"Repetitions of each training, interleaved. Tables have the minimum."`
	Work        string   `default:"build/neutronstar" placeholder:"DIR" help:"Folder for results and the synthetic graph. Existing results are reused."`
	Hours       float64  `default:"0" help:"Hours after which trainings stop; 0: no limit."`
	HTML        string   `name:"html" placeholder:"FILE" help:"HTML file for the tables, self-contained."`
	Only        []string `help:"Tables to create. Values: process, links, hosts. Empty: all."`
	Train       []string `arg:"" optional:"" help:"Flags of train, after --."`
}

type bench struct {
	Options
	study trials.Study
}

// Book returns the selected parts. It makes the synthetic graph if it is missing.
func (o Options) Book() (*trials.Book, error) {
	if len(o.Hosts) == 0 || slices.Min(o.Hosts) < 2 || len(o.Models) == 0 || len(o.Rates) == 0 || o.Epochs < 2 || o.Turns < 1 {
		return nil, fault.New(fault.Usage, op, "", "--hosts=%v --models=%v --rates=%v --epochs=%d --turns=%d", o.Hosts,
			o.Models, o.Rates, o.Epochs, o.Turns).
			Then("set at least one network, rate and turn, and 2 or more hosts and epochs")
	}
	if err := trials.CheckRates(o.Rates); err != nil {
		return nil, err
	}
	ready := map[place]bool{}
	b := &bench{Options: o, study: trials.Study{Options: trials.Options{Partitioner: o.Partitioner, Seeds: 1, Epochs: o.Epochs,
		Timed: o.Epochs, Turns: o.Turns, Work: o.Work, Hours: o.Hours, HTML: o.HTML, Only: o.Only, Train: o.Train},
		Wrap: func(r trials.Runner) trials.Runner { return partitioned{r, ready} }}}
	book, err := b.study.Options.Open(op,
		trials.Book{Name: "NeutronStar", Title: "NeutronStar's handling of dependencies", Parts: b.parts()})
	if err == nil {
		b.study.Graphs, err = trials.GivenOr(o.Data, o.Work, o.Scale, "reddit-small")
	}
	return book, err
}
