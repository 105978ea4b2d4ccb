package commands

import (
	"context"
	"io"
	"path/filepath"
	"time"

	"siafu/bench/digest"
	"siafu/bench/dorylus"
	"siafu/bench/neutronstar"
	"siafu/bench/sat"
	"siafu/bench/spot"
	"siafu/bench/trials"
	"siafu/internal/fault"
	"siafu/ranks/report/chart"
)

const op = "bench all"

// allOptions are the options of bench all, which makes the tables and figures of all papers, one after
// the other, as text and as one page.
type allOptions struct {
	Data  []string `placeholder:"DIR" help:"Datasets that replace synthetic graphs, as DIR or NAME=DIR. NAME is a graph of Dorylus."`
	Scale float64  `default:"0" help:"Factor for vertices and edges of synthetic graphs. 0: the default of each benchmark. The minimum for DIGEST, NeutronStar and SAT is 0.01."`
	Seeds int      `default:"1" help:"Number of seeds to average, from 1."`
	Hours float64  `default:"1" help:"Hours after which trainings stop; 0: no limit. The limit for trainings of Dorylus is half of this, for trainings of NeutronStar 0.6 of this."`
	Work  string   `default:"build/all" placeholder:"DIR" help:"Folder for results and synthetic graphs. Existing results are reused."`
	HTML  string   `name:"html" placeholder:"FILE" help:"HTML file. Empty: all.html in --work."`
}

// Run makes all parts and writes each to w when it is finished. A part that this machine
// cannot make is a line with the reason.
func (o allOptions) Run(ctx context.Context, w io.Writer) error {
	books, err := o.Books()
	if err != nil {
		return err
	}
	return trials.Run(ctx, w, op, o.HTML, books...)
}

// Books returns the completed books of all papers, and the path of the page.
func (o *allOptions) Books() ([]*trials.Book, error) {
	if o.Scale < 0 || o.Hours < 0 {
		return nil, fault.New(fault.Usage, op, "", "--scale=%g --hours=%g", o.Scale, o.Hours).Then("set 0 or more")
	}
	if o.HTML == "" {
		o.HTML = filepath.Join(o.Work, "all.html")
	}
	if err := chart.CheckPage(op, o.HTML); err != nil {
		return nil, err
	}
	scale := 0.05
	if o.Scale > 0 {
		scale = max(o.Scale, leastOfReddit)
	}
	data, short := dorylus.Folders(o.Data), []string{"--hidden", "64"}
	common := func(name string, epochs, timed int, hours float64, train []string) trials.Options {
		return trials.Options{Partitioner: "multilevel", Seeds: o.Seeds, Epochs: epochs, Timed: timed, Turns: 1,
			Work: filepath.Join(o.Work, name), Hours: hours, Train: train}
	}
	study := func(name string) trials.Study {
		return trials.Study{Data: data, Scale: scale, Ranks: []int{4}, Models: []string{"gcn"}, Rates: []string{"200mbit"},
			Options: common(name, 60, 11, o.Hours, short)}
	}
	start := time.Now()
	// To reduce their time, tables have fewer links, networks, hosts, epochs and simulations than by
	// default.
	var books []*trials.Book
	for _, one := range []interface{ Book() (*trials.Book, error) }{
		dorylus.Options{Data: o.Data, Scale: []float64{o.Scale}, Ranks: 2, Hidden: 64, Instance: "c5n.large", GhostPower: 0.5,
			Options: common("dorylus", 100, 4, o.Hours/2, nil)},
		neutronstar.Options{Data: data, Scale: scale, Models: []string{"gcn", "gin", "gat"}, Hosts: []int{4, 2}, Rates: []string{"200mbit"},
			Partitioner: "multilevel", Epochs: 6, Turns: 1, Hours: 0.6 * o.Hours, Work: filepath.Join(o.Work, "neutronstar"), Train: short},
		digest.Options{Study: study("digest")}, sat.Options{Study: study("sat")},
		spot.Options{Runs: 100, Zones: 3, Seed: 1},
	} {
		b, err := one.Book()
		if err != nil {
			return nil, err
		}
		b.GoOn = true
		b.Since(start) // generating the graphs of a book takes time of all
		books = append(books, b)
	}
	return books, nil
}

// leastOfReddit is a scale at which the synthetic graph of Reddit has enough pairs of vertices
// for its edges.
const leastOfReddit = 0.01
