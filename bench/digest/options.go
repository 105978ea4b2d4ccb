package digest

import "siafu/bench/trials"

const op = "bench digest"

// Options are the options of bench digest.
type Options struct {
	Data    []string `placeholder:"DIR" help:"Dataset folders. Empty: synthetic graphs with the statistics of Flickr, Reddit, ogbn-arxiv and ogbn-products, generated at --scale in --work."`
	Systems []string `help:"Systems to compare. Empty: all."`
	Ranks   []int    `default:"4" help:"Graph ranks, each on its own emulated host where links are limited. Figure 5 uses other numbers of ranks."`
	Models  []string `default:"gcn,gat" help:"Networks of table 1. Figure 3 uses the first one, figure 8 uses gat."`
	Rates   []string `default:"200mbit,1gbit,10gbit" help:"Link rates of the hosts. Tables use the first one."`
	Scale   float64  `default:"0.05" help:"Factor for vertices and edges of synthetic graphs."`

	trials.Options `kong:"embed,set='parts=table1, table2, table3, figure3, figure4, figure5, figure6, figure7, figure8, table4, figure9, figure10, theorem1, figure11, accuracy, links',set='all=all but accuracy',set='seeds=5',set='epochs=',set='timed=21',set='work=build/digest'"`
}

// Book returns the selected parts. It makes missing synthetic graphs.
func (o Options) Book() (*trials.Book, error) { return (&bench{Options: o}).book() }

// book checks the options and prepares the graphs.
func (b *bench) book() (book *trials.Book, err error) {
	if b.systems, err = chosen(b.Systems); err != nil {
		return nil, err
	}
	if b.rates, err = trials.Settings(op, b.Ranks, b.Models, b.Rates); err != nil {
		return nil, err
	}
	book, err = b.Open(op, trials.Book{Name: "DIGEST", Title: "DIGEST's tables and figures", Keys: b.keys(), Parts: b.parts()})
	if err != nil {
		return nil, err
	}
	b.graphs, err = trials.GivenOr(b.Data, b.Work, b.Scale, SyntheticGraphs()...)
	return book, err
}

// SyntheticGraphs lists the graphs of table 3, by their names in package generate.
func SyntheticGraphs() []string {
	return []string{"flickr", "reddit-small", "ogbn-arxiv", "ogbn-products"}
}
