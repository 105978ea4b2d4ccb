// Package graphwork multiplies by the adjacency matrix on one rank: gathers
// (GA) and their gradients (∇GA), with coefficients or with attention on the
// edges, on an interval of the own vertices at a time.
//
// A Layer is what the vertices of a rank see of each other and of ghosts in one
// layer: the rows that were emitted and the gradients of what was gathered. Who
// fills in those of other ranks, and when, is the schedule's business. So is
// the order of calls: a gather reads the rows of all intervals, and none of
// them may be written meanwhile. Calls on different intervals are independent.
package graphwork
