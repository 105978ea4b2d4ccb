package importers

import (
	"math"
	"slices"
	"sort"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/npy"
)

// matrix is a sparse matrix as SciPy saves it: CSR (indptr and indices) or COO
// (coo and indices). data is nil where the source has no values.
type matrix struct {
	op, path   string
	rows, cols int64
	indptr     []int64  // [rows+1], nil for COO
	coo        []uint32 // row of each entry, nil for CSR
	indices    []uint32 // column of each entry
	data       []float32
}

// zipMatrix reads a matrix whose arrays are named prefix+"indptr" and so on.
// It is valid until z is closed.
func zipMatrix(op, path string, z *npy.Zip, prefix string) (*matrix, error) {
	m := &matrix{op: op, path: path}
	if err := m.checkForm(z, prefix+"format"); err != nil {
		return nil, err
	}
	get := func(name string) ndarray { return arrayIn(op, path, z, prefix+name).flat() }
	shape, err := elements(get("shape"), (*npy.Array).Int64s)
	if err != nil {
		return nil, err
	}
	if len(shape) != 2 {
		return nil, fault.New(fault.Data, op, path, "shape of the matrix is %v, expected two numbers", shape)
	}
	m.rows, m.cols = shape[0], shape[1]
	columns := "indices"
	if !z.Has(prefix+"indptr") && z.Has(prefix+"row") {
		columns = "col"
		m.coo, err = elements(get("row"), (*npy.Array).Uint32s)
	} else {
		m.indptr, err = elements(get("indptr"), (*npy.Array).Int64s)
	}
	if err != nil {
		return nil, err
	}
	if m.indices, err = elements(get(columns), (*npy.Array).Uint32s); err != nil {
		return nil, err
	}
	if z.Has(prefix + "data") {
		if m.data, err = elements(get("data"), (*npy.Array).Float32s); err != nil {
			return nil, err
		}
	}
	return m, m.check()
}

// checkForm refuses the forms of a matrix that are not read. SciPy's save_npz
// names the form; CSC has the same arrays as CSR and means the transpose.
func (m *matrix) checkForm(z *npy.Zip, name string) error {
	if !z.Has(name) {
		return nil
	}
	a := arrayIn(m.op, m.path, z, name)
	form, err := elements(a, (*npy.Array).Strings)
	if err != nil {
		return err
	}
	if len(form) != 1 || form[0] != "csr" && form[0] != "coo" {
		return fault.New(fault.Data, m.op, a.path, "the matrix format is %.40q, supported are csr and coo", form).
			Then("save matrix.tocsr()")
	}
	return nil
}

// check verifies the matrix against its form.
func (m *matrix) check() error {
	bad := func(format string, args ...any) error { return fault.New(fault.Data, m.op, m.path, format, args...) }
	if m.rows < 0 || m.cols < 0 || m.rows > maxVertices || m.cols > maxVertices {
		return bad("the matrix is %d x %d, which is out of range", m.rows, m.cols)
	}
	if m.data != nil && len(m.data) != len(m.indices) {
		return bad("%d values for %d column indices", len(m.data), len(m.indices))
	}
	for i, c := range m.indices {
		if int64(c) >= m.cols {
			return bad("column index %d is %d, outside the %d columns", i, c, m.cols)
		}
	}
	if m.indptr == nil {
		return m.checkRows()
	}
	return m.checkStarts()
}

// checkRows checks the row indices of COO.
func (m *matrix) checkRows() error {
	if len(m.coo) != len(m.indices) {
		return fault.New(fault.Data, m.op, m.path, "%d row indices for %d column indices", len(m.coo), len(m.indices))
	}
	for i, r := range m.coo {
		if int64(r) >= m.rows {
			return fault.New(fault.Data, m.op, m.path, "row index %d is %d, outside the %d rows", i, r, m.rows)
		}
	}
	return nil
}

