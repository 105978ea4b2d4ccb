// Package bridge sends tensor tasks from graph ranks to a bridge rank, which runs them as
// invocations of a function (Dorylus, OSDI'21, §3: data servers and Lambdas). A Client is
// the graph rank's side, and a tensor.Transport. A Bridge serves the clients of several
// parts, with one transport for each.
//
// Messages are point-to-point in the outer world of the run, whose last members are the
// bridges. Bridges take part in no collective. A silent bridge delays tasks, whose attempts
// keep their slots for the maximal lifetime of an invocation. Usually the wait limits of
// other ranks end the job before the CPU takes over.
package bridge
