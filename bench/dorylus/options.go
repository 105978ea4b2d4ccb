package dorylus

import (
	"strings"

	"siafu/bench/trials"
	"siafu/internal/fault"
	"siafu/lambda/bill"
)

const op = "bench dorylus"

// Options are the options of bench dorylus.
type Options struct {
	Data       []string  `placeholder:"DIR" help:"Datasets that replace synthetic graphs, as NAME=DIR. NAME: reddit-small, reddit-large, amazon or friendster; DIR alone: a graph that is not in the paper. Other graphs are omitted."`
	Scale      []float64 `default:"0" help:"Factor for synthetic graphs: one, or one for each of the four. It multiplies vertices and edges. 0: 0.05, 0.01, 0.01, 0.002, at which a GCN has about the paper's accuracies."`
	Ranks      int       `default:"2" help:"Graph ranks of all trainings. One parameter server is added."`
	Hidden     int       `default:"64" help:"Width of the hidden layer."`
	Instance   string    `default:"c5n.large" help:"Price of this machine for measured costs. Value: EC2 instance type or dollars an hour."`
	GhostPower float64   `default:"0.5" help:"Exponent P of the scaling of ghost rows in modelled clusters. With N times as many servers, each has N^-P of the ghost rows."`

	trials.Options `kong:"embed,set='parts=table1, table2, table3, figure5, figure6, section7.3, table4, figure7, figure8, section7.4, figure9, table5, figure10a, figure10b, model',set='seeds=1',set='epochs=Runs with bounded asynchrony have twice this number.',set='timed=4',set='work=build/dorylus'"`
}

type bench struct {
	Options
	graphs []*graphOf
	rival  trials.Runner // of outside programs
	price  bill.Instance // of this machine
	short  []string      // reasons why graphs do not fit on GPUs in the current part
}

// Book returns the selected parts. It makes missing synthetic graphs.
func (o Options) Book() (*trials.Book, error) { return (&bench{Options: o}).book() }

// book checks the options and prepares the graphs.
func (b *bench) book() (book *trials.Book, err error) {
	if b.Ranks < 2 || b.Hidden < 1 || !(b.GhostPower >= 0 && b.GhostPower <= 1) {
		return nil, fault.New(fault.Usage, op, "", "--ranks=%d --hidden=%d --ghost-power=%g", b.Ranks, b.Hidden, b.GhostPower).
			Then("set 2 or more ranks, 1 or more units, and a power from 0 to 1")
	}
	if b.price, err = bill.ParseInstance(b.Instance); err != nil {
		return nil, err
	}
	b.rival = pytorch{}
	book, err = b.Open(op, trials.Book{Name: "Dorylus", Title: "Dorylus's tables and figures", Keys: groups, Parts: b.parts()})
	if err != nil {
		return nil, err
	}
	return book, b.findGraphs()
}

// flags returns the common flags of all trainings of a network.
func (b *bench) flags(model string, more ...string) []string {
	list := append(words("--servers 1 --dropout 0 --checkpoint-every off"), "--model", model, "--hidden", text(b.Hidden),
		"--partitioner", b.Partitioner)
	return append(append(list, b.Train...), more...)
}

func words(s string) []string { return strings.Fields(s) }
