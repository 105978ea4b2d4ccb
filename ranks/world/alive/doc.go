// Package alive connects the ranks of a world by TCP. It reports ranks that have ended, which MPI
// does not report, and carries messages to the others after that.
//
// Each rank has a connection to each other rank, and sends a heartbeat over an idle one. The end of a
// connection means that the process has ended if its port refuses another connection. A host that
// was cut off, and a process that was stopped, are silent. Lost distinguishes the two, because only
// silent ranks may still compute.
//
// A process that was started later is a guest (Join), and a rank after Admit. It has a second connection
// to each rank, a Stream for data, because MPI cannot add processes. The token of the world in Contacts
// keeps other programs out: a connection without it costs a rank a few bytes for a few seconds. Nothing is
// encrypted.
package alive
