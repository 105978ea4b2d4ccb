package sat

import (
	"slices"
	"strings"

	"siafu/bench/digest"
	"siafu/bench/trials"
	"siafu/halo/predict"
	"siafu/internal/fault"
)

const op = "bench sat"

// Options are the options of bench sat.
type Options struct {
	Data   []string `placeholder:"DIR" help:"Dataset folders. Empty: synthetic graphs with the statistics of Flickr, Reddit, ogbn-arxiv and ogbn-products, generated at --scale in --work."`
	Kinds  []string `help:"Values of --predict to compare. Empty: all, with an additional row for the algorithm of the paper."`
	Ranks  []int    `default:"4,8" help:"Graph ranks of table 2. Other parts use the first number."`
	Models []string `default:"gcn,gat" help:"Networks of table 2 and figure 3. Other parts use the first one; table 4 uses gcn and gcnii."`
	Rates  []string `default:"200mbit,1gbit,10gbit" help:"Link rates of the hosts in figure 4. Table 5 uses the first one."`
	Scale  float64  `default:"0.05" help:"Factor for vertices and edges of synthetic graphs."`

	trials.Options `kong:"embed,set='parts=figure1, table1, table2, table3, table4, table5, figure3, figure4, figure5a, figure5b, figure5c, theorem',set='all=all',set='seeds=5',set='epochs=',set='timed=21',set='work=build/sat'"`
}

// Book returns the selected parts. It makes missing synthetic graphs.
func (o Options) Book() (book *trials.Book, err error) {
	b := &bench{Options: o, refusals: map[string]error{}}
	if b.kinds, err = chosen(b.Kinds); err != nil {
		return nil, err
	}
	if b.rates, err = trials.Settings(op, b.Ranks, b.Models, b.Rates); err != nil {
		return nil, err
	}
	book, err = b.Open(op, trials.Book{Name: "SAT", Title: "SAT's tables and figures", Keys: b.keys(), Parts: b.parts()})
	if err != nil {
		return nil, err
	}
	b.graphs, err = trials.GivenOr(b.Data, b.Work, b.Scale, digest.SyntheticGraphs()...)
	return book, err
}

// chosen returns the requested values of --predict; for an empty list all, with an example of
// each parameter. A value may have parameters after its name.
func chosen(requested []string) (list []string, err error) {
	var names []string
	for _, e := range predict.Choices() {
		if e.Name == predict.Off {
			continue
		}
		names = append(names, e.Name)
		if strings.Contains(e.Form, ":") {
			e.Name += ":0.1"
		}
		list = append(list, e.Name)
	}
	if len(requested) == 0 {
		return list, nil
	}
	for _, kind := range requested {
		if name, _, _ := strings.Cut(kind, ":"); !slices.Contains(names, name) {
			return nil, fault.New(fault.Usage, op, "", "--kinds has %q", kind).Then("choose from %s", strings.Join(names, ", "))
		}
	}
	return requested, nil
}