// checkStarts checks the row starts of CSR.
func (m *matrix) checkStarts() error {
	bad := func(format string, args ...any) error { return fault.New(fault.Data, m.op, m.path, format, args...) }
	if int64(len(m.indptr)) != m.rows+1 {
		return bad("indptr has %d entries for %d rows", len(m.indptr), m.rows)
	}
	if nnz := int64(len(m.indices)); m.indptr[0] != 0 || m.indptr[m.rows] != nnz {
		return bad("indptr runs from %d to %d, but there are %d column indices", m.indptr[0], m.indptr[m.rows], nnz)
	}
	for r := range m.rows {
		if m.indptr[r] > m.indptr[r+1] {
			return bad("indptr[%d] is %d and decreases to %d", r, m.indptr[r], m.indptr[r+1])
		}
	}
	return nil
}

// adjacency is a square matrix as edges row→column, read in place. A stored zero is no edge.
type adjacency struct{ *matrix }

// weightedAdjacency has other values than 0 and 1, which are weights of edges.
type weightedAdjacency struct{ adjacency }

// edges turns an adjacency matrix into edges.
func (m *matrix) edges(o Options) (graph.EdgeSource, error) {
	if m.rows != m.cols {
		return nil, fault.New(fault.Data, m.op, m.path, "adjacency matrix is %d x %d, not square", m.rows, m.cols)
	}
	if !slices.ContainsFunc(m.data, func(w float32) bool { return w != 0 && w != 1 }) {
		return adjacency{m}, nil
	}
	if o.DropWeights {
		o.Log("warning: path=%s weights of edges are dropped", m.path)
		return adjacency{m}, nil
	}
	for i, w := range m.data {
		if !(w >= 0 && w <= math.MaxFloat32) {
			return nil, fault.New(fault.Data, m.op, m.path, "the weight of edge %d is %v", i, w).
				Then("give edges finite weights of 0 or more, or drop the weights with --drop-weights")
		}
	}
	return weightedAdjacency{adjacency{m}}, nil
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

// EachWeight implements graph.WeightedSource.
func (a weightedAdjacency) EachWeight(yield func(src, dst uint32, weight float32) error) error {
	return a.each(func(src uint32, i int64) error {
		if a.data[i] == 0 {
			return nil
		}
		return yield(src, a.indices[i], a.data[i])
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
func (m *matrix) sparseRows() (*graph.SparseRows, error) {
	if m.indptr == nil {
		return nil, fault.New(fault.Data, m.op, m.path, "features are in COO format").
			Then("save features.tocsr()")
	}
	s := &graph.SparseRows{
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
		kept := sortRow(s.Cols[start:], s.Vals[start:])
		s.Cols, s.Vals = s.Cols[:start+kept], s.Vals[:start+kept]
		s.Offsets = append(s.Offsets, int64(len(s.Cols)))
	}
	return s, checkSparse(m.op, m.path, s)
}

// oneHot turns a CSR matrix [n x classes] into labels: the column of a row's only
// entry, none for a row without.
func (m *matrix) oneHot(n int64) ([]int32, error) {
	if m.indptr == nil || m.rows != n {
		return nil, fault.New(fault.Data, m.op, m.path, "the label matrix has %d rows for %d vertices, expected CSR with one row per vertex", m.rows, n)
	}
	labels := make([]int64, n)
	for v := range labels {
		labels[v] = int64(graph.Unlabelled)
		for i := m.indptr[v]; i < m.indptr[v+1]; i++ {
			switch {
			case m.data != nil && m.data[i] == 0:
			case labels[v] != int64(graph.Unlabelled):
				return nil, multiLabel(m.op, m.path, "vertex %d has the labels %d and %d", v, labels[v], m.indices[i])
			default:
				labels[v] = int64(m.indices[i])
			}
		}
	}
	return checkLabels(m.op, m.path, labels)
}

// checkSparse is checkFinite for sparse rows.
func checkSparse(op, path string, s *graph.SparseRows) error {
	for i, v := range s.Vals {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			row := sort.Search(len(s.Offsets), func(r int) bool { return s.Offsets[r] > int64(i) }) - 1
			return fault.New(fault.Data, op, path, "feature %d of vertex %d is %v", s.Cols[i], row, v).
				Then("replace it with a finite number")
		}
	}
	return nil
}

// sortRow sorts one row by column, adds up what is in one column, and returns
// how many entries remain at the front.
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
