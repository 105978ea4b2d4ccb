package graph

// Table says how a table's columns became features, classes and a split, so that
// another table can be read in the same way.
type Table struct {
	ID      string    `json:"id"`    // column of the vertices' ids
	Label   string    `json:"label"` // column of the labels
	Split   string    `json:"split"` // column of the split, or how it was drawn
	Columns []Column  `json:"columns"`
	Dropped []Dropped `json:"dropped,omitempty"`
	// EdgeColumns are the columns of the table of edges that became their features.
	EdgeColumns []Column `json:"edge_columns,omitempty"`
}

// Dropped is a column that is no feature.
type Dropped struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Kinds of columns.
const (
	NumberColumn   = "number"   // one feature: (value - Mean) / Scale
	CategoryColumn = "category" // a feature for each of Values: 1 where the cell holds it
	HashColumn     = "hash"     // Width features: 1 at the cell's hash modulo Width
	WordsColumn    = "words"    // a feature for each of Values: 1 where the cell has that word
	DateColumn     = "date"     // (days since 1970 - Mean) / Scale; sine and cosine of the year, the week and, of Width 7, the day
)

// Column says how one column of a table became Width features from First on.
type Column struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	First int    `json:"first"`
	Width int    `json:"width"`
	// Of a number or a date; Scale is not 0.
	Mean  float64 `json:"mean,omitempty"`
	Scale float64 `json:"scale,omitempty"`
	// Fill stands where a number is missing. In columns of other kinds it is 0
	// and says that a missing cell sets no feature. nil: cells may not be missing.
	Fill *float64 `json:"fill,omitempty"`
	// Missing counts the cells that were missing.
	Missing int64    `json:"missing,omitempty"`
	Values  []string `json:"values,omitempty"` // [Width] of a category or of words
	// Format is that of dates which are numbers: yyyymmdd, or the unit in which they count
	// from 1970: s, ms, us, ns. Empty: ISO 8601, or as the file says.
	Format string `json:"format,omitempty"`
}
