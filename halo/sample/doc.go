// Package sample samples the vertices and edges of mini-batches, new in every step: a
// Field.
//
// Neighbours samples layer by layer, from the vertices of the loss outwards, at most a
// given number of neighbours per vertex (GraphSAGE, Hamilton et al., NIPS'17, algorithm 2).
// The owner of a vertex samples its neighbours, so that a field crosses ranks as the graph
// does. Then the features of its rows are fetched from their owners (DistDGL, Zheng et al.,
// arXiv 2010.05337). A sample depends on seed, step, layer and vertex (kernels.Sample), and
// on the owner's order of neighbours, but not on threads. Two ranks that sample the same
// vertex in the same step get the same neighbours.
//
// Edges include their features if the network uses them.
//
// Clusters joins some of the clusters of a rank's own vertices, with the edges between
// vertices of these clusters (Cluster-GCN, Chiang et al., KDD'19). Walks joins the vertices of
// random walks, and normalises losses and edges (GraphSAINT, Zeng et al., ICLR'20).
//
// Functions are collective where their comment says so; each rank's fields are its own.
package sample
