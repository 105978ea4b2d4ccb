// Package graphwork multiplies by the adjacency matrix on one rank: gathers (GA) and their
// gradients (∇GA), with coefficients or attention on the edges, for one interval of the own
// vertices at a time.
//
// A Layer has the rows of own vertices and ghosts in one layer, the gradients of gathered
// rows, and a Gather: sums, attention or maxima. Sums read each matrix in a form, such as
// bfloat16. The schedule decides when rows of other ranks are written. It also orders
// the calls: a gather reads the rows of all intervals, which must not change meanwhile.
// Calls on different intervals are independent.
package graphwork
