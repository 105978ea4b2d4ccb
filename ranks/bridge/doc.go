// Package bridge carries tensor tasks between graph ranks and a bridge rank, which
// has them done by invocations of a function (Dorylus, OSDI'21, §3: data servers and
// Lambdas). A Client is a graph rank's side, and a tensor.Transport; a Bridge serves
// the clients of several parts, each with a transport of its own behind it.
//
// Messages go point to point, by the outer world of the run, of which bridges are the
// last members. No collective has bridges in it. A silent one makes tasks late, whose
// attempts hold their places as long as an invocation may live: as a rule other ranks'
// limits of waiting end the job before the CPU takes over.
package bridge
