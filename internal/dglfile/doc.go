// Package dglfile reads files of DGL's dgl.save_graphs: version 2 of the format, which DGL
// writes since 0.5, of graphs with one type of vertices and one of edges.
//
// The format is that of DGL's own sources (src/graph/serialize/heterograph_serialize.cc,
// src/graph/unit_graph.cc, src/runtime/ndarray.cc and dmlc-core's serializer.h), all numbers
// little-endian; docs/importing.md draws it. The format has no compression. Tensors become
// npy.Arrays, whose bytes stay in the mapped file. For any content the result
// is a value or a fault of kind Data that names the file and the position.
package dglfile
