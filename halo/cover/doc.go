// Package cover finds small vertex covers of bipartite graphs: sets of sources
// and destinations such that each edge has an end in the set.
//
// Where sources lie on one rank and destinations on another, the edges between
// them can be gathered with as many rows as a cover has vertices: a source in
// it is sent as it is, and for a destination in it the sum of those of its
// sources that are not.
//
// The cover is a minimum one, or one that is certified to be near it where the
// search was cut short. Everything is sequential and deterministic; calls on
// different blocks are independent.
package cover
