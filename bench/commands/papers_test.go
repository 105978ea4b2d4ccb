package commands

import (
	"fmt"
	"slices"
	"testing"
)

// item is a table or figure of a paper, with the part that reproduces it, or the reason for none.
type item struct{ name, part, none string }

// paper has the items of a paper, and the further parts of its book.
type book struct {
	chapter         string // before the numbers of tables and figures
	tables, figures int    // numbered from 1
	items           []item
	others          []string
}

func made(names ...string) (list []item) {
	for _, n := range names {
		list = append(list, item{name: n, part: n})
	}
	return list
}

var papers = map[string]book{
	"Dorylus": {"", 5, 10,
		append(made("table1", "table2", "table3", "table4", "table5", "figure5", "figure6", "figure7", "figure8", "figure9"),
			item{"figure1", "", "a drawing of the computation model"},
			item{"figure2", "", "a drawing of the architecture"},
			item{"figure3", "", "a drawing of the tasks"},
			item{"figure4", "", "a drawing of the pipeline"},
			item{"figure10", "figure10a", ""}, item{"figure10", "figure10b", ""}), []string{"section7.3", "section7.4", "model"}},
	"DIGEST": {"", 4, 11, append(made("table1", "table2", "table3", "table4", "figure3", "figure4", "figure5", "figure6", "figure7",
		"figure8", "figure9", "figure10", "figure11"),
		item{"figure1", "", "a drawing of distributed training"},
		item{"figure2", "", "a drawing of the overlap of exchange and computation"}), []string{"theorem1", "links"}},
	"Bamboo": {"3.", 7, 14, append(made("table3.1", "table3.2", "table3.3", "table3.4", "table3.5", "table3.6", "table3.7",
		"figure3.2", "figure3.3", "figure3.4", "figure3.11", "figure3.12", "figure3.13", "figure3.14"),
		item{"figure3.1", "", "a drawing of schedules, compared by TestGPipe and TestOneForwardOneBackward"},
		item{"figure3.5", "", "a drawing of the architecture"},
		item{"figure3.6", "", "a drawing of a worker; TestInstructions compares its instructions"},
		item{"figure3.7", "", "a drawing of dependencies"},
		item{"figure3.8", "", "a drawing of dependencies"},
		item{"figure3.9", "", "a drawing of a bubble, compared by TestFigure39"},
		item{"figure3.10", "", "a drawing of a merged schedule: here the stages of a rank have a list each"}),
		[]string{"failures", "systems"}},
}

// The page has a part for every table and figure of Dorylus, DIGEST and Bamboo, or a reason for none.
func TestPapers(t *testing.T) {
	o := allOptions{Scale: 0.0001, Seeds: 1, Work: t.TempDir()}
	o.Data = []string{"amazon=" + dataset(t)}
	books, err := o.Books()
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range papers {
		var parts []string
		for _, b := range books {
			for _, part := range b.Parts {
				if b.Name == name {
					parts = append(parts, part.Name)
				}
			}
		}
		listed := slices.Clone(p.others)
		for _, i := range p.items {
			if (i.part == "") == (i.none == "") {
				t.Errorf("%s, %s: a part or a reason, not both", name, i.name)
			}
			if i.part != "" {
				listed = append(listed, i.part)
			}
		}
		for kind, count := range map[string]int{"table": p.tables, "figure": p.figures} {
			for k := range count {
				if of := fmt.Sprint(kind, p.chapter, k+1); !slices.ContainsFunc(p.items, func(i item) bool { return i.name == of }) {
					t.Errorf("%s: %s is not listed", name, of)
				}
			}
		}
		slices.Sort(parts)
		slices.Sort(listed)
		if !slices.Equal(parts, listed) {
			t.Errorf("%s: the page has %v, the list %v", name, parts, listed)
		}
	}
}
