// Package cover finds small vertex covers of bipartite graphs: sets of sources and
// destinations such that each edge has an end in the set.
//
// If the sources are on one rank and the destinations on another, gathering needs one row
// per vertex of a cover: sources in the cover are sent unchanged, and each destination in
// the cover gets the sum of its sources outside the cover.
//
// The cover is minimal, or certified to be near the minimum if the search was cut short.
// Everything is sequential and deterministic; calls on different blocks are independent.
package cover
