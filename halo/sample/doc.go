// Package sample draws the vertices and edges of mini-batches that are made anew in every
// step: a Field.
//
// Neighbours samples them layer by layer, from vertices that a loss is of outwards, at
// most so many neighbours of each (GraphSAGE, Hamilton et al., NIPS'17, algorithm 2).
// Whoever owns a vertex draws its neighbours, so that a field leads across ranks like
// the graph does; then the features of its rows are fetched from their owners (DistDGL,
// Zheng et al., arXiv 2010.05337). A draw is a function of seed, step, layer and vertex
// (kernels.Sample), and of the order in which the owner has its neighbours: not of
// threads, and what two ranks sample of one vertex in one step is the same.
//
// Edges bring their features along where the network takes some.
//
// Clusters joins some of the clusters that the own vertices of a rank are cut into, with
// the edges that both ends of are in them (Cluster-GCN, Chiang et al., KDD'19).
//
// Calls are collective where they say so; each rank's fields are its own.
package sample
