// Package neutronstar compares the ways to handle dependencies of NeutronStar (Wang et al.,
// SIGMOD'22): ranks receive the rows of their ghosts in every epoch (DepComm), compute them from
// inputs that were fetched once (DepCache), or choose the cheaper one (hybrid).
//
// A part is a table computed from timed trainings, in one process or on hosts of this machine
// with links of a chosen rate. Parts share trainings, which are stored in a folder. A short
// training before the first one of a graph and number of ranks makes its partitions, so that
// the time before the first epoch has no partitioning.
package neutronstar
