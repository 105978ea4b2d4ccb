// Package all makes the tables and figures of all papers that siafu reproduces, one after
// the other, as text and as one page.
package all

import (
	"context"
	"io"
	"path/filepath"

	"siafu/bench/digest"
	"siafu/bench/dorylus"
	"siafu/bench/neutronstar"
	"siafu/bench/sat"
	"siafu/bench/spot"
	"siafu/bench/trials"
	"siafu/internal/fault"
	"siafu/ranks/report/page"
)

const op = "bench all"

// Options are the options of bench all.
type Options struct {
	Data  []string `placeholder:"DIR" help:"Datasets that replace synthetic graphs, as DIR or NAME=DIR. NAME is a graph of Dorylus."`
	Scale float64  `default:"0" help:"Factor for vertices and edges of synthetic graphs. 0: the default of each benchmark. The minimum for DIGEST, NeutronStar and SAT is 0.01."`
	Seeds int      `default:"1" help:"Number of seeds to average, from 1."`
	Hours float64  `default:"1" help:"Hours after which no further training starts; 0: no limit. The limit for trainings of Dorylus is half of this, for trainings of NeutronStar 0.6 of this."`
	Work  string   `default:"build/all" placeholder:"DIR" help:"Folder for results and synthetic graphs. Existing results are reused."`
	HTML  string   `name:"html" placeholder:"FILE" help:"HTML file. Empty: all.html in --work."`
}

// Run makes all parts and writes each to w when it is finished. A part that this machine
// cannot make is a line with the reason.
func (o Options) Run(ctx context.Context, w io.Writer) error {
	books, err := o.Books()
	if err != nil {
		return err
	}
	return trials.Run(ctx, w, op, o.HTML, books...)
}

// Books returns the completed books of all papers, and the path of the page.
func (o *Options) Books() ([]*trials.Book, error) {
	if o.Scale < 0 || o.Hours < 0 {
		return nil, fault.New(fault.Usage, op, "", "--scale=%g --hours=%g", o.Scale, o.Hours).Then("set 0 or more")
	}
	if o.HTML == "" {
		o.HTML = filepath.Join(o.Work, "all.html")
	}
	if err := page.Check(op, o.HTML); err != nil {
		return nil, err
	}
	var books []*trials.Book
	for _, open := range []func() (*trials.Book, error){o.dorylus().Book, o.neutronstar().Book, o.digest().Book, o.sat().Book, o.spot().Book} {
		b, err := open()
		if err != nil {
			return nil, err
		}
		b.GoOn = true
		books = append(books, b)
	}
	return books, nil
}

func (o *Options) dorylus() dorylus.Options {
	return dorylus.Options{
		Data: o.Data, Scale: []float64{o.Scale}, Ranks: 2, Hidden: 64, Instance: "c5n.large", GhostPower: 0.5,
		Options: o.common("dorylus", trials.Options{Epochs: 100, Timed: 4, Hours: o.Hours / 2}),
	}
}

// leastOfReddit is a scale at which the synthetic graph of Reddit has enough pairs of vertices
// for its edges.
const leastOfReddit = 0.01

// scale returns the scale of synthetic graphs of DIGEST, NeutronStar and SAT.
func (o *Options) scale() float64 {
	if o.Scale == 0 {
		return 0.05
	}
	return max(o.Scale, leastOfReddit)
}

// neutronstar reduces the time of neutronstar's tables: one link, and two numbers of hosts.
func (o *Options) neutronstar() neutronstar.Options {
	return neutronstar.Options{
		Data: dorylus.Folders(o.Data), Scale: o.scale(), Models: []string{"gcn", "gin", "gat"}, Hosts: []int{4, 2}, Rates: []string{"200mbit"},
		Partitioner: "multilevel", Epochs: 6, Turns: 1, Hours: 0.6 * o.Hours, Work: filepath.Join(o.Work, "neutronstar"), Train: []string{"--hidden", "64"},
	}
}

// digest reduces the time of digest's tables: fewer epochs and one network.
func (o *Options) digest() digest.Options {
	return digest.Options{
		Data: dorylus.Folders(o.Data), Scale: o.scale(), Ranks: []int{4}, Models: []string{"gcn"}, Rates: []string{"200mbit"},
		Options: o.common("digest", trials.Options{Epochs: 60, Timed: 11, Hours: o.Hours, Train: []string{"--hidden", "64"}}),
	}
}

// sat reduces the time of sat's tables: fewer epochs and one network.
func (o *Options) sat() sat.Options {
	return sat.Options{
		Data: dorylus.Folders(o.Data), Scale: o.scale(), Ranks: []int{4}, Models: []string{"gcn"}, Rates: []string{"200mbit"},
		Options: o.common("sat", trials.Options{Epochs: 60, Timed: 11, Hours: o.Hours, Train: []string{"--hidden", "64"}}),
	}
}

// spot reduces the simulations per point.
func (o *Options) spot() spot.Options { return spot.Options{Runs: 100, Zones: 3, Seed: 1} }

// common completes the options of one book.
func (o *Options) common(name string, with trials.Options) trials.Options {
	with.Partitioner, with.Seeds, with.Turns, with.Work = "multilevel", o.Seeds, 1, filepath.Join(o.Work, name)
	return with
}
