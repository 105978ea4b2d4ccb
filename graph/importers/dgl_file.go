package importers

import (
	"bytes"
	"encoding/binary"

	"siafu/internal/fault"
	"siafu/internal/npy"
)

const opDGL = "read dgl file"

// First numbers of the parts of a file.
const (
	dglMagic      = 0xDD2E4FF046B4A13F
	dglGraphMagic = 0xDD589FBE35224ABF // a graph: its types, then the data of each type
	dglTypesMagic = 0xDD3C5FFE20046ABF // the graph of types
	dglEdgesMagic = 0xDD2E60F0F6B4A127 // the edges of one type
	dglCSRMagic   = 0xDD6CD31205DFF127
	dglCOOMagic   = 0xDD61FFD305DFF127
	dglArrayMagic = 0xDD5E40F096B4A13F
)

// dglHead is the offset of the data after the first numbers.
const dglHead = 4096

// dglFile is an open file of DGL's dgl.save_graphs: version 2 of the format, which DGL writes since
// 0.5.
//
// The format is that of DGL's own sources (src/graph/serialize/heterograph_serialize.cc,
// src/graph/unit_graph.cc, src/runtime/ndarray.cc and dmlc-core's serializer.h), all numbers
// little-endian. The format has no compression. Tensors become
// npy.Arrays, whose bytes stay in the mapped file. For any content the result
// is a value or a fault of kind Data that names the file and the position.
//
//	0     u64 DD2E4FF046B4A13F, u64 version 2, u64 type 2, u64 graphs; padding to 4096
//	4096  u64 offset of the graphs; list of (string, array): labels
//	      graphs: u64 DD589FBE35224ABF, metagraph, list of edges of a type,
//	              list of i64 vertices, lists of lists of (string, array): ndata, edata,
//	              lists of strings: types of vertices, types of edges
//	end   u64 length, u64 graphs, u64 offset of each; u64 length again
//
//	metagraph        u64 DD3C5FFE20046ABF, matrix in rows
//	edges of a type  u64 DD2E60F0F6B4A127, i64 formats (1<<32 and bits: 1 coo, 2 csr, 4 csc;
//	                 before DGL 0.8 an index from 1), i64 allowed formats; for each
//	                 stored format, in this order, a metagraph and a matrix
//	coo              u64 DD61FFD305DFF127, i64 columns, i64 rows, arrays of rows, columns
//	                 and ids of edges (none: in order), 2 bytes whether they are sorted
//	csr, csc         u64 DD6CD31205DFF127, i64 columns, i64 rows, arrays of starts of rows,
//	                 columns and ids of edges, 1 byte; rows are sources in csr, destinations in csc
//	array            u64 DD5E40F096B4A13F, u64 0, i32 device, i32 its number, i32 dimensions,
//	                 u8 kind (0 int, 1 uint, 2 float, 6 bool), u8 bits, u16 lanes 1,
//	                 i64 shape, i64 bytes, elements
//
// A string is a length of 8 bytes and its bytes; a list is a length and its elements.
type dglFile struct {
	Graphs int         // number of graphs
	Labels []dglTensor // of the file, in addition to the graphs

	path   string
	bytes  []byte
	starts []byte // 8 bytes a graph: where it begins
}

// dglTensor is an array with its name.
type dglTensor struct {
	Name string
	*npy.Array
}

// newDGLFile opens the bytes of a file. Arrays refer to b. Messages contain path.
func newDGLFile(b []byte, path string) (*dglFile, error) {
	f := &dglFile{path: path, bytes: b}
	return f, f.read()
}

// isDGLFile reports whether begin are the first bytes of a file of dgl.save_graphs.
func isDGLFile(begin []byte) bool {
	return bytes.HasPrefix(begin, binary.LittleEndian.AppendUint64(nil, dglMagic))
}

// Bad returns a Data fault about the file.
func (f *dglFile) bad(format string, args ...any) *fault.Error {
	return fault.New(fault.Data, opDGL, f.path, format, args...)
}

