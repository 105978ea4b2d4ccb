package digest

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"siafu/bench/trials"
	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/ranks/plan"
	"siafu/ranks/report/page"
)

const op = "bench digest"

// Options are the options of bench digest.
type Options struct {
	Data        []string `placeholder:"DIR" help:"Dataset folders. Empty: synthetic graphs with the statistics of Flickr, Reddit, ogbn-arxiv and ogbn-products, generated at --scale in --work."`
	Only        []string `help:"Tables and figures to create. Values: table1, figure3, figure4, figure5, figure6, figure7, figure8, table4, figure9, figure10, figure11, accuracy, links. Empty: all but accuracy."`
	Systems     []string `help:"Systems to compare. Empty: all."`
	Ranks       []int    `default:"4" help:"Graph ranks, each on its own emulated host where links are limited. Figure 5 uses other numbers of ranks."`
	Models      []string `default:"gcn,gat" help:"Networks of table 1. Figure 3 uses the first one, figure 8 uses gat."`
	Rates       []string `default:"200mbit,1gbit,10gbit" help:"Link rates of the hosts. Tables use the first one."`
	Partitioner string   `default:"multilevel" help:"Partitioner of all trainings."`
	Seeds       int      `default:"5" help:"Number of seeds to average, from 1."`
	Epochs      int      `default:"100" help:"Epochs of accuracy runs."`
	Timed       int      `default:"21" help:"Epochs of timed runs. The mean excludes the first epoch."`
	Turns       int      `default:"1" help:"Repetitions of each timed run."`
	Scale       float64  `default:"0.05" help:"Factor for vertices and edges of synthetic graphs."`
	Work        string   `default:"build/digest" placeholder:"DIR" help:"Folder for results and synthetic graphs. Existing results are reused."`
	Hours       float64  `default:"0" help:"Hours after which no further training starts; 0: no limit."`
	HTML        string   `name:"html" placeholder:"FILE" help:"HTML file for the tables, self-contained."`
	Train       []string `arg:"" optional:"" help:"Flags of train, after --."`

	Origin string `kong:"-"` // which machine, for the page
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
func (o Options) Book() (*trials.Book, error) {
	return (&bench{Options: o}).book()
}

func (b *bench) book() (*trials.Book, error) {
	parts, err := b.open()
	return &trials.Book{Name: "DIGEST", Title: "DIGEST's tables and figures", Parts: parts, Archive: b.archive}, err
}

// open checks the options and prepares the graphs.
func (b *bench) open() (parts []trials.Part, err error) {
	o := b.Options
	if o.HTML != "" {
		if err := page.Check(op, o.HTML); err != nil {
			return nil, err
		}
	}
	if parts, err = b.chosenParts(); err != nil {
		return nil, err
	}
	if b.systems, err = chosen(o.Systems); err != nil {
		return nil, err
	}
	if o.Seeds < 1 || o.Epochs < 2 || o.Timed < 2 || o.Turns < 1 || len(o.Ranks) == 0 || slices.Min(o.Ranks) < 2 || len(o.Models) == 0 || len(o.Rates) == 0 {
		return nil, fault.New(fault.Usage, op, "", "--seeds=%d --epochs=%d --timed=%d --turns=%d --ranks=%v --models=%v --rates=%v",
			o.Seeds, o.Epochs, o.Timed, o.Turns, o.Ranks, o.Models, o.Rates).
			Then("set at least one seed, turn, network and rate, and 2 or more epochs and ranks")
	}
	for _, text := range o.Rates {
		rate, err := plan.Bandwidth(text)
		if err != nil {
			return nil, err
		}
		b.rates = append(b.rates, rate)
	}
	if b.archive, err = trials.NewArchive(op, filepath.Join(o.Work, "results"), o.Hours); err != nil {
		return nil, err
	}
	return parts, b.findGraphs()
}

// syntheticGraphs lists the graphs of table 3.
var syntheticGraphs = []string{"flickr", "reddit-small", "ogbn-arxiv", "ogbn-products"}

// findGraphs lists the graphs to train on, and makes missing synthetic ones.
func (b *bench) findGraphs() (err error) {
	if b.graphs, err = trials.Given(b.Data); len(b.Data) > 0 {
		return err
	}
	for _, like := range syntheticGraphs {
		g, err := trials.Generated(b.Work, generate.Options{Like: like, Name: fmt.Sprintf("%s-%g", like, b.Scale), Scale: b.Scale, Seed: 1})
		if err != nil {
			return err
		}
		b.graphs = append(b.graphs, g)
	}
	return nil
}
