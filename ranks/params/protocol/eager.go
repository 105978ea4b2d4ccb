package protocol

import (
	"math"
	"slices"

	"siafu/internal/wire"
)

// Eager is a parameter server that updates the weights when the gradient of a graph rank
// arrives, without waiting for other ranks: the server of DIGEST-A (ICLR'23 submission, §3.2).
// A step uses the sum of the newest gradients of all ranks, one of them new: a step with only
// one part's gradient (theorem 3) would undo the steps of others. A step is an update of the
// rank whose gradient has arrived. Version v+1 is the weights after v updates of any ranks; an
// epoch is as many updates as there are graph ranks, "global iterations on the server"
// (theorem 3), to which a fast rank contributes more than a slow one.
//
// Between two updates of one rank at most Bound updates of other ranks are applied. The delay
// of an update is the number of updates since its rank was sent the weights; the delay has the
// same bound. An update that would break the bound waits. Sort the ranks by the versions of
// their last updates, last[0] being the oldest. If they now update one after the other, rank j
// updates j versions from now. All these updates are within the bound if
//
//	version + j - last[j] <= Bound    for all j
//
// An update is applied only if this condition then holds for the other ranks. The updating rank
// becomes the last in the order, where the condition always holds, because j is less than the
// number of ranks. The first rank in the order may always proceed, so no update waits forever.
type Eager struct {
	setting Setting
	layers  []Range
	update  Updater

	weights []float32
	sum     []float32 // of the newest gradients
	applied int       // number of applied updates, including those before Trained
	last    int       // value of applied at the end
	runs    []run
	ready   []int     // ranks with a complete update that is not applied yet, in order of arrival
	waiting []Message // unanswered Fetches
	left    []bool
	delay   int // the maximal delay of an update
	held    Memory
	out     []Message

	window int       // number of updates in the mean, 0: no mean
	first  int       // number of updates before the first in the mean
	mean   []float32 // of the weights after the updates in the window
}

// run is a graph rank between its Fetch and the application of its update.
type run struct {
	started bool      // weights were sent to the rank, and its update is not applied yet
	epoch   int       // of the rank
	sentAt  int       // value of applied when weights were sent to the rank
	last    int       // value of applied after the rank's last update
	got     []bool    // by layer: its gradient has arrived
	missing int       // number of layers without a gradient
	grad    []float32 // [weights], the gradient being received
	newest  []float32 // the last applied gradient, initially zeros
}

// NewEager returns the server of a world with one server and one interval per graph rank.
// It accepts updates until last epochs have been trained, including those before Trained.
// Staleness is the bound: at least the number of other graph ranks, or 0 for no bound.
func NewEager(c Setting, last int, layers []Range, weights []float32, u Updater) *Eager {
	c.check()
	p := c.Graph()
	if c.Servers != 1 || slices.Max(c.Intervals) > 1 || len(layers) == 0 || c.Staleness > 0 && c.Staleness < p-1 {
		panic("protocol: an eager server is the only one, of ranks with one interval, and has no bound below the number of others")
	}
	s := &Eager{
		setting: c, layers: layers, update: u, weights: weights, sum: make([]float32, len(weights)),
		applied: c.Trained * p, last: last * p, runs: make([]run, p), left: make([]bool, p),
	}
	if c.Staleness == 0 {
		s.setting.Staleness = math.MaxInt
	}
	for r := range s.runs {
		s.runs[r] = run{got: make([]bool, len(layers)), grad: make([]float32, len(weights)),
			newest: make([]float32, len(weights)), last: s.applied}
	}
	s.held.wait(4 * int64(2*p+1) * int64(len(weights)))
	return s
}

// Average replaces the weights after the last update by a running mean over the given number
// of last updates. Steps with delayed gradients oscillate around their limit (Polyak and
// Juditsky 1992). Call it before the first Step. It has no effect if End comes first.
func (s *Eager) Average(updates int) {
	if s.window, s.first = updates, s.applied; updates > 0 {
		s.mean = make([]float32, len(s.weights))
		s.held.wait(4 * int64(len(s.weights)))
	}
}

// Version returns one more than the number of epochs whose updates have been applied.
func (s *Eager) Version() int { return s.applied/s.setting.Graph() + 1 }

// Weights returns the weights after all applied updates, or their mean after the last one.
// They belong to the server and are valid until the next Step.
func (s *Eager) Weights() []float32 {
	if s.applied == s.last && s.window > 0 {
		return s.mean
	}
	return s.weights
}

