package sat

import (
	"slices"
	"strings"

	"siafu/bench/trials"
	"siafu/halo/predict"
	"siafu/internal/fault"
)

const op = "bench sat"

// Options are the options of bench sat.
type Options struct {
	Kinds        []string `help:"Values of --predict to compare. Empty: all, with an additional row for the algorithm of the paper."`
	trials.Study `kong:"embed,set='ranks=4,8',set='single=Parts other than table 2 use the first number.',set='work=build/sat',set='parts=figure1, table1, table2, table3, table4, table5, figure3, figure4, figure5a, figure5b, figure5c, theorem'"`
}

type bench struct {
	Options
	kinds []string // of predictions
}

// Book returns the selected parts. It makes missing synthetic graphs.
func (o Options) Book() (_ *trials.Book, err error) {
	b := &bench{Options: o}
	if b.kinds, err = chosen(b.Kinds); err != nil {
		return nil, err
	}
	b.Reference = systems("exact")[0]
	return b.Open(op, trials.Book{Name: "SAT", Title: "SAT's tables and figures", Keys: b.keys(), Parts: b.parts()})
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
