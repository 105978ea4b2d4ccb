package digest

import (
	"slices"

	"siafu/bench/trials"
)

const op = "bench digest"

// Options are the options of bench digest.
type Options struct {
	Systems      []string `help:"Systems to compare. Empty: all."`
	trials.Study `kong:"embed,set='single=Figure 5 uses 1, 2, 4 and 8.',set='work=build/digest',set='parts=table1, table2, table3, figure3, figure4, figure5, figure6, figure7, figure8, table4, figure9, figure10, theorem1, figure11, accuracy, links',set='all=all but accuracy'"`
}

type bench struct {
	Options
	systems []trials.System
}

// Book returns the selected parts. It makes missing synthetic graphs.
func (o Options) Book() (*trials.Book, error) { return (&bench{Options: o}).book() }

// book checks the options and prepares the graphs.
func (b *bench) book() (_ *trials.Book, err error) {
	if b.systems, err = chosen(b.Systems); err != nil {
		return nil, err
	}
	b.Reference = b.systems[0]
	return b.Open(op, trials.Book{Name: "DIGEST", Title: "DIGEST's tables and figures", Keys: b.keys(), Parts: b.parts()})
}

// keys has the name of each line of the figures.
func (b *bench) keys() (list []string) {
	for _, s := range b.systems {
		list = append(list, s.Name)
	}
	return list
}

// only returns the selected systems with these names.
func (b *bench) only(names ...string) []trials.System {
	return slices.DeleteFunc(slices.Clone(b.systems), func(s trials.System) bool { return !slices.Contains(names, s.Name) })
}
