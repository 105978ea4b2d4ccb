package importers

import (
	"hash/fnv"
	"math"
	"slices"

	"siafu/graph"
)

type encoder struct {
	graph.Column
	at       int // of the column in its table
	index    map[string]uint32
	unknown  int64 // cells with a value, or only words, that are not in Values
	missing  int64 // cells that were filled
	counting moments
}

// moments has the number, mean and sum of squared deviations of a sequence of values (Welford
// 1962).
type moments struct{ n, mean, squares float64 }

func (m *moments) add(x float64) {
	m.n++
	d := x - m.mean
	m.mean += d / m.n
	m.squares += float64(d * (x - m.mean))
}

// scaling returns the map to mean 0 and standard deviation 1. A constant column keeps its scale.
func (m moments) scaling() graph.Scaling {
	s := graph.Scaling{Mean: m.mean, Scale: 1}
	if deviation := math.Sqrt(m.squares / m.n); deviation > 0 {
		s.Scale = deviation
	}
	return s
}

func newEncoder(c graph.Column, at int) *encoder {
	e := &encoder{Column: c, at: at}
	if c.Kind == graph.CategoryColumn || c.Kind == graph.WordsColumn {
		e.index = make(map[string]uint32, len(c.Values))
		for i, v := range c.Values {
			e.index[v] = uint32(i)
		}
	}
	return e
}

// fill writes the features of a missing cell at the given position.
func (e *encoder) fill(t *tableFile, at int64, r *featureRows) {
	isNumber := e.Kind == graph.NumberColumn || e.Kind == graph.DateColumn
	if isNumber && e.Fill == nil {
		check(t.bad("%s %d %s: the cell has no value", t.unit, at, t.called(e.at)).
			Then("fill missing cells with --fill mean or --fill zero, remove the row, or leave the column out"))
	}
	e.missing++
	if e.Kind == graph.NumberColumn {
		r.put(e.First, (*e.Fill-e.Mean)/e.Scale)
	}
}

// encode writes the features of a cell to the last row, in ascending order.
func (e *encoder) encode(t *tableFile, at int64, cell []byte, r *featureRows) {
	if len(cell) == 0 {
		e.fill(t, at, r)
		return
	}
	switch e.Kind {
	case graph.NumberColumn:
		x, ok := number(cell)
		if !ok {
			check(t.fault(at, e.at, cell, "is not a float32 number").
				Then("%s", writeNumber(cell, "write a decimal number (for a date, days since a fixed day), or leave the column out")))
		}
		r.put(e.First, (x-e.Mean)/e.Scale)
	case graph.DateColumn:
		i, ok := readInstant(cell, t.dateFormat(e.at, e.Format))
		if !ok {
			check(t.fault(at, e.at, cell, "is not a date").Then("%s", writeDates))
		}
		e.putDate(i, r)
	case graph.HashColumn:
		h := fnv.New64a()
		h.Write(cell)
		r.put(e.First+int(h.Sum64()%uint64(e.Width)), 1)
	case graph.CategoryColumn:
		i, known := e.index[string(cell)]
		if !known {
			i, known = e.index[plainNumber(cell)]
		}
		if !known {
			e.unknown++
			return
		}
		r.put(e.First+int(i), 1)
	case graph.WordsColumn:
		e.words(debWords(string(cell)), r)
	}
}

// words sets the feature of each known word to one.
func (e *encoder) words(words []string, r *featureRows) {
	var found []uint32
	for _, w := range words {
		if i, known := e.index[w]; known {
			found = append(found, i)
		}
	}
	if len(words) > 0 && len(found) == 0 {
		e.unknown++
	}
	slices.Sort(found)
	for _, i := range found {
		r.put(e.First+int(i), 1)
	}
}

// featureRows has features that grow by rows: dense, in an array allocated for all of them, or
// sparse.
type featureRows struct {
	graph.Features
	row int
}

// fewFeatures is the limit of features per column, on average, for dense rows: below it, most
// of a row is not zero.
const fewFeatures = 4

func newFeatureRows(k *resources, at input, columns []*encoder, n int, sparse bool) *featureRows {
	last := columns[len(columns)-1]
	dim := last.First + last.Width
	if sparse || dim > fewFeatures*len(columns) {
		return newSparseRows(n, dim)
	}
	return &featureRows{Features: graph.Features{Rows: n, Dim: dim, Dense: reserve[float32](k, at, n*dim)}, row: -1}
}

func newSparseRows(n, dim int) *featureRows {
	return &featureRows{Features: graph.Features{Rows: n, Dim: dim, Sparse: &graph.SparseRows{Offsets: make([]int64, 1, n+1)}}, row: -1}
}

// next ends a row and starts another.
func (r *featureRows) next() {
	if r.row++; r.Sparse != nil && r.row > 0 {
		r.Sparse.Offsets = append(r.Sparse.Offsets, int64(len(r.Sparse.Cols)))
	}
}

// put sets a feature of the row, after its earlier ones.
func (r *featureRows) put(column int, x float64) {
	if r.Sparse == nil {
		r.Dense[r.row*r.Dim+column] = float32(x)
		return
	}
	if x != 0 {
		r.Sparse.Cols = append(r.Sparse.Cols, uint32(column))
		r.Sparse.Vals = append(r.Sparse.Vals, float32(x))
	}
}