// Memory returns the memory of the server without the weights.
func (s *Eager) Memory() Memory { return s.held }

// Delay returns the maximal delay of an update.
func (s *Eager) Delay() int { return s.delay }

// Done reports whether all graph ranks have left.
func (s *Eager) Done() bool { return !slices.Contains(s.left, false) }

// AwaitedRanks returns the graph ranks whose updates are missing, ascending. If other ranks wait,
// it returns only the ranks that they wait for, whose last updates are the oldest.
func (s *Eager) AwaitedRanks() []int {
	var owe []int
	oldest := math.MaxInt
	for r, n := range s.runs {
		if slices.Contains(s.ready, r) || s.left[r] {
			continue
		}
		if len(s.ready) > 0 && n.last < oldest {
			owe, oldest = owe[:0], n.last
		}
		if len(s.ready) == 0 || n.last == oldest {
			owe = append(owe, r)
		}
	}
	return owe
}

// Step processes one message and returns the messages that follow from it. They are valid
// until the next Step.
func (s *Eager) Step(m Message) ([]Message, error) {
	s.out = s.out[:0]
	var err error
	switch {
	case m.From < 0 || m.From >= len(s.runs):
		err = broken("server", m, "there are %d graph ranks", len(s.runs))
	case s.left[m.From]:
		err = broken("server", m, "the rank has left")
	case m.Type == wire.Fetch:
		err = s.fetch(m)
	case m.Type == wire.Gradient:
		err = s.gradient(m)
	case m.Type == wire.End:
		s.end(m.Epoch)
	case m.Type == wire.Leave:
		err = s.leave(m)
	default:
		err = broken("server", m, "a server does not accept this type")
	}
	if err == nil {
		s.answer()
	}
	return s.out, err
}

// fetch handles a request for weights, which are sent once they include the rank's last
// update.
func (s *Eager) fetch(m Message) error {
	n := &s.runs[m.From]
	if n.started && n.missing > 0 {
		return broken("server", m, "the rank has not finished epoch %d", n.epoch)
	}
	if slices.ContainsFunc(s.waiting, func(w Message) bool { return w.From == m.From }) {
		return broken("server", m, "the rank is waiting for weights")
	}
	s.waiting = append(s.waiting, m)
	return nil
}

// gradient handles a layer's part of an update, which is applied when it is complete and
// within the bound.
func (s *Eager) gradient(m Message) error {
	n := &s.runs[m.From]
	switch {
	case !n.started || m.Epoch != n.epoch || m.Interval != 0:
		return broken("server", m, "the rank has no weights for this epoch")
	case m.Layer < 0 || m.Layer >= len(s.layers):
		return broken("server", m, "there are %d layers", len(s.layers))
	case n.got[m.Layer]:
		return broken("server", m, "duplicate gradient")
	}
	at := s.layers[m.Layer]
	if len(m.Values) != at.Hi-at.Lo {
		return broken("server", m, "%d values, want %d", len(m.Values), at.Hi-at.Lo)
	}
	copy(n.grad[at.Lo:at.Hi], m.Values)
	n.got[m.Layer] = true
	if n.missing--; n.missing == 0 {
		s.ready = append(s.ready, m.From)
		s.settle()
	}
	return nil
}

// settle applies the updates within the bound, in order of arrival. Updates after the last one
// are dropped.
func (s *Eager) settle() {
	for k := 0; k < len(s.ready); {
		r := s.ready[k]
		if s.applied < s.last && !s.canApply(r) {
			k++
			continue
		}
		s.ready = slices.Delete(s.ready, k, k+1)
		s.runs[r].started = false
		if s.applied < s.last {
			s.apply(&s.runs[r])
		}
		k = 0 // for earlier updates that had to wait
	}
}

// canApply reports whether a rank's update can be applied now, so that one update of each
// other rank can follow within the bound.
func (s *Eager) canApply(rank int) bool {
	var last []int
	for r, n := range s.runs {
		if r != rank {
			last = append(last, n.last)
		}
	}
	slices.Sort(last)
	for j, t := range last {
		if s.applied+1+j-t > s.setting.Staleness {
			return false
		}
	}
	return true
}

