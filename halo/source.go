package halo

import "siafu/kernels"

// Slot identifies exchanged rows: the rows of a layer in an epoch, forward to the ghosts of
// own vertices, or backward as gradients to the owners of ghosts.
type Slot struct {
	Epoch, Layer int
	Backward     bool
	// OutsideTraining marks rows that do not belong to the series of training epochs, such as
	// rows of an evaluation.
	OutsideTraining bool
	// Ahead marks rows of a pass that only refreshes ghosts, for the training pass of the
	// same epoch and for later ones.
	Ahead bool
}

// Shape describes a layer that gathers.
type Shape struct {
	Layer, Width int
	Backward     bool // gradients of ghosts are returned, too
	Scores       int  // of attention: the last Scores columns are scores
}

// View has the rows of other ranks as a gather reads them, with their epochs. Blocks are in
// ascending order and do not overlap. Rows outside all blocks have never arrived, and are
// zeros. Epochs, if present, has the epoch of each row, from 1; 0 marks an absent row.
type View struct {
	Rows   kernels.Mat
	Blocks []Block
	Epochs []int32
}

// ForEachBlock visits the received rows as blocks of one epoch, in ascending order.
func (v View) ForEachBlock(visit func(b Block)) {
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

// Block gives the epoch of the rows First..First+Rows-1.
type Block struct{ First, Rows, Epoch int }

// Source provides the ghost rows of a rank's gathers, and sends own rows to the ranks that
// have them as ghosts. The policy decides which rows are sent in an epoch, and of which
// epoch the gathered rows are. Always is exact; package refresh has the other policies.
//
// The caller writes a slot's rows and passes them to Offer. After Arrived has returned true and
// Take has stored the received rows, forward gathers read the result of View. Backward passes add
// gradients to own rows with Add.
//
// Calls for one layer and direction exclude each other, except that several workers may call
// View and Add at once. Arrived may run beside all of them. Calls for different layers or
// directions are independent. No call allocates once every layer has been used.
//
// Design note: synchronous passes and bounded asynchrony share only this interface. In
// synchronous modes, all rows of a slot are sent and received together, in collective
// transfers that a caller must wait for and progress (Collective). In bounded asynchrony each
// interval sends its rows, and they arrive in messages whose order relative to the parameter
// protocol matters, because the bound follows from their order. Therefore the receiver of
// messages passes them to the source (Receiver). The two kinds of waiting differ, and a single
// interface would have methods that do nothing in one mode. A policy that omits rows takes
// none from Offer and has no SendBuffer for them. A prediction is a Source that wraps another
// one and changes the result of View.
type Source interface {
	// SendBuffer returns the matrix for rows that are computed only for other ranks, before
	// they are offered. It is empty if these rows are not sent. Forward it has the plan's sums
	// [Sums x Width], if the source has any; backward the gradients of ghosts [Ghosts x
	// Width].
	SendBuffer(s Slot) kernels.Mat
	// Offer sends rows lo..hi-1: forward of own rows [Own x Width], backward of SendBuffer.
	// The caller may change them when it returns. Rows may be offered in parts as soon as they
	// are computed, but a Collective takes all at once.
	Offer(s Slot, rows kernels.Mat, lo, hi int) error
	// Arrived reports, without waiting, whether a gather of the slot may start, as far as
	// rows of other ranks are concerned.
	Arrived(s Slot) (bool, error)
	// Take stores received rows: forward the ghosts lo..hi-1, of which there may be none.
	Take(s Slot) (lo, hi int, err error)
	// View returns the rows that a gather of the slot reads: forward the ghost rows [Ghosts x
	// Width], backward, after Add, the gradients of the plan's sums [Sums x Width]. It is an
	// error if a row is of an epoch that the policy excludes.
	View(s Slot) (View, error)
	// Add adds the gradients from other ranks to own rows lo..hi-1 of own [Own x Width], in
	// ascending order of ranks.
	Add(o kernels.Ops, s Slot, own kernels.Mat, lo, hi int) error
	// TakeStats returns the traffic since the last call.
	TakeStats() Stats
}

// Collective is a source of synchronous passes. Each epoch uses each gathering slot once,
// in the same order on all ranks, and forward once more if the source requests a pass
// ahead. Offer, Take and Add are collective. One worker at a time calls Arrived, Await and
// Progress.
type Collective interface {
	Source
	// Reserve allocates the memory for codec errors of a layer that Offer would otherwise
	// allocate.
	Reserve(l Shape)
	// Await returns when the rows of a slot have arrived.
	Await(s Slot) error
	// Progress advances transfers that no caller waits for yet. It does not wait.
	Progress() error
	// Settle ends every transfer in transit and discards its rows. Collective.
	Settle() error
}

// Receiver is a source that is given the messages with its rows, in the order in which each
// rank has sent them.
type Receiver interface {
	Source
	// Accept takes a message of a rank. The source owns the message from then on. If due is
	// true, the caller must call Take once for the slot, because the message has useful rows.
	Accept(from int, message []byte) (s Slot, due bool, err error)
	// Oldest returns the lowest epoch of the stored rows: 0 if a row has never arrived,
	// math.MaxInt if no row is expected.
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
