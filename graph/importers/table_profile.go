package importers

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"siafu/graph"
	"siafu/graph/fault"
)

// Limits of what columns become unasked and on request.
const (
	fewValues     = 100     // different texts that make a column one of categories
	mostValues    = 1 << 16 // of a column that was asked to be one
	hashedColumns = 64      // features of a hashed column
	wordColumns   = 1000    // features of a column of words
)

// profile is what one pass has seen of a column.
type profile struct {
	rows, numbers int64
	empty, absent gap // cells without text; those that say NA and the like
	odd           gap // cells that are neither
	commas        gap // of them, those that are numbers with a comma for the point
	squares       float64
	most          int // how many values are kept; beyond it nothing is
	values        map[string]bool
	words         map[string]int64 // nil: not asked for
}

// newProfile is the profile of a column of which the user has asked this.
func newProfile(asked string) *profile {
	p := &profile{most: fewValues, values: map[string]bool{}}
	if asked == graph.CategoryColumn {
		p.most = mostValues
	}
	if asked == graph.WordsColumn {
		p.words = map[string]int64{}
	}
	return p
}

// gap counts cells and keeps where the first of them was.
type gap struct {
	count, at int64
	value     []byte
}

func (g *gap) add(at int64, value []byte) {
	if g.count++; g.count == 1 {
		g.at, g.value = at, bytes.Clone(value)
	}
}

// isAbsent tells whether a cell of a column of numbers says that it has none.
func isAbsent(cell []byte) bool {
	switch string(cell) {
	case "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "-", `\N`:
		return true
	}
	return false
}

// number reads a cell that is a finite number as float32.
func number(cell []byte) (float64, bool) {
	x, ok := parseFloat(cell)
	return x, ok && math.Abs(x) <= math.MaxFloat32
}

// add takes in one cell.
func (p *profile) add(at int64, cell []byte) {
	p.rows++
	x, isNumber := 0.0, false
	switch {
	case len(cell) == 0:
		p.empty.add(at, cell)
		return
	case isAbsent(cell):
		p.absent.add(at, cell)
	default:
		if x, isNumber = number(cell); isNumber {
			p.numbers++
			p.squares += x * x
		} else {
			p.odd.add(at, cell)
			if _, ok := parseFloat(bytes.Replace(cell, []byte{','}, []byte{'.'}, 1)); ok {
				p.commas.add(at, cell)
			}
		}
	}
	if len(p.values) <= p.most && !p.values[string(cell)] {
		p.values[string(cell)] = true
	}
	if p.words != nil {
		for _, w := range debWords(string(cell)) {
			p.words[w]++
		}
	}
}

// kind is what the column becomes; why, if not "", is why it becomes nothing. asked is
// what the user has asked for, "" for nothing.
func (p *profile) kind(t *tableFile, column int, asked string) (kind, why string, err error) {
	switch filled := p.rows - p.empty.count - p.absent.count; {
	case asked == graph.CategoryColumn && len(p.values) > p.most:
		return "", "", fault.New(fault.Data, t.op, t.path, "column %d (%s): it has more than %d values", column+1, t.names[column], p.most).
			Then("take it with --hash or --words")
	case asked != "":
		return asked, "", nil
	case filled == 0:
		return "", "it is empty", nil
	case p.numbers == filled:
		return graph.NumberColumn, "", nil
	case 2*p.commas.count > filled:
		return "", "", t.fault(p.commas.at, column, p.commas.value, "has a comma for its decimal point").Then("write numbers with a point")
	case 2*p.numbers > filled:
		return "", "", t.fault(p.odd.at, column, p.odd.value, "is no number (of 32 bits), as %d other cells of the column are", p.numbers).
			Then("mend it, or take the column with --categories %s", t.names[column])
	case len(p.values) <= p.most && 2*int64(len(p.values)) <= p.rows:
		return graph.CategoryColumn, "", nil
	}
	return "", "it is text of many values; --categories, --hash or --words take it", nil
}

// names are the values of a category, or the most frequent of words, as features.
func (p *profile) names(kind string, vocabulary int) []string {
	switch kind {
	case graph.CategoryColumn:
		return sortedValues(p.values)
	case graph.WordsColumn:
		return mostFrequent(p.words, vocabulary)
	}
	return nil
}

// sortedValues are the keys in ascending order: of numbers, where all are.
func sortedValues(values map[string]bool) []string {
	names := make([]string, 0, len(values))
	numeric := true
	for v := range values {
		_, ok := number([]byte(v))
		numeric = numeric && ok
		names = append(names, v)
	}
	slices.Sort(names)
	if numeric {
		slices.SortStableFunc(names, func(a, b string) int {
			x, _ := number([]byte(a))
			y, _ := number([]byte(b))
			return cmp.Compare(x, y)
		})
	}
	return names
}
