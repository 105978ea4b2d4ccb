// Package model implements the networks, one file each. Start at Kind and Layer.
//
// A network is divided at the points where rows are sent to neighbours and where they
// return (Dorylus, OSDI'21, §3): Layer.Emit is the part of apply-vertex
// before the gather, and Layer.Apply the part after it. In each file the gradient
// follows its forward function. The caller owns the edges and computes the gather and
// all other products with the adjacency matrix; a network only specifies the
// coefficients of the edges.
//
// A Kind describes a network: its weights, its layers, its coefficients. kinds.go
// lists the named kinds; a Spec can carry another one. A layer allocates its
// matrices, weights and input with a Builder. docs/models.md describes how to write a
// network.
//
// Weights are one flat vector with named views, so that a parameter server, an
// optimiser and a file format do not depend on layers.
//
// One goroutine uses a network; its kernels run on the rank's team.
package model
