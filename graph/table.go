package graph

import (
	"fmt"
	"math"
	"slices"
)

// Table records how the columns of a table were converted to features, classes and a split.
// Another table can then be read in the same way.
type Table struct {
	ID      string    `json:"id"`    // column of the vertices' ids
	Label   string    `json:"label"` // column of the labels
	Split   string    `json:"split"` // column of the split, or how the split was sampled
	Columns []Column  `json:"columns"`
	Dropped []Dropped `json:"dropped,omitempty"`
	// Missing are the texts of cells without a value, in any case; nil: unknown.
	Missing []string `json:"missing,omitempty"`
	// EdgeColumns are the columns of the edge table that became edge features.
	EdgeColumns []Column `json:"edge_columns,omitempty"`
}

// Dropped is a column that was not converted to features.
type Dropped struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Kinds of columns.
const (
	NumberColumn   = "number"   // one feature: (value - Mean) / Scale
	CategoryColumn = "category" // a feature for each of Values: 1 if the cell contains this value
	HashColumn     = "hash"     // Width features: 1 at the cell's hash modulo Width
	WordsColumn    = "words"    // a feature for each of Values: 1 if the cell contains this word
	DateColumn     = "date"     // (days since 1970 - Mean) / Scale; sine and cosine of the year, the week and, if Width is 7, the day
	// Columns of a kind of vertices of a relational graph, which are not columns of a file.
	IndicatorColumn = "indicator" // one feature: 1, whose weights are the bias of the kind
	MeanColumn      = "mean"      // the mean features of the neighbours of the kind Name, without their indicator
)

// Column records how one column of a table was converted to Width features, starting at feature
// First.
type Column struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	First int    `json:"first"`
	Width int    `json:"width"`
	// Mean and Scale standardise a number or a date. Scale is not 0.
	Mean  float64 `json:"mean,omitempty"`
	Scale float64 `json:"scale,omitempty"`
	// Fill replaces a missing number. In columns of other kinds Fill is 0: a missing cell sets
	// no feature. nil: cells must not be missing.
	Fill *float64 `json:"fill,omitempty"`
	// Missing is the number of missing cells.
	Missing int64    `json:"missing,omitempty"`
	Values  []string `json:"values,omitempty"` // [Width] of categories or words
	// Format is the format of dates that are numbers: yyyymmdd, or a unit of time since 1970
	// (s, ms, us, ns). Empty: ISO 8601, or the format that the file declares.
	Format string `json:"format,omitempty"`
}

// check returns an error if the columns cannot be those of an import: their features must follow one
// another, and their numbers must be usable. An import with --like relies on it.
func (t *Table) check() error {
	if t == nil {
		return nil
	}
	for _, list := range [][]Column{t.Columns, t.EdgeColumns} {
		first := 0
		for _, c := range list {
			if why := c.invalid(); why != "" || c.First != first {
				return fmt.Errorf("its column %q of kind %q is invalid: features %d to %d after %d features, "+
					"mean %v, scale %v, %d values%s",
					c.Name, c.Kind, c.First, c.First+c.Width-1, first, c.Mean, c.Scale, len(c.Values), why)
			}
			first += c.Width
		}
	}
	if len(t.Columns) == 0 {
		return fmt.Errorf("its table has no columns of features")
	}
	if i := slices.IndexFunc(t.EdgeColumns, func(c Column) bool { return c.Kind != NumberColumn }); i >= 0 {
		return fmt.Errorf("its column %q of edges is no number", t.EdgeColumns[i].Name)
	}
	return nil
}

// Features returns the number of features of the columns.
func (t *Table) Features() int {
	last := t.Columns[len(t.Columns)-1]
	return last.First + last.Width
}

// invalid returns why the fields of a column contradict its kind, "" if they do not.
func (c *Column) invalid() string {
	scaled := c.Scale != 0 && !math.IsNaN(c.Scale-c.Scale) && !math.IsNaN(c.Mean-c.Mean)
	ok := false
	switch c.Kind {
	case NumberColumn:
		ok = scaled && c.Width == 1
	case IndicatorColumn:
		ok = c.Width == 1
	case DateColumn:
		ok = scaled && (c.Width == 5 || c.Width == 7)
	case CategoryColumn, WordsColumn:
		ok = c.Width == len(c.Values)
	case HashColumn, MeanColumn:
		ok = true
	}
	if !ok || c.Width < 1 || c.Width > maxFeatures-c.First {
		return "; its width, scale or values do not fit its kind"
	}
	return ""
}
