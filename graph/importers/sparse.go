package importers

import (
	"slices"
	"sort"

	"siafu/graph"
)

// matrix is a sparse matrix as SciPy saves it: CSR (indptr and indices) or COO
// (coo and indices). data is nil where the source has no values.
type matrix struct {
	input
	rows, cols int64
	indptr     []int64  // [rows+1], nil for COO
	coo        []uint32 // row of each entry, nil for CSR
	indices    []uint32 // column of each entry
	data       []float32
}

// matrix reads a matrix from the arrays prefix+"indptr" and so on. It is valid until z is closed.
func (z zipArrays) matrix(prefix string) *matrix {
	get := func(name string) ndarray { return z.get(prefix + name).flat() }
	// SciPy's save_npz names the form; CSC has the same arrays as CSR and means the transpose.
	if z.Has(prefix + "format") {
		a := z.get(prefix + "format")
		form := must(a.Strings())
		a.require(len(form) == 1 && (form[0] == "csr" || form[0] == "coo"), "save matrix.tocsr()",
			"the matrix format is %.40q, supported are csr and coo", form)
	}
	shape := must(get("shape").Int64s())
	z.require(len(shape) == 2, "", "shape of the matrix is %v, expected two numbers", shape)
	m := &matrix{input: z.input, rows: shape[0], cols: shape[1]}
	columns := "indices"
	if !z.Has(prefix+"indptr") && z.Has(prefix+"row") {
		columns = "col"
		m.coo = must(get("row").Uint32s())
	} else {
		m.indptr = must(get("indptr").Int64s())
	}
	m.indices = must(get(columns).Uint32s())
	if z.Has(prefix + "data") {
		m.data = must(get("data").Float32s())
	}
	m.check()
	return m
}

// check verifies the matrix against its form.
func (m *matrix) check() {
	m.require(m.rows >= 0 && m.cols >= 0 && m.rows <= maxVertices && m.cols <= maxVertices, "",
		"the matrix is %d x %d, which is out of range", m.rows, m.cols)
	nnz := len(m.indices)
	m.require(m.data == nil || len(m.data) == nnz, "", "%d values for %d column indices", len(m.data), nnz)
	m.checkIndices("column", m.indices, m.cols)
	if m.indptr == nil {
		m.require(len(m.coo) == nnz, "", "%d row indices for %d column indices", len(m.coo), nnz)
		m.checkIndices("row", m.coo, m.rows)
		return
	}
	m.require(int64(len(m.indptr)) == m.rows+1, "", "indptr has %d entries for %d rows", len(m.indptr), m.rows)
	m.require(m.indptr[0] == 0 && m.indptr[m.rows] == int64(nnz), "",
		"indptr runs from %d to %d, but there are %d column indices", m.indptr[0], m.indptr[m.rows], nnz)
	for r := range m.rows {
		if m.indptr[r] > m.indptr[r+1] {
			m.require(false, "", "indptr[%d] is %d and decreases to %d", r, m.indptr[r], m.indptr[r+1])
		}
	}
}

// checkIndices requires indices of columns or rows to be below n.
func (m *matrix) checkIndices(of string, indices []uint32, n int64) {
	for i, x := range indices {
		if int64(x) >= n {
			m.require(false, "", "%s index %d is %d, outside the %d %ss", of, i, x, n, of)
		}
	}
}

// adjacency is a square matrix as edges row→column, read in place. A stored zero is no edge.
type adjacency struct{ *matrix }

// edges turns an adjacency matrix into edges.
func (m *matrix) edges(o Options) graph.EdgeSource {
	m.require(m.rows == m.cols, "", "adjacency matrix is %d x %d, not square", m.rows, m.cols)
	if !slices.ContainsFunc(m.data, func(w float32) bool { return w != 0 && w != 1 }) {
		return adjacency{m}
	}
	if o.DropWeights {
		o.Log("warning: path=%s weights of edges are dropped", m.path)
		return adjacency{m}
	}
	checkWeights(m.input, m.data, ", or drop the weights with --drop-weights")
	return graph.EachWeight(func(yield func(src, dst uint32, weight float32) error) error {
		return m.each(func(src uint32, i int64) error {
			if m.data[i] == 0 {
				return nil
			}
			return yield(src, m.indices[i], m.data[i])
		})
	})
}

