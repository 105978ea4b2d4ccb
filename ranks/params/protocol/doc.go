// Package protocol is the parameter server and what graph ranks need beside it:
// state machines without I/O, which take a message and return messages, and the
// wire form of the messages (Dorylus, OSDI'21, §5).
//
//   - Server holds a replica of all weights, and stashes for an interval the
//     version that its forward pass took (§5.1).
//   - Chooser, one a graph rank, picks the server of an interval and an epoch,
//     and remembers it (§5.1).
//   - Progress, one a graph rank, knows which epochs an interval may start
//     under the staleness bound s (§5.2).
//   - Eager is a server that waits for no rank: it steps when a gradient has come,
//     with a bound on its delay (DIGEST-A, ICLR'23 submission, §3.2). Runner is a graph rank's
//     side of it. What follows is of the others.
//
// # Versions
//
// Version v is the weights that epoch v starts from in a synchronous run: all
// updates of the epochs before v, no other. A server works on version v+1,
// layer by layer, while version v is the latest; v+1 is the latest as soon as
// all its layers are there. Versions of one number have the same bits on all
// servers, so a rank that still holds a version need not be sent it again, and
// a checkpoint of a version is one of all servers.
//
// An interval in epoch e takes the latest version v of its server, which keeps
// a Fetch until v ≥ e-s. So e-s ≤ v ≤ e: the bound holds for weights too, and
// with s = 0 they are those of a synchronous run.
//
// A server stashes at most s+1 versions, the latest among them: an interval
// that still owes gradients of epoch e took v ≥ e-s, and as long as it owes
// them the latest version is at most e, hence v ≥ latest-s. With the one in
// the making that is s+2 copies of the weights, however many intervals there
// are.
//
// # Synchronous runs
//
// A synchronous run is staleness 0 with one interval a graph rank and Fixed
// choices: one version at a time. Whether an epoch is trained at all is known
// only when its weights have been evaluated, so a rank Pulls them, which binds
// it to nothing, and Fetches the version that it holds, without values, when it
// begins to train.
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
// A server can only send its sum when no more gradients of that epoch will
// come, but intervals choose servers freely. Close tells: messages between two
// ranks keep their order, so after a rank's Close a server has had all of that
// rank's Fetches, and knows exactly whose gradients are to come. That is one
// empty message a rank, server and epoch. Design note: telling all servers of
// each choice takes one a server and interval; sums that carry counts and are
// sent as they grow take several messages as large as the weights.
//
// Nothing waits in a circle. A Close follows from choices alone, a choice from
// the staleness bound alone. A Fetch of epoch e waits for the updates of epoch
// e-1-s; the bound let it start because all intervals had finished that epoch,
// so that all Closes and gradients of it were already on their way. One that asks for
// version e itself (FetchNewest) is sent when all intervals have finished e-1.
//
// # Order of sums
//
// A server adds its gradients in ascending order of ranks, then intervals; all
// servers add the sums in ascending order of servers. Which server an interval
// chooses decides where its gradient stands, the order of arrival never does.
// A gradient that arrives before one that is to be added earlier waits.
//
// # Contract
//
// Nothing here is collective, blocks, or may be called by several goroutines at
// a time. Messages between the same two ranks must be delivered in the order in
// which they were sent: over package world that takes one tag for all of them.
// Values of a message given to Step are not kept; those of messages that a
// machine returns stand until its next call. After its last epoch a graph rank
// takes messages until Progress.Slowest has reached that epoch, pulls the
// version after it where it needs the trained weights, and leaves; a server runs
// until Done. An error says that the sender named in it broke the protocol; the
// machine is of no use afterwards.
package protocol