// read reads all except the graphs. The graphs' offsets are stored at the end of the file,
// followed by their size in bytes.
func (f *dglFile) read() error {
	c := &dglCursor{file: f}
	c.magic(dglMagic, "a file of dgl.save_graphs")
	version, kind, graphs := c.u64(), c.u64(), c.u64()
	switch {
	case c.err != nil:
		return c.err
	case version == 1:
		return f.bad("it has version 1, of DGL before 0.5").Then("load it with that DGL and save it with DGL 0.5 or later")
	case version != 2 || kind != 2:
		return f.bad("it has version %d and type %d, supported is version 2 of type 2", version, kind).Then("save it with dgl.save_graphs")
	}
	if uint64(len(f.bytes)) < dglHead+8 || graphs > uint64(len(f.bytes))/8 {
		return f.bad("it has %d bytes but claims %d graphs", len(f.bytes), graphs).Then(dglTruncated)
	}
	end := len(f.bytes) - 8
	places := end - 8*int(graphs)
	if size := binary.LittleEndian.Uint64(f.bytes[end:]); size != 8+8*graphs || places < dglHead+16 ||
		binary.LittleEndian.Uint64(f.bytes[places-8:]) != graphs {
		return f.bad("it does not end with the offsets of its %d graphs", graphs).Then(dglTruncated)
	}
	f.Graphs, f.starts = int(graphs), f.bytes[places:end]
	c.at = dglHead + 8 // after where the graphs begin
	f.Labels = c.tensors("label")
	return c.err
}

const dglTruncated = "fetch the file again, it is damaged or truncated"

// dglPart is a kind of vertices, a type of edges, or both of a graph that has one of each.
type dglPart struct {
	Name     string
	From, To uint32 // kinds of the ends of edges
	Vertices int64
	// Ends are the edges in the order of their ids [2 x edges]: a row of sources, one of
	// destinations, uint32. They are not checked against the numbers of vertices.
	Ends                 *npy.Array
	VertexData, EdgeData []dglTensor
}

// graph reads the kinds and the relations of a graph, counted from 0.
func (f *dglFile) graph(number int) (kinds, relations []dglPart, err error) {
	start := binary.LittleEndian.Uint64(f.starts[8*number:])
	if start < dglHead || start > uint64(len(f.bytes)) {
		return nil, nil, f.bad("graph %d begins at byte %d of %d", number, start, len(f.bytes)).Then(dglTruncated)
	}
	c := &dglCursor{file: f, at: int(start)}
	c.magic(dglGraphMagic, "a graph")
	types := c.metaGraph()
	n := c.u64()
	if c.err == nil && (types.rows < 1 || n < 1) {
		return nil, nil, f.bad("graph %d has %d vertex types and %d edge types", number, types.rows, n).Then("save a graph with edges")
	}
	var edges []dglEdges
	for i := uint64(0); i < n && c.err == nil; i++ {
		edges, relations = append(edges, c.unitGraph()), append(relations, dglPart{})
	}
	c.count("vertex counts", uint64(types.rows))
	for i := int64(0); i < types.rows && c.err == nil; i++ {
		kinds = append(kinds, dglPart{Vertices: c.i64()})
	}
	c.count("lists of ndata", uint64(len(kinds)))
	for i := range kinds {
		kinds[i].VertexData = c.tensors("tensor")
	}
	c.count("lists of edata", n)
	for i := range relations {
		relations[i].EdgeData = c.tensors("tensor")
	}
	for _, parts := range [][]dglPart{kinds, relations} {
		c.count("names of types", uint64(len(parts)))
		for i := range parts {
			parts[i].Name = c.text()
		}
	}
	if c.err != nil {
		return nil, nil, c.err
	}
	return kinds, relations, f.ends(kinds, relations, types, edges)
}

// ends sets the edges of relations. types has an edge for each relation, between its kinds.
func (f *dglFile) ends(kinds, relations []dglPart, types dglEdges, edges []dglEdges) error {
	ends, err := types.ends(types.rows, types.rows)
	if err != nil {
		return err
	}
	list, err := ends.Uint32s()
	if err == nil && len(list) != 2*len(edges) {
		err = f.bad("the graph of types has %d edges for %d edge types", len(list)/2, len(edges)).Then(dglTruncated)
	}
	for i := 0; i < len(edges) && err == nil; i++ {
		r := &relations[i]
		if r.From, r.To = list[i], list[len(edges)+i]; int(max(r.From, r.To)) >= len(kinds) {
			return f.bad("edge type %d connects the vertex types %d and %d of %d", i, r.From, r.To, len(kinds)).Then(dglTruncated)
		}
		r.Ends, err = edges[i].ends(kinds[r.From].Vertices, kinds[r.To].Vertices)
	}
	return err
}
