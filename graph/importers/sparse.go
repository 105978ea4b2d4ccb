package importers

import (
	"cmp"
	"slices"

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

func (m *matrix) checkIndices(of string, indices []uint32, n int64) {
	for i, x := range indices {
		if int64(x) >= n {
			m.require(false, "", "%s index %d is %d, outside the %d %ss", of, i, x, n, of)
		}
	}
}

// unweighted hides the weights of edges.
type unweighted struct{ graph.EdgeSource }

// edges turns an adjacency matrix into edges row→column, read in place. A stored zero is no edge.
func (m *matrix) edges(o Options) graph.EdgeSource {
	m.require(m.rows == m.cols, "", "adjacency matrix is %d x %d, not square", m.rows, m.cols)
	edges := graph.EachWeight(m.each)
	if !slices.ContainsFunc(m.data, func(w float32) bool { return w != 0 && w != 1 }) {
		return unweighted{edges}
	}
	if o.DropWeights {
		o.Log("warning: path=%s weights of edges are dropped", m.path)
		return unweighted{edges}
	}
	checkWeights(m.input, m.data, ", or drop the weights with --drop-weights")
	return edges
}

// each yields the entries that are not 0, as edges with weights.
func (m *matrix) each(yield func(src, dst uint32, weight float32) error) error {
	entry := func(row uint32, i int64) error {
		switch {
		case m.data == nil:
			return yield(row, m.indices[i], 1)
		case m.data[i] == 0:
			return nil
		}
		return yield(row, m.indices[i], m.data[i])
	}
	for i, row := range m.coo {
		if err := entry(row, int64(i)); err != nil {
			return err
		}
	}
	if m.indptr == nil {
		return nil
	}
	for row := range m.rows {
		for i := m.indptr[row]; i < m.indptr[row+1]; i++ {
			if err := entry(uint32(row), i); err != nil {
				return err
			}
		}
	}
	return nil
}

// features turns a CSR matrix with a row for each of n vertices into features.
func (m *matrix) features(n int64) graph.Features {
	m.require(m.rows == n, "", "%d rows of features for %d vertices", m.rows, n)
	return graph.Features{Rows: int(m.rows), Dim: int(m.cols), Sparse: m.sparseRows()}
}

// sparseRows turns a CSR matrix of features into rows with ascending columns; entries of the
// same element are added, as in SciPy.
func (m *matrix) sparseRows() *graph.SparseRows {
	m.require(m.indptr != nil, "save features.tocsr()", "features are in COO format")
	s := &graph.SparseRows{
		Offsets: make([]int64, 1, m.rows+1),
		Cols:    make([]uint32, 0, len(m.indices)),
		Vals:    make([]float32, 0, len(m.indices)),
	}
	type entry struct {
		column uint32
		value  float32
	}
	byColumn := func(a, b entry) int { return cmp.Compare(a.column, b.column) }
	var row []entry
	for r := range m.rows {
		row = row[:0]
		for i := m.indptr[r]; i < m.indptr[r+1]; i++ {
			e := entry{m.indices[i], 1}
			if m.data != nil {
				e.value = m.data[i]
			}
			row = append(row, e)
		}
		if !slices.IsSortedFunc(row, byColumn) {
			slices.SortStableFunc(row, byColumn)
		}
		start := len(s.Cols)
		for _, e := range row {
			if last := len(s.Cols) - 1; last >= start && s.Cols[last] == e.column {
				s.Vals[last] += e.value
				continue
			}
			s.Cols, s.Vals = append(s.Cols, e.column), append(s.Vals, e.value)
		}
		s.Offsets = append(s.Offsets, int64(len(s.Cols)))
		if i := slices.IndexFunc(s.Vals[start:], graph.NotFinite); i >= 0 {
			m.require(false, "replace it with a finite number", "feature %d of vertex %d is %v", s.Cols[start+i], r, s.Vals[start+i])
		}
	}
	return s
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
