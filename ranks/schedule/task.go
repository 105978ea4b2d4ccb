package schedule

import "fmt"

// Stage is the kind of a task.
type Stage uint8

// The stages in the order in which an interval passes them: each stage up to Apply once per layer,
// and each stage from ApplyBackward on once per layer of the backward pass.
const (
	Emit                Stage = iota // AV: the rows that neighbours gather
	Send                             // SC: rows are sent to other ranks
	Receive                          // SC: ghost rows have arrived
	Sum                              // GA: partial sums for other ranks, before Send
	EmitGhosts                       // AV: rows of ghosts that are computed here
	PlaceGhosts                      // SC: computed and received rows of ghosts are put together
	LoadSlice                        // GA: a slice of columns of the rows is copied, to be gathered
	GatherSlice                      // GA of the slice; GatherOwn gathers the last one
	GatherOwn                        // GA along edges from own vertices
	GatherGhosts                     // GA along edges from ghosts
	Total                            // SC: sums over the vertices of all ranks
	Apply                            // AV
	Loss                             // loss and its gradient
	ApplyBackward                    // ∇AV
	GhostGrads                       // ∇GA towards ghosts
	EmitGhostsBackward               // ∇AV of ghosts whose rows are computed here
	SendBackward                     // ∇SC: gradients of ghosts are sent to their owners
	ReceiveBackward                  // ∇SC: gradients of own vertices have arrived
	LoadSliceBackward                // ∇GA: the same on the backward pass
	GatherSliceBackward              // ∇GA of the slice; GatherBackward gathers the last one
	GatherBackward                   // ∇GA towards own vertices
	AddSums                          // ∇GA: gradients of sums, towards own vertices
	TotalBackward                    // ∇SC: the same on the backward pass
	EmitBackward                     // ∇AV
	Update                           // WU
	stages
)

// names has the names of the kinds of task in reports.
var names = [stages]string{"AV", "SC", "SC", "GA", "AV", "SC", "GA", "GA", "GA", "GA", "SC", "AV", "loss", "∇AV", "∇GA", "∇AV", "∇SC",
	"∇SC", "∇GA", "∇GA", "∇GA", "∇GA", "∇SC", "∇AV", "WU"}

// Kinds returns the kinds of task in the order in which they are reported: gather,
// apply vertex and scatter with their gradients, loss, weight update (Dorylus,
// OSDI'21, §3).
func Kinds() []string { return []string{"GA", "AV", "SC", "loss", "∇AV", "∇GA", "∇SC", "WU"} }

// Kind returns the name of Dorylus's kind of task that s belongs to.
func (s Stage) Kind() string { return names[s] }

// Task is one stage on one interval, or on all intervals if Interval is Whole.
type Task struct {
	Stage    Stage
	Epoch    int
	Layer    int
	Interval int
	Slice    int // of LoadSlice and GatherSlice

	Ref int32 // for use by its Flow
}

// Whole is the Interval of a task on all intervals of a rank.
const Whole = -1

func (t Task) String() string {
	if t.Interval < 0 {
		return fmt.Sprintf("%s of layer %d in epoch %d", t.Stage.Kind(), t.Layer, t.Epoch)
	}
	return fmt.Sprintf("%s of layer %d, interval %d, in epoch %d", t.Stage.Kind(), t.Layer, t.Interval, t.Epoch)
}
