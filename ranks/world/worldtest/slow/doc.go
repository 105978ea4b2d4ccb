// Package slow makes the links of a world as slow as those of a cluster, so that
// a test in one process can tell what a network is worth.
//
// A Network has hosts, each with a link of a rate in either direction, and a
// latency between any two; messages within a host pass at once. What a rank of
// one of its worlds sends arrives when the links of both hosts have carried it,
// in the order of sending. Rates hold for all traffic of a host together. Nothing
// is counted for the ranks' own work.
package slow
