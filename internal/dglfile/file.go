package dglfile

import (
	"bytes"
	"encoding/binary"

	"siafu/internal/fault"
	"siafu/internal/npy"
)

const op = "read dgl file"

// First numbers of the parts of a file.
const (
	fileMagic   = 0xDD2E4FF046B4A13F
	heteroMagic = 0xDD589FBE35224ABF // a graph: its types, then the data of each type
	metaMagic   = 0xDD3C5FFE20046ABF // the graph of types
	unitMagic   = 0xDD2E60F0F6B4A127 // the edges of one type
	csrMagic    = 0xDD6CD31205DFF127
	cooMagic    = 0xDD61FFD305DFF127
	arrayMagic  = 0xDD5E40F096B4A13F
)

// head is the offset of the data after the first numbers.
const head = 4096

// File is an open file.
type File struct {
	Graphs int      // number of graphs
	Labels []Tensor // of the file, in addition to the graphs

	path   string
	bytes  []byte
	starts []byte // 8 bytes a graph: where it begins
}

// Tensor is an array with its name.
type Tensor struct {
	Name string
	*npy.Array
}

// New opens the bytes of a file. Arrays refer to b. Messages contain path.
func New(b []byte, path string) (*File, error) {
	f := &File{path: path, bytes: b}
	return f, f.read()
}

// Is reports whether begin are the first bytes of a file of dgl.save_graphs.
func Is(begin []byte) bool {
	return bytes.HasPrefix(begin, binary.LittleEndian.AppendUint64(nil, fileMagic))
}

// Bad returns a Data fault about the file.
func (f *File) Bad(format string, args ...any) *fault.Error {
	return fault.New(fault.Data, op, f.path, format, args...)
}

// read reads all except the graphs. The graphs' offsets are stored at the end of the file,
// followed by their size in bytes.
func (f *File) read() error {
	c := &cursor{file: f}
	c.magic(fileMagic, "a file of dgl.save_graphs")
	version, kind, graphs := c.u64(), c.u64(), c.u64()
	switch {
	case c.err != nil:
		return c.err
	case version == 1:
		return f.Bad("it has version 1, of DGL before 0.5").Then("load it with that DGL and save it with DGL 0.5 or later")
	case version != 2 || kind != 2:
		return f.Bad("it has version %d and type %d, supported is version 2 of type 2", version, kind).Then("save it with dgl.save_graphs")
	}
	if uint64(len(f.bytes)) < head+8 || graphs > uint64(len(f.bytes))/8 {
		return f.Bad("it has %d bytes but claims %d graphs", len(f.bytes), graphs).Then(truncated)
	}
	end := len(f.bytes) - 8
	places := end - 8*int(graphs)
	if size := binary.LittleEndian.Uint64(f.bytes[end:]); size != 8+8*graphs || places < head+16 ||
		binary.LittleEndian.Uint64(f.bytes[places-8:]) != graphs {
		return f.Bad("it does not end with the offsets of its %d graphs", graphs).Then(truncated)
	}
	f.Graphs, f.starts = int(graphs), f.bytes[places:end]
	c.at = head + 8 // after where the graphs begin
	f.Labels = c.tensors("label")
	return c.err
}

const truncated = "fetch the file again, it is damaged or truncated"

// Graph is one graph of a file.
type Graph struct {
	Vertices int64
	// Ends are the edges in the order of their ids [2 x edges]: a row of sources, one of
	// destinations, uint32. They are not checked against Vertices.
	Ends                 *npy.Array
	VertexData, EdgeData []Tensor
}

// Graph reads a graph, counted from 0.
func (f *File) Graph(number int) (*Graph, error) {
	start := binary.LittleEndian.Uint64(f.starts[8*number:])
	if start < head || start > uint64(len(f.bytes)) {
		return nil, f.Bad("graph %d begins at byte %d of %d", number, start, len(f.bytes)).Then(truncated)
	}
	c := &cursor{file: f, at: int(start)}
	c.magic(heteroMagic, "a graph")
	types := c.metaGraph()
	relations := c.u64()
	if c.err != nil {
		return nil, c.err
	}
	if types != 1 || relations != 1 {
		return nil, f.Bad("graph %d has %d vertex types and %d edge types", number, types, relations).
			Then("save it as a graph with one of each: dgl.to_homogeneous(g, ndata=[…])")
	}
	e := c.unitGraph()
	counts := c.u64()
	g := &Graph{Vertices: c.i64()}
	if c.err == nil && counts != 1 {
		c.fail("%d vertex counts for one type", counts)
	}
	for _, to := range []*[]Tensor{&g.VertexData, &g.EdgeData} {
		if n := c.u64(); c.err == nil && n != 1 {
			c.fail("tensors of %d types, expected one", n)
		}
		*to = c.tensors("tensor")
	}
	if c.err != nil {
		return nil, c.err
	}
	var err error
	g.Ends, err = e.ends(g.Vertices)
	return g, err
}
