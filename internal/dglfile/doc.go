// Package dglfile reads files of DGL's dgl.save_graphs: version 2 of the format, which DGL
// writes since 0.5, of graphs with one type of vertices and one of edges.
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
package dglfile
