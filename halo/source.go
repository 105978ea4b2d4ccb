package halo

import "siafu/kernels"

// Slot names rows that travel between ranks: those of a layer in an epoch,
// forward to the ghosts of own vertices or backward, as gradients, to the
// owners of ghosts.
type Slot struct {
	Epoch, Layer int
	Backward     bool
	// Apart tells that the rows are none of a training series, such as those of
	// an evaluation.
	Apart bool
	// Ahead tells that they are of a pass that only refreshes ghosts, for the one that
	// trains in the same epoch and for later ones.
	Ahead bool
}

// Shape is a layer that gathers.
type Shape struct {
	Layer, Width int
	Backward     bool // gradients of ghosts go home, too
	Scores       int  // of attention: so many columns, the last ones, are scores
}

// View is rows of other ranks as a gather reads them, and of which epochs they
// are. Blocks are in ascending order and do not overlap; rows in none of them
// have never come, and are zeros. Epochs, where there are any, say it of each row:
// they count from 1, and 0 is one that is not there.
type View struct {
	Rows   kernels.Mat
	Blocks []Block
	Epochs []int32
}

// Each visits the rows of one epoch each that have come, in ascending order.
func (v View) Each(visit func(b Block)) {
	for _, b := range v.Blocks {
		visit(b)
	}
	for first := 0; first < len(v.Epochs); {
		end := first + 1
		for end < len(v.Epochs) && v.Epochs[end] == v.Epochs[first] {
			end++
		}
		if epoch := int(v.Epochs[first]); epoch > 0 {
			visit(Block{first, end - first, epoch})
		}
		first = end
	}
}

// Block says of which epoch the rows First..First+Rows-1 are.
type Block struct{ First, Rows, Epoch int }

// Source supplies the ghosts of a rank's gathers, and takes own rows to the ranks
// that hold them as ghosts. Which rows travel in an epoch, and of which epoch
// those are that a gather reads, is the policy: Always is exact, package refresh
// has the others.
//
// A slot's rows are written, and handed over with Offer. Once Arrived is true, and
// what has come has been put into its place with Take, gathers forward read what
// Want returns, and gradients backward are added to own ones with Add.
//
// Calls for one layer and direction exclude each other, but that several workers
// may Want and Add at once; Arrived is called beside all of them. Calls for
// different layers or directions are independent. None of them allocates once
// every layer has been gone through.
//
// Design note: synchronous passes and bounded asynchrony share this much and no
// more. In step, all rows of a slot leave and come together, in collective
// transfers that somebody has to wait for and to move on (Collective). In bounded
// asynchrony rows leave interval by interval, and come in messages that must stay
// in line with those of the parameter protocol, since the bound follows from
// their order: whoever receives hands them over (Receiver). Waiting in the one way
// and in the other is not the same act, and one interface with both would have
// had methods that do nothing in each. A policy that leaves rows out takes none
// from Offer and has no Room for them, and a prediction is a Source that wraps another
// one and changes what Want returns.
type Source interface {
	// Room is where rows are written that are made for other ranks alone, before
	// they are offered, and none where these do not leave: forward the plan's sums [Sums x Width], none in a source
	// without, backward the gradients of ghosts [Ghosts x Width].
	Room(s Slot) kernels.Mat
	// Offer hands rows lo..hi-1 over, which may change when it returns: forward of
	// own rows [Own x Width], backward of Room. Rows may be offered in parts as
	// soon as they are made, but to a Collective all at once.
	Offer(s Slot, rows kernels.Mat, lo, hi int) error
	// Arrived tells, without waiting, whether a gather of the slot may go on as
	// far as other ranks' rows are concerned.
	Arrived(s Slot) (bool, error)
	// Take puts rows that have come into their place: forward the ghosts
	// lo..hi-1, of which there may be none.
	Take(s Slot) (lo, hi int, err error)
	// Want is what a gather of the slot reads: forward the rows of ghosts [Ghosts
	// x Width], backward, after Add, the gradients of the plan's sums [Sums x
	// Width]. It is an error if rows are of an epoch that the policy excludes.
	Want(s Slot) (View, error)
	// Add adds to own rows lo..hi-1 of own [Own x Width] the gradients that other
	// ranks hold of them, in ascending order of ranks.
	Add(o kernels.Ops, s Slot, own kernels.Mat, lo, hi int) error
	// TakeStats returns what has travelled since the last call.
	TakeStats() Stats
}

// Collective is a source of synchronous passes. In every epoch each slot that
// gathers is gone through once, and forward once more before where the source asks for
// a pass ahead, and in the same order on all ranks; Offer, Take
// and Add are collective. Arrived, Await and Progress are called by one worker at
// a time.
type Collective interface {
	Source
	// Reserve makes the room that Offer would make else for what codecs lose of a
	// layer.
	Reserve(l Shape)
	// Await returns when the rows of a slot have arrived.
	Await(s Slot) error
	// Progress moves transfers on that nobody waits for yet. It does not wait.
	Progress() error
	// Settle ends every transfer that is still under way and forgets its rows.
	// Collective.
	Settle() error
}

// Receiver is a source that is handed the messages which bring its rows, in the
// order in which each rank has sent them.
type Receiver interface {
	Source
	// Accept takes a message of a rank, which belongs to the source from then on.
	// If its rows are of any use, due is true: then Take is to be called once for
	// the slot.
	Accept(from int, message []byte) (s Slot, due bool, err error)
	// Oldest is the epoch of the oldest row that is in its place, 0 while one has
	// never come, and math.MaxInt where none is to come.
	Oldest(s Slot) int
}

// Add adds the counts of o.
func (s *Stats) Add(o Stats) {
	s.RawBytes += o.RawBytes
	s.SentBytes += o.SentBytes
	s.Messages += o.Messages
	s.Encode += o.Encode
	s.Wait += o.Wait
	s.Decode += o.Decode
}