// Each implements graph.EdgeSource.
func (a adjacency) Each(yield func(src, dst uint32) error) error {
	return a.each(func(src uint32, i int64) error {
		if a.data != nil && a.data[i] == 0 {
			return nil
		}
		return yield(src, a.indices[i])
	})
}

// each calls yield with the row and the index of each entry.
func (m *matrix) each(yield func(row uint32, i int64) error) error {
	for i, row := range m.coo {
		if err := yield(row, int64(i)); err != nil {
			return err
		}
	}
	if m.indptr == nil {
		return nil
	}
	for row := range m.rows {
		for i := m.indptr[row]; i < m.indptr[row+1]; i++ {
			if err := yield(uint32(row), i); err != nil {
				return err
			}
		}
	}
	return nil
}

// sparseRows turns a CSR matrix of features into rows with ascending columns; entries of the
// same element are added, as in SciPy.
func (m *matrix) sparseRows() (s *graph.SparseRows, err error) {
	defer catch(&err)
	m.require(m.indptr != nil, "save features.tocsr()", "features are in COO format")
	s = &graph.SparseRows{
		Offsets: make([]int64, 1, m.rows+1),
		Cols:    make([]uint32, 0, len(m.indices)),
		Vals:    make([]float32, 0, len(m.indices)),
	}
	for r := range m.rows {
		start := len(s.Cols)
		for i := m.indptr[r]; i < m.indptr[r+1]; i++ {
			v := float32(1)
			if m.data != nil {
				v = m.data[i]
			}
			s.Cols, s.Vals = append(s.Cols, m.indices[i]), append(s.Vals, v)
		}
		kept := start + sortRow(s.Cols[start:], s.Vals[start:])
		s.Cols, s.Vals = s.Cols[:kept], s.Vals[:kept]
		s.Offsets = append(s.Offsets, int64(kept))
		if i := slices.IndexFunc(s.Vals[start:], graph.NotFinite); i >= 0 {
			m.require(false, "replace it with a finite number", "feature %d of vertex %d is %v", s.Cols[start+i], r, s.Vals[start+i])
		}
	}
	return s, nil
}

// oneHot turns a CSR matrix [n x classes] into labels: the column of a row's only
// entry, none for a row without.
func (m *matrix) oneHot(n int64) []int32 {
	m.require(m.rows == n, "", "the label matrix has %d rows for %d vertices, expected one row per vertex", m.rows, n)
	labels := make([]int64, n)
	for v := range labels {
		labels[v] = int64(graph.Unlabelled)
		for i := m.indptr[v]; i < m.indptr[v+1]; i++ {
			if m.data != nil && m.data[i] == 0 {
				continue
			}
			if labels[v] != int64(graph.Unlabelled) {
				m.require(false, severalLabels, "vertex %d has the labels %d and %d", v, labels[v], m.indices[i])
			}
			labels[v] = int64(m.indices[i])
		}
	}
	return checkLabels(m.input, labels)
}

// sortRow sorts one row by column and adds up the values of equal columns. It returns the number
// of entries that remain at the front.
func sortRow(cols []uint32, vals []float32) int {
	if !slices.IsSorted(cols) {
		sort.Stable(byColumn{cols, vals})
	}
	kept := 0
	for i := range cols {
		if kept > 0 && cols[kept-1] == cols[i] {
			vals[kept-1] += vals[i]
			continue
		}
		cols[kept], vals[kept] = cols[i], vals[i]
		kept++
	}
	return kept
}

// byColumn sorts a row's columns and values together.
type byColumn struct {
	cols []uint32
	vals []float32
}

func (r byColumn) Len() int           { return len(r.cols) }
func (r byColumn) Less(i, j int) bool { return r.cols[i] < r.cols[j] }
func (r byColumn) Swap(i, j int) {
	r.cols[i], r.cols[j] = r.cols[j], r.cols[i]
	r.vals[i], r.vals[j] = r.vals[j], r.vals[i]
}
