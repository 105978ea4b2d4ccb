package pipeline

import "fmt"

// Op is the operation of an Instruction.
type Op uint8

// The operations. Those from RedundantForward to ReceiveRedundantGradients are redundant: they only
// prepare for the loss of a stage.
const (
	ReceiveActivations        Op = iota // the input of Stage, from Peer = Stage-1
	Forward                             // forward pass of Stage
	SendActivations                     // the output of Stage, to Peer = Stage+1
	ReceiveGradients                    // the gradient of the output of Stage, from Peer = Stage+1
	Backward                            // backward pass of Stage; adds to the gradients of its weights
	SendGradients                       // the gradient of the input of Stage, to Peer = Stage-1
	Reduce                              // adds the gradients of Stage over all pipelines
	Apply                               // steps the optimiser of Stage
	RedundantForward                    // forward pass of Stage on its shadow
	Spill                               // moves the result of RedundantForward to slower memory
	RedundantBackward                   // backward pass of Stage on its shadow
	SendRedundantGradients              // the gradient of the output of Stage, from Stage+1 to Peer, its shadow
	ReceiveRedundantGradients           // the same on the shadow, from Peer = Stage+1

	operations = iota
)

var opNames = [operations]string{"receive-activations", "forward", "send-activations", "receive-gradients", "backward",
	"send-gradients", "reduce", "apply",
	"redundant-forward", "spill", "redundant-backward", "send-redundant-gradients", "receive-redundant-gradients"}

func (o Op) String() string { return opNames[o] }

// Redundant reports whether the operation only prepares for the loss of a stage.
func (o Op) Redundant() bool { return o >= RedundantForward }

// Sends reports whether the operation sends a message.
func (o Op) Sends() bool {
	return o == SendActivations || o == SendGradients || o == SendRedundantGradients
}

// Receives reports whether the operation waits for a message.
func (o Op) Receives() bool {
	return o == ReceiveActivations || o == ReceiveGradients || o == ReceiveRedundantGradients
}

// None is the Microbatch of Reduce and Apply, and the Peer of instructions without a message.
const None = -1

// Instruction is one operation of a list.
type Instruction struct {
	Op         Op
	Stage      int // whose layers; of a redundant operation, the stage that it protects
	Microbatch int // from 0
	Peer       int // stage at the other end of the message
}

func (i Instruction) String() string {
	text := fmt.Sprintf("%s stage=%d", i.Op, i.Stage)
	if i.Microbatch != None {
		text += fmt.Sprintf(" microbatch=%d", i.Microbatch)
	}
	if i.Peer != None {
		text += fmt.Sprintf(" peer=%d", i.Peer)
	}
	return text
}

// Kind is the order of forward and backward passes.
type Kind uint8

// The schedules.
const (
	OneForwardOneBackward Kind = iota // PipeDream's 1F1B, figure 3.1(c)
	GPipe                             // all forward passes, then all backward passes, figure 3.1(b)
)

func (k Kind) String() string { return [...]string{"1f1b", "gpipe"}[k] }

// Redundancy is the work that a stage does for its successor in each step (§3.5.1).
type Redundancy uint8

// The levels of redundancy.
const (
	Off                  Redundancy = iota
	LazyForwardBackward             // lazy FRC, lazy BRC: all work after a loss
	EagerForward                    // eager FRC, lazy BRC: Bamboo's choice
	EagerForwardBackward            // eager FRC, eager BRC
)

func (r Redundancy) String() string { return [...]string{"off", "lflb", "eflb", "efeb"}[r] }

// Settings describe a step of a pipeline.
type Settings struct {
	Stages       int // P, at least 1
	Microbatches int // K, at least 1
	Schedule     Kind
	Redundancy   Redundancy
}

// Shadow returns the stage whose rank protects a stage: its predecessor. The shadow of stage 0 is the last
// stage, and a pipeline of one stage has no other shadow than itself.
func (s Settings) Shadow(stage int) int { return (stage + s.Stages - 1) % s.Stages }

// Successor returns the stage that a stage protects.
func (s Settings) Successor(stage int) int { return (stage + 1) % s.Stages }

// InFlight returns the highest number of microbatches whose activations a stage stores at one time for its
// own backward passes: K for GPipe, and at most P-stage for 1F1B.
func (s Settings) InFlight(stage int) int {
	if s.Schedule == GPipe {
		return s.Microbatches
	}
	return min(s.Stages-stage, s.Microbatches)
}
