// Package protocol has the parameter server and the graph ranks' side of it: state machines
// without I/O, which take a message and return messages, and the wire format of the messages
// (Dorylus, OSDI'21, §5).
//
//   - Server has a replica of all weights, and stashes the version of each interval's forward
//     pass (§5.1).
//   - Chooser, one per graph rank, selects the server of an interval and an epoch, and
//     remembers it (§5.1).
//   - Progress, one per graph rank, determines the epochs that an interval may start under the
//     staleness bound s (§5.2).
//   - Eager is a server that waits for no rank: it steps when a gradient arrives, with a bound
//     on its delay (DIGEST-A, ICLR'23 submission, §3.2). Runner is a graph rank's side of it.
//     The rest of this page is about the others.
//
// # Versions
//
// Version v is the weights that epoch v starts from in a synchronous run: all updates of the
// epochs before v, no other. A server works on version v+1, layer by layer, while version v is
// the latest; v+1 is the latest as soon as all its layers are complete. A version has the same
// bits on all servers. So a server does not send a version to a rank that still has the version,
// and a checkpoint of a version is valid for all servers.
//
// An interval in epoch e receives the latest version v of its server, which delays a Fetch
// until v ≥ e-s. So e-s ≤ v ≤ e: the bound holds for weights too, and with s = 0 they are
// the weights of a synchronous run.
//
// A server stashes at most s+1 versions, including the latest: an interval that still owes
// gradients of epoch e took v ≥ e-s. Until these gradients arrive, the latest version is at most
// e, hence v ≥ latest-s. With the version in progress that is s+2 copies of the weights, for
// any number of intervals.
//
// # Synchronous runs
//
// A synchronous run is staleness 0 with one interval per graph rank and Fixed choices: one
// version at a time. Whether an epoch is trained is known only after its weights are
// evaluated. So a rank first Pulls them, without obligation. When it begins to train, it
// Fetches the version that it has, without values.
//
// # An epoch
//
//	rank → its choice   Fetch(interval, epoch)             forward pass
//	choice → rank       Weights(version)
//	rank → all servers  Close(epoch, how many chose you)   after its last interval's choice
//	rank → its choice   FetchStash(interval, epoch)        backward pass, any number of times
//	choice → rank       Weights(the same version)
//	rank → its choice   Gradient(interval, epoch, layer)   once a layer
//	server → servers    Sum(epoch, layer)                  once a layer
//	rank → all ranks    Finished(epoch)                    after its last interval's last gradient
//
// A server can send its sum only after the last gradient of that epoch, but intervals choose
// servers freely. Close solves this: messages between two ranks are ordered, so after a rank's
// Close a server has received all of that rank's Fetches, and knows which gradients will
// arrive. That is one empty message per rank, server and epoch. Design note: notifying all
// servers of each choice takes one message per server and interval; growing sums with counts
// take several messages as large as the weights.
//
// There is no cyclic wait. A Close depends only on choices, a choice only on the staleness
// bound. A Fetch of epoch e waits for the updates of epoch e-1-s; the bound let it start
// because all intervals had finished that epoch, so that all its Closes and gradients were
// already in transit. A Fetch of version e itself (FetchNewest) is sent when all intervals
// have finished e-1.
//
// # Order of sums
//
// A server adds its gradients in ascending order of ranks, then intervals; all servers add the
// sums in ascending order of servers. The position of a gradient depends on the interval's
// server, never on the order of arrival. A gradient that arrives before an earlier one in this
// order waits.
//
// # Contract
//
// Nothing here is collective, blocks, or may be called by several goroutines at a time.
// Messages between the same two ranks must be delivered in the order in which they were sent:
// over package world that takes one tag for all of them. Values of a message given to Step are
// not retained; values of returned messages are valid until the machine's next call. After its
// last epoch a graph rank processes messages until Progress.Slowest has reached that epoch,
// pulls the version after it if it needs the trained weights, and leaves; a server runs until
// Done. An error says that the sender named in it broke the protocol; the machine must not be
// used afterwards.
package protocol
