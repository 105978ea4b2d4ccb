// Package alive connects the ranks of a world by TCP. It reports ranks that have ended, which MPI
// does not report, and carries messages to the others after that.
//
// Each rank has a connection to each other rank, and sends a heartbeat over an idle one. The end of a
// connection means that the process has ended if its port refuses another connection. A host that
// was cut off, and a process that was stopped, are silent. Lost distinguishes the two, because only
// silent ranks may still compute.
package alive