// apply replaces a rank's last gradient by the new one, and updates all layers.
func (s *Eager) apply(n *run) {
	s.delay = max(s.delay, s.applied-n.sentAt)
	s.applied++
	n.last = s.applied
	n.grad, n.newest = n.newest, n.grad
	clear(s.sum)
	for _, n := range s.runs {
		accumulate(s.sum, n.newest)
	}
	for l, at := range s.layers {
		s.update.Update(s.applied, l, s.weights[at.Lo:at.Hi], s.sum[at.Lo:at.Hi])
	}
	if s.window > 0 {
		share := 1 / float32(min(s.window, s.applied-s.first))
		for i, w := range s.weights {
			s.mean[i] += float32(share * (w - s.mean[i]))
		}
	}
}

// answer sends the weights to waiting ranks whose own update is included, with the number of
// remaining updates: 0 marks the last weights.
func (s *Eager) answer() {
	kept := s.waiting[:0]
	for _, m := range s.waiting {
		n := &s.runs[m.From]
		if n.started {
			kept = append(kept, m)
			continue
		}
		if s.applied < s.last {
			n.started, n.epoch, n.sentAt, n.missing = true, m.Epoch, s.applied, len(s.layers)
			clear(n.got)
		}
		s.out = append(s.out, Message{
			Type: wire.Weights, From: s.setting.Server(0), To: m.From, Epoch: m.Epoch,
			Version: s.applied + 1, Count: s.last - s.applied, Values: s.Weights(),
		})
	}
	s.waiting = kept
}

// end makes the current epoch, or a later reported one, the last.
func (s *Eager) end(reported int) {
	p := s.setting.Graph()
	if epoch := max((s.applied+p-1)/p, reported); epoch*p < s.last {
		s.last, s.window = epoch*p, 0
	}
	s.settle()
}

// leave handles the leave of a rank with no pending update or request.
func (s *Eager) leave(m Message) error {
	waits := slices.ContainsFunc(s.waiting, func(w Message) bool { return w.From == m.From })
	if s.runs[m.From].started || waits {
		return broken("server", m, "the rank has not finished epoch %d", s.runs[m.From].epoch)
	}
	s.left[m.From] = true
	return nil
}

// Runner is a graph rank's side of an Eager server: one update after another, each from newly
// fetched weights, until the last epoch.
type Runner struct {
	setting Setting
	rank    int
	layers  int
	weights int
	epoch   int // the rank's own, current or finished
	asked   bool
	version int // of the last received weights
}

// NewRunner returns the runner of a graph rank after the given number of its epochs, for a
// network with the given numbers of layers and weights.
func NewRunner(c Setting, rank, trained, layers, weights int) *Runner {
	return &Runner{setting: c, rank: rank, layers: layers, weights: weights, epoch: trained}
}

// Epoch returns the rank's own epoch.
func (r *Runner) Epoch() int { return r.epoch }

// Version returns the version of the last received weights: one more than the updates in them.
func (r *Runner) Version() int { return r.version }

// Fetch requests the weights of the next epoch.
func (r *Runner) Fetch() Message {
	r.asked = true
	r.epoch++
	return r.message(Message{Type: wire.Fetch})
}

// Gradient sends a layer's gradient, once per layer.
func (r *Runner) Gradient(layer int, values []float32) Message {
	return r.message(Message{Type: wire.Gradient, Layer: layer, Values: values})
}

// End requests the server to end with its current epoch, or with the reported one.
func (r *Runner) End(reported int) Message {
	m := r.message(Message{Type: wire.End})
	m.Epoch = reported
	return m
}

// Leave notifies the server that this rank is done. Call it after the last weights have
// arrived.
func (r *Runner) Leave() Message { return r.message(Message{Type: wire.Leave}) }

func (r *Runner) message(m Message) Message {
	m.From, m.To, m.Epoch = r.rank, r.setting.Server(0), r.epoch
	return m
}

// Take checks a response to Fetch. It reports whether an epoch must be trained with the weights; if
// not, they are the last weights.
func (r *Runner) Take(m Message) (trains bool, err error) {
	switch {
	case m.Type != wire.Weights || !r.asked || m.Epoch != r.epoch || m.From != r.setting.Server(0):
		return false, broken("weights", m, "nothing was requested")
	case m.Version < max(r.version, 1):
		return false, broken("weights", m, "version %d after version %d", m.Version, r.version)
	case len(m.Values) != r.weights:
		return false, broken("weights", m, "%d weights, want %d", len(m.Values), r.weights)
	}
	r.asked, r.version = false, m.Version
	return m.Count > 0, nil
}
