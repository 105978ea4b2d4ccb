// Package model holds the networks, one file each.
//
// A network is cut where rows leave a vertex for its neighbours and where they
// come back (Dorylus, OSDI'21, §3): Layer.Emit is the part of apply-vertex
// before the gather, Layer.Apply the part after it, and each is followed in
// its file by its gradient. The gather itself, and everything else that
// multiplies by the adjacency matrix, belongs to the caller, who owns the
// edges; a network only says which coefficients the edges carry.
//
// A Kind describes a network: its weights, its layers, its coefficients. Those
// that have a name are a table in kinds.go; a Spec can carry another one. A
// layer takes its room, its weights and its input from a Builder. docs/models.md
// says how to write one.
//
// Weights are one flat vector with named views, so that a parameter server, an
// optimiser and a file need to know nothing of layers.
//
// A network is used by one goroutine; its kernels run on the rank's team.
package model
