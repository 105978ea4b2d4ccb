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
	missing       gap // cells without a value
	odd           gap // other cells
	commas        gap // other cells that are numbers with a decimal comma
	thousands     gap // other cells that are numbers if commas separate thousands
	codes         gap // numbers with leading zeros
	dates         dateProfile
	squares       float64
	most          int              // maximum number of stored values; beyond it none are
	values        map[string]int32 // and the label with which a value occurs, or mixed
	words         map[string]int64 // nil: not requested
	numbering     numbering
	spans         []span // of the numbers, by label
	manyLabels    bool   // there are more labels than spans
}

// newProfile returns the profile of a column with the user's request. unit is the unit of
// dates, "" if the file has none.
func newProfile(asked, unit string) *profile {
	p := &profile{most: fewValues, values: map[string]int32{}, dates: dateProfile{unit: unit}}
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

// number reads a cell that is a finite number as float32.
func number(cell []byte) (float64, bool) {
	x, ok := parseFloat(cell)
	return x, ok && math.Abs(x) <= math.MaxFloat32
}

// add reads the cell of a row with a label, which classes number.
func (p *profile) add(at int64, cell []byte, label int32) {
	p.rows++
	if len(cell) == 0 {
		p.missing.add(at, cell)
		return
	}
	x, isNumber := number(cell)
	p.dates.add(at, cell, x, isNumber)
	if isNumber {
		p.addNumber(at, cell, x)
		p.addLabelled(x, label)
	} else {
		p.addOdd(at, cell)
	}
	p.addValue(cell, label)
	if p.words != nil {
		for _, w := range debWords(string(cell)) {
			p.words[w]++
		}
	}
}

func (p *profile) addNumber(at int64, cell []byte, x float64) {
	p.numbers++
	p.squares += float64(x * x)
	p.numbering.add(x)
	if hasLeadingZero(cell) {
		p.codes.add(at, cell)
	}
}

func (p *profile) addOdd(at int64, cell []byte) {
	p.odd.add(at, cell)
	if _, ok := parseFloat(bytes.Replace(cell, []byte{','}, []byte{'.'}, 1)); ok {
		p.commas.add(at, cell)
	}
	if writeNumber(cell, "") != "" {
		p.thousands.add(at, cell)
	}
}

// withoutThousands returns a number such as 14,197 or 1,234,567.5 without its separators, and other
// cells unchanged.
func withoutThousands(cell []byte) []byte {
	whole, _, _ := bytes.Cut(bytes.TrimLeft(cell, "+-"), []byte{'.'})
	for i, group := range bytes.Split(whole, []byte{','}) {
		if len(group) > 3 || len(group) == 0 || i > 0 && len(group) != 3 {
			return cell
		}
	}
	return bytes.ReplaceAll(cell, []byte{','}, nil)
}

// writeNumber returns the remedy for a cell that is no number: its number if commas separate
// thousands, else the given one.
func writeNumber(cell []byte, otherwise string) string {
	plain := withoutThousands(cell)
	if _, ok := parseFloat(plain); !ok || len(plain) == len(cell) {
		return otherwise
	}
	return fmt.Sprintf("write %s, or %s if the comma is a decimal point", plain, bytes.Replace(cell, []byte{','}, []byte{'.'}, 1))
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
	case 2*(p.thousands.count+p.numbers) > filled && p.thousands.count == p.odd.count:
		check(t.fault(p.thousands.at, column, p.thousands.value, "has a comma").Then("%s", writeNumber(p.thousands.value, "")))
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

func (p *profile) filled() int64 { return p.rows - p.missing.count }

// whyText explains why a column of text is not a feature, and which flags make it one.
func (p *profile) whyText(t *tableFile, column int) string {
	if d := &p.dates; d.dates.count > 0 {
		return fmt.Sprintf("%d of %d cells are dates, and %.60q in %s %d is not: %s", d.dates.count, p.filled(), d.others.value,
			t.unit, d.others.at, writeDates)
	}
	if looksLikeDate(p.odd.value) {
		return fmt.Sprintf("%.60q in %s %d looks like a date in an unsupported format: %s", p.odd.value, t.unit, p.odd.at, writeDates)
	}
	many := fmt.Sprint(len(p.values))
	if len(p.values) > p.most {
		many = fmt.Sprint("more than ", p.most)
	}
	name := t.names[column]
	return fmt.Sprintf("it is text with %s different values, such as %.60q: import it with --words %s, --hash %s or --categories %s", many,
		p.odd.value, name, name, name)
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
