package importers

import (
	"siafu/internal/mapped"
	"siafu/internal/npy"
)

// Formats in which edges are saved, one or several.
const cooFormat, csrFormat, cscFormat = 1, 2, 4

// dglEdges has the edges of one type in one format: rows are sources, or destinations in csc.
type dglEdges struct {
	file       *dglFile
	format     int64
	rows, cols int64
	starts     *npy.Array // [rows+1], of coo the row of each edge
	others     *npy.Array // column of each edge
	ids        *npy.Array // of the edges; empty if edges are in the order of ids
}

// metaGraph reads the graph of types: a row is a type of vertices, an edge a type of edges.
func (c *dglCursor) metaGraph() dglEdges {
	c.magic(dglTypesMagic, "the graph of types")
	return c.matrix(csrFormat)
}

// unitGraph reads magic, the saved formats of the edges, the allowed formats, and the edges in
// each saved format: a graph of types and a matrix. Formats are bits with 1<<32 or, before DGL
// 0.8, a number from 1. One format is enough.
func (c *dglCursor) unitGraph() (best dglEdges) {
	c.magic(dglEdgesMagic, "the edges of a type")
	saved := c.i64()
	c.i64()
	switch {
	case saved>>32 == 1:
		saved &= 1<<32 - 1
	case saved >= 1 && saved <= 3:
		saved = 1 << (saved - 1)
	default:
		saved = 0
	}
	if c.err == nil && (saved == 0 || saved&^(cooFormat|csrFormat|cscFormat) != 0) {
		c.fail("edges are in the format %#x, supported are coo, csr and csc of DGL 0.5 and later", saved)
	}
	for _, format := range []int64{cooFormat, csrFormat, cscFormat} {
		if c.err != nil || saved&format == 0 {
			continue
		}
		c.metaGraph()
		if m := c.matrix(format); best.format == 0 {
			best = m
		}
	}
	return best
}

// matrix reads magic, columns, rows, three arrays, and whether they are sorted. The arrays are
// rows, columns and ids for coo, else row offsets, columns and ids.
func (c *dglCursor) matrix(format int64) dglEdges {
	flags := uint64(1)
	if format == cooFormat {
		c.magic(dglCOOMagic, "a matrix in coordinates")
		flags = 2
	} else {
		c.magic(dglCSRMagic, "a matrix in rows")
	}
	e := dglEdges{file: c.file, format: format, cols: c.i64(), rows: c.i64(), starts: c.array("rows"),
		others: c.array("columns"), ids: c.array("ids of edges")}
	c.take(flags)
	return e
}

// ends returns the edges between the given numbers of vertices, in the order of edge ids.
func (e *dglEdges) ends(from, to int64) (*npy.Array, error) {
	if e.format == cscFormat {
		from, to = to, from
	}
	if e.rows != from || e.cols != to {
		return nil, e.file.bad("its edges are a matrix of %d x %d for %d x %d vertices", e.rows, e.cols, from, to).Then(dglTruncated)
	}
	rows, err := e.rowOfEach()
	if err != nil {
		return nil, err
	}
	cols, err := e.others.Uint32s()
	if err != nil {
		return nil, err
	}
	m := len(cols)
	if len(rows) != m || len(e.others.Shape) != 1 {
		return nil, e.file.bad("%d edges have a source and %d a destination", len(rows), m).Then(dglTruncated)
	}
	if e.format == cscFormat {
		rows, cols = cols, rows
	}
	all := make([]uint32, 2*m)
	if err := e.place(all[:m], all[m:], rows, cols); err != nil {
		return nil, err
	}
	return (&npy.Array{Type: "<u4", Shape: []int{2, m}, Data: mapped.Bytes(all)}).Called(e.file.path + "[edges]"), nil
}

func (e *dglEdges) rowOfEach() ([]uint32, error) {
	if e.format == cooFormat {
		return e.starts.Uint32s()
	}
	starts, err := e.starts.Int64s()
	if err != nil {
		return nil, err
	}
	m := int64(e.others.Len())
	if int64(len(starts)) != e.rows+1 || starts[0] != 0 || starts[e.rows] != m {
		return nil, e.file.bad("%d rows of edges have %d offsets, for %d edges", e.rows, len(starts), m).Then(dglTruncated)
	}
	rows := make([]uint32, 0, m)
	for r := range e.rows {
		if starts[r+1] < starts[r] || starts[r+1] > m {
			return nil, e.file.bad("row %d of edges goes from %d to %d, of %d edges", r, starts[r], starts[r+1], m).Then(dglTruncated)
		}
		for range starts[r+1] - starts[r] {
			rows = append(rows, uint32(r))
		}
	}
	return rows, nil
}

// place sets edge i to the edge with id i.
func (e *dglEdges) place(src, dst, from, to []uint32) error {
	if e.ids.Len() == 0 {
		copy(src, from)
		copy(dst, to)
		return nil
	}
	ids, err := e.ids.Int64s()
	if err != nil {
		return err
	}
	if len(ids) != len(from) {
		return e.file.bad("there are %d ids for %d edges", len(ids), len(from)).Then(dglTruncated)
	}
	seen := make([]bool, len(from))
	for i, id := range ids {
		if id < 0 || id >= int64(len(seen)) || seen[id] {
			return e.file.bad("edge %d has the id %d, which is not unique among %d edges", i, id, len(seen)).Then(dglTruncated)
		}
		seen[id], src[id], dst[id] = true, from[i], to[i]
	}
	return nil
}
