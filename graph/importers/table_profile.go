package importers

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"siafu/graph"
)

// Limits of columns' features, by default and on request.
const (
	fewValues     = 100     // maximum different texts of a column of categories
	mostValues    = 1 << 16 // of a column requested as categories
	hashedColumns = 64      // features of a hashed column
	wordColumns   = 1000    // features of a column of words
)

// profile has the statistics of one pass over a column.
type profile struct {
	rows, numbers int64
	empty, absent gap // cells without text; cells such as NA
	odd           gap // other cells
	commas        gap // other cells that are numbers with a decimal comma
	codes         gap // numbers with leading zeros
	dates         dateProfile
	squares       float64
	most          int // maximum number of stored values; beyond it none are
	values        map[string]bool
	words         map[string]int64 // nil: not requested
}

// newProfile returns the profile of a column with the user's request. unit is the unit of
// dates, "" if the file has none.
func newProfile(asked, unit string) *profile {
	p := &profile{most: fewValues, values: map[string]bool{}, dates: dateProfile{unit: unit}}
	if asked == graph.CategoryColumn {
		p.most = mostValues
	}
	if asked == graph.WordsColumn {
		p.words = map[string]int64{}
	}
	return p
}

// gap counts cells and records the position of the first.
type gap struct {
	count, at int64
	value     []byte
}

func (g *gap) add(at int64, value []byte) {
	if g.count++; g.count == 1 {
		g.at, g.value = at, bytes.Clone(value)
	}
}

// isAbsent reports whether a cell of a column of numbers marks a missing number.
func isAbsent(cell []byte) bool {
	switch string(cell) {
	case "NA", "N/A", "NaN", "nan", "NaT", "NULL", "null", "None", "-", `\N`:
		return true
	}
	return false
}

// number reads a cell that is a finite number as float32.
func number(cell []byte) (float64, bool) {
	x, ok := parseFloat(cell)
	return x, ok && math.Abs(x) <= math.MaxFloat32
}

// add reads one cell.
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
		x, isNumber = number(cell)
		p.dates.add(at, cell, x, isNumber)
		if isNumber {
			p.numbers++
			p.squares += float64(x * x)
			if hasLeadingZero(cell) {
				p.codes.add(at, cell)
			}
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

// kind returns the kind of the column's features, or in why the reason for none. asked is the
// user's request, "" for none.
func (p *profile) kind(t *tableFile, column int, requested string) (kind, reason string) {
	switch filled := p.filled(); {
	case requested == graph.CategoryColumn && len(p.values) > p.most:
		t.require(false, "import it with --hash or --words", "%s: it has more than %d different values", t.called(column), p.most)
	case requested == graph.DateColumn && filled > 0:
		if _, bad := p.dateFormat(t, column); bad != nil {
			check(bad)
		}
		return requested, ""
	case requested != "" && requested != graph.DateColumn:
		return requested, ""
	case filled == 0:
		return "", "it is empty"
	case p.dates.dates.count == filled:
		if _, bad := p.dateFormat(t, column); bad != nil {
			return "", bad.Detail + "; " + bad.Remedy
		}
		return graph.DateColumn, ""
	case p.numbers == filled:
		return graph.NumberColumn, ""
	case 2*p.commas.count > filled:
		check(t.fault(p.commas.at, column, p.commas.value, "has a decimal comma").Then("write numbers with a decimal point"))
	case 2*p.numbers > filled:
		check(t.fault(p.odd.at, column, p.odd.value, "is not a float32 number, but %d other cells of the column are", p.numbers).
			Then("write a decimal number, or import the column with --categories %s", t.names[column]))
	case len(p.values) <= p.most && 2*int64(len(p.values)) <= p.rows:
		return graph.CategoryColumn, ""
	}
	return "", p.whyText(t, column)
}

func (p *profile) filled() int64 { return p.rows - p.empty.count - p.absent.count }

// whyText explains why a column of text is not a feature, and which flags make it one.
func (p *profile) whyText(t *tableFile, column int) string {
	if d := &p.dates; d.dates.count > 0 {
		return fmt.Sprintf("%d of %d cells are dates, and %.60q in %s %d is not: %s", d.dates.count, p.filled(), d.others.value, t.unit, d.others.at, writeDates)
	}
	if looksLikeDate(p.odd.value) {
		return fmt.Sprintf("%.60q in %s %d looks like a date in an unsupported format: %s", p.odd.value, t.unit, p.odd.at, writeDates)
	}
	many := fmt.Sprint(len(p.values))
	if len(p.values) > p.most {
		many = fmt.Sprint("more than ", p.most)
	}
	name := t.names[column]
	return fmt.Sprintf("it is text with %s different values, such as %.60q: import it with --words %s, --hash %s or --categories %s", many, p.odd.value, name, name, name)
}

// names returns the values of a category, or the most frequent words, as features.
func (p *profile) names(kind string) []string {
	switch kind {
	case graph.CategoryColumn:
		plain := make(map[string]bool, len(p.values))
		for v := range p.values {
			plain[plainNumber([]byte(v))] = true
		}
		return sortedValues(plain)
	case graph.WordsColumn:
		return mostFrequent(p.words)
	}
	return nil
}

// sortedValues returns the keys in ascending order, numeric if all are numbers.
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
