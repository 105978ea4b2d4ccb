package schedule

import "fmt"

// Stage is the kind of a task.
type Stage uint8

// The stages in the order in which an interval goes through them: those up to
// Apply once a layer, and those from ApplyBackward on once a layer backward.
const (
	Emit               Stage = iota // AV: the rows that neighbours gather
	Send                            // SC: rows leave for other ranks
	Receive                         // SC: rows of ghosts have come
	Sum                             // GA: rows are added up for other ranks, before Send
	EmitGhosts                      // AV: the rows of ghosts whose features are known
	GatherOwn                       // GA along edges from own vertices
	GatherGhosts                    // GA along edges from ghosts
	Total                           // SC: sums over the vertices of all ranks
	Apply                           // AV
	Loss                            // loss and its gradient
	ApplyBackward                   // ∇AV
	GhostGrads                      // ∇GA towards ghosts
	EmitGhostsBackward              // ∇AV of ghosts whose features are known
	SendBackward                    // ∇SC: gradients of ghosts leave for their owners
	ReceiveBackward                 // ∇SC: gradients of own vertices have come
	GatherBackward                  // ∇GA towards own vertices
	AddSums                         // ∇GA: gradients of sums, towards own vertices
	TotalBackward                   // ∇SC: the same on the backward pass
	EmitBackward                    // ∇AV
	Update                          // WU
	stages
)

// names are the kinds of task as reports have them.
var names = [stages]string{"AV", "SC", "SC", "GA", "AV", "GA", "GA", "SC", "AV", "loss", "∇AV", "∇GA", "∇AV", "∇SC", "∇SC", "∇GA", "∇GA", "∇SC", "∇AV", "WU"}

// Kinds are the kinds of task in the order in which they are reported: gather,
// apply vertex and scatter with their gradients, loss, weight update (Dorylus,
// OSDI'21, §3).
func Kinds() []string { return []string{"GA", "AV", "SC", "loss", "∇AV", "∇GA", "∇SC", "WU"} }

// Kind is the name of Dorylus's kind of task that s is, or is a part of.
func (s Stage) Kind() string { return names[s] }

// Task is one stage on one interval, or on all of them where Interval is Whole.
type Task struct {
	Stage    Stage
	Epoch    int
	Layer    int
	Interval int

	Ref int32 // for the Flow that it is of
}

// Whole is the interval of a task on all of a rank's.
const Whole = -1

func (t Task) String() string {
	if t.Interval < 0 {
		return fmt.Sprintf("%s of layer %d in epoch %d", t.Stage.Kind(), t.Layer, t.Epoch)
	}
	return fmt.Sprintf("%s of layer %d, interval %d, in epoch %d", t.Stage.Kind(), t.Layer, t.Interval, t.Epoch)
}
