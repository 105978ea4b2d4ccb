package importers

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"siafu/graph"
)

// leastRows is the minimum number of rows, of a column or for each class or category, for the
// warnings of warnOfLeaks.
const leastRows = 10

// mixed is the label of a value that occurs with several labels.
const mixed = graph.Unlabelled - 1

// numbering has evidence that the numbers of a column count the rows.
type numbering struct {
	n                     int64
	fractions             bool
	least, most, last     int64
	ascending, descending bool
	sums                  [3]uint64 // of the first three powers, modulo 2⁶⁴
}

func (c *numbering) add(x float64) {
	k := int64(x)
	if c.fractions = c.fractions || float64(k) != x || math.Abs(x) > 1<<53; c.fractions {
		return
	}
	if c.n == 0 {
		c.least, c.most, c.ascending, c.descending = k, k, true, true
	} else {
		c.ascending, c.descending = c.ascending && k > c.last, c.descending && k < c.last
	}
	c.n, c.last, c.least, c.most = c.n+1, k, min(c.least, k), max(c.most, k)
	addPowers(&c.sums, k)
}

func addPowers(sums *[3]uint64, k int64) {
	power := uint64(1)
	for i := range sums {
		power *= uint64(k)
		sums[i] += power
	}
}

// countsRows reports whether the numbers rise or fall with every row, or are consecutive whole
// numbers in any order: then their range and the sums of their powers are those of a sequence.
func (c *numbering) countsRows() bool {
	if c.fractions || c.n < leastRows {
		return false
	}
	if c.ascending || c.descending {
		return true
	}
	if c.most-c.least != c.n-1 {
		return false
	}
	var sums [3]uint64
	for k := c.least; k <= c.most; k++ {
		addPowers(&sums, k)
	}
	return sums == c.sums
}

// span is the range of a column's numbers in the rows with one label.
type span struct {
	least, most float64
	rows        int64
}

// addLabelled records a number in a row with a label.
func (p *profile) addLabelled(x float64, label int32) {
	if label < 0 || label >= fewValues {
		p.manyLabels = p.manyLabels || label >= fewValues
		return
	}
	for int(label) >= len(p.spans) {
		p.spans = append(p.spans, span{least: math.Inf(1), most: math.Inf(-1)})
	}
	s := &p.spans[label]
	s.least, s.most, s.rows = min(s.least, x), max(s.most, x), s.rows+1
}

// addValue records a value in a row with a label.
func (p *profile) addValue(cell []byte, label int32) {
	had, seen := p.values[string(cell)]
	switch {
	case !seen && len(p.values) > p.most, seen && (had == label || had == mixed || label == graph.Unlabelled):
	case !seen || had == graph.Unlabelled:
		p.values[string(cell)] = label
	default:
		p.values[string(cell)] = mixed
	}
}

// numbersSeparate reports whether the ranges of the column's numbers are disjoint for all labels.
func (p *profile) numbersSeparate() bool {
	spans := slices.DeleteFunc(slices.Clone(p.spans), func(s span) bool { return s.rows == 0 })
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.least, b.least) })
	for i := 1; i < len(spans); i++ {
		if spans[i].least <= spans[i-1].most {
			return false
		}
	}
	return len(spans) > 1 && !p.manyLabels && p.numbers >= int64(leastRows*len(spans))
}

// valuesSeparate reports whether each value of the column occurs with one label only.
func (p *profile) valuesSeparate() bool {
	labels := map[int32]bool{}
	for _, label := range p.values {
		if label == mixed {
			return false
		}
		labels[label] = true
	}
	delete(labels, graph.Unlabelled)
	return len(labels) > 1 && p.filled() >= int64(leastRows*len(p.values))
}

// warnOfLeaks warns of columns that number the rows or determine the label, unless a flag names
// them.
func (im *tableImport) warnOfLeaks() {
	for _, e := range im.columns {
		p := im.profiles[e.at]
		if p == nil || slices.Contains(im.Features, e.Name) {
			continue
		}
		switch {
		case e.Kind == graph.NumberColumn && p.numbering.countsRows():
			im.Log("warning: column=%s numbers the rows, from %d to %d, so that a network learns the order of the table; leave it out "+
				"with %s", e.Name, p.numbering.least, p.numbering.most, dropFlag(e.Name))
		case e.Kind == graph.NumberColumn && p.numbersSeparate(), e.Kind == graph.CategoryColumn && p.valuesSeparate():
			im.Log("warning: column=%s alone determines the label in every row; if it is known only together with the label, leave it out "+
				"with %s", e.Name, dropFlag(e.Name))
		}
	}
}

// dropFlag returns the flag that leaves a column out, quoted for a shell if the name has blanks.
func dropFlag(name string) string {
	if strings.ContainsAny(name, " \t'$&()|;<>*?") {
		name = strconv.Quote(name)
	}
	return "--drop " + name
}
