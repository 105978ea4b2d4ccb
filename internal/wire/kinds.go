package wire

import "fmt"

// Kind is the kind of a message. Messages with different kinds may share a tag or a connection.
type Kind uint8

// The kinds of messages. The package in parentheses sends and receives them.
const (
	// Weights and gradients (ranks/params/protocol).
	Fetch Kind = iota + 1
	FetchStash
	Weights
	Gradient
	Close
	Sum
	Pull
	Leave
	Finished
	State
	End

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
	Packet // [communicator, tag, sequence number, sender, receiver, separate block]

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
	name    string
	numbers int // of the header
	width   int // of a number, in bytes
	element int // of the body, in bytes: the header counts them. open: it does not; 0: no body.
}

const (
	open = -1

	maxNumbers = 6
)

var layouts = [...]layout{
	Fetch: {"fetch", 6, 4, 4}, FetchStash: {"fetch of stash", 6, 4, 4}, Weights: {"weights", 6, 4, 4}, Gradient: {"gradient", 6, 4, 4},
	Close: {"close", 6, 4, 4}, Sum: {"sum", 6, 4, 4}, Pull: {"pull", 6, 4, 4}, Leave: {"leave", 6, 4, 4},
	Finished: {"finished", 6, 4, 4}, State: {"state", 6, 4, 4}, End: {"end", 6, 4, 4},
	Rows: {"rows", 4, 4, open}, RowGrads: {"gradients of rows", 4, 4, open},
	Tally: {"tally", 1, 4, 8}, Stop: {"stop", 1, 4, 0}, RowsStored: {"rows stored", 1, 4, 0}, Leaving: {"leaving", 0, 4, 0},
	Microbatch: {"microbatch", 2, 4, open}, Progress: {"progress", 1, 4, 0},
	Packet: {"packet", 6, 8, open},
	Hello:  {"hello", 3, 8, 1}, Heartbeat: {"heartbeat", 0, 8, 1},
	Report: {"report", 0, 8, 1}, Decision: {"decision", 0, 8, 1}, PartState: {"state of a part", 0, 8, 1},
	Copy: {"copy", 0, 8, 1}, Copied: {"copied", 0, 8, 1}, Ask: {"ask", 0, 8, 1},
	StreamPacket: {"packet", 1, 8, 1}, BlockRequest: {"block request", 1, 8, 1}, Block: {"block", 1, 8, 1},
	Begin: {"begin", 0, 0, open}, Task: {"task", 0, 0, open}, Ahead: {"ahead", 0, 0, open}, BridgeReport: {"bridge report", 0, 0, open},
	Left: {"left", 0, 0, open}, Result: {"result", 0, 0, open}, Failed: {"failed", 0, 0, open}, Spent: {"spent", 0, 0, open},
}

func (k Kind) String() string {
	if k == 0 || int(k) >= len(layouts) {
		return fmt.Sprintf("unknown kind %d", uint8(k))
	}
	return layouts[k].name
}
