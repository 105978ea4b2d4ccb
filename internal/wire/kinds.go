package wire

import "fmt"

// Kind is the kind of a message. Messages with different kinds may share a tag or a connection.
type Kind uint8

// The kinds of messages. The package in parentheses sends and receives them.
const (
	// Weights and gradients (ranks/params/protocol), between graph ranks and servers. The fields of a
	// protocol.Message that are in use are in brackets. Without another note a graph rank sends it to a server.
	Fetch      Kind = iota + 1 // request weights for a forward pass [Interval; Epoch; Version (the rank's or 0); Count (1: at least Epoch)]
	FetchStash                 // request the same weights for the backward pass [as Fetch]
	Weights                    // to a graph rank [Interval; Epoch; Version; Load; Values (none if the rank has that version)]
	Gradient                   // [Interval; Epoch; Layer; Values]
	Close                      // no further intervals choose this server in Epoch [Epoch; Count (intervals that chose it)]
	// between servers: sum of the sender's gradients [Epoch; Layer; Count (summands); Values (none if Count
	// is 0)]
	Sum
	Pull     // request the latest weights from Version on, without a stash [Version]
	Leave    // the rank is done []
	Finished // between graph ranks: all intervals of the rank have finished Epoch [Epoch]
	State    // request the optimiser's state from Version on [Version]; the response [Version; Values (slot after slot)]
	End      // fully asynchronous (Eager): end with the current epoch [Epoch (the last reported one)]

	// Ghost rows of refresh.Bounded: rows of own vertices, and gradients of ghosts (halo/refresh).
	// The numbers are layer, epoch, the first row's place in the list that sender and receiver share,
	// and the number of rows; the body is a block of package codec.
	Rows
	RowGrads

	// Results and ends of asynchronous graph ranks (ranks/engine).
	Tally      // a rank's results of an epoch, for rank 0 [epoch; body: float64]
	Stop       // the last epoch of all ranks, from rank 0 [epoch]
	RowsStored // fully asynchronous: the rows of a layer are stored [layer]
	Leaving    // fully asynchronous: the last message of a rank in this stretch

	// Stages of a pipeline (ranks/engine).
	Microbatch // [step, microbatch; body: its loss or 0 as float64, then rows of values]
	Progress   // at the beginning of a resumed step [number of received messages]

	// Packets of inproc between processes (ranks/world/parts).
	// The communicator is 0 in the last packet of a rank. The tag is the signature in a collective. The
	// sequence number is that of the collective, -1 in a message. The sender is a member that was ended,
	// or -1, in a last packet. The receiver is -1 for all.
	Packet // [communicator, tag, sequence number, sender, receiver; length and tag of a separate block]

	// Connections of a Mesh (ranks/world/alive).
	Hello     // begins a connection [sender, receiver, guest; body: request]
	Heartbeat // no data
	Report    // the following messages are of a survivor (ranks/world/parts): how its view ended
	Decision  // of the coordinator
	PartState // of a part that moves
	Copy      // of a part's state, for the shadow of its rank
	Copied    // confirms it
	Ask       // of a guest that is connected to all ranks

	// Frames of a Stream [tag of a block; body] (ranks/world/alive).
	StreamPacket
	BlockRequest
	Block

	// Between a graph rank and its bridge (ranks/bridge). Tasks and results are large: their kind is in
	// a trailer, so that they are not copied.
	Begin        // a lambda.Network, that of all later tasks; the reply is a refusal
	Task         // from task.Encode
	Ahead        // the task.Name of an attempt whose task comes later
	BridgeReport // the reply is the bridge's report
	Left         // a refusal, the final error of the part, which sends no more; the reply is empty
	Result       // from task.Work
	Failed       // a failing
	Spent        // a task.Spent
)

// layout is the layout of a kind's messages.
type layout struct {
	numbers int  // of the header
	width   int  // of a number, in bytes
	element int  // of the body, in bytes: the header counts them. open: it does not; 0: no body.
	note    bool // whether Note may be other than 0
}

const open = -1

var (
	weights  = layout{6, 4, 4, true}
	rows     = layout{4, 4, open, false}
	number   = layout{1, 4, 0, false}
	frame    = layout{0, 8, 1, false}
	tagged   = layout{1, 8, 1, false}
	trailing = layout{0, 0, open, false}
)

var kinds = [...]struct {
	name string
	layout
}{
	Fetch: {"fetch", weights}, FetchStash: {"fetch of stash", weights}, Weights: {"weights", weights}, Gradient: {"gradient", weights},
	Close: {"close", weights}, Sum: {"sum", weights}, Pull: {"pull", weights}, Leave: {"leave", weights}, Finished: {"finished", weights},
	State: {"state", weights}, End: {"end", weights},
	Rows: {"rows", rows}, RowGrads: {"gradients of rows", rows},
	Tally: {"tally", layout{1, 4, 8, false}}, Stop: {"stop", number}, RowsStored: {"rows stored", number}, Leaving: {"leaving", layout{}},
	Microbatch: {"microbatch", layout{2, 4, open, false}}, Progress: {"progress", number},
	Packet: {"packet", layout{7, 8, open, false}},
	Hello:  {"hello", layout{3, 8, 1, true}}, Heartbeat: {"heartbeat", frame}, Report: {"report", frame}, Decision: {"decision", frame},
	PartState: {"state of a part", frame}, Copy: {"copy", frame}, Copied: {"copied", frame}, Ask: {"ask", frame},
	StreamPacket: {"packet", tagged}, BlockRequest: {"block request", tagged}, Block: {"block", tagged},
	Begin: {"begin", trailing}, Task: {"task", trailing}, Ahead: {"ahead", trailing}, BridgeReport: {"bridge report", trailing},
	Left: {"left", trailing}, Result: {"result", trailing}, Failed: {"failed", trailing}, Spent: {"spent", trailing},
}

func (k Kind) String() string {
	if k == 0 || int(k) >= len(kinds) {
		return fmt.Sprintf("unknown kind %d", uint8(k))
	}
	return kinds[k].name
}
