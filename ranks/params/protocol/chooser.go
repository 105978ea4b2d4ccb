package protocol

import (
	"math"

	"siafu/internal/wire"
)

// Chooser is a graph rank's side of the servers: it "picks the PS with the
// lightest load" for an interval's first task with weights in an epoch and
// "remembers this choice for the interval" (Dorylus, OSDI'21, §5.1).
//
// A server reports its load in its responses. Between responses the load is estimated: the exact
// number of this rank's intervals there plus the reported number of other ranks' intervals. The
// reported number is halved every epoch, because an avoided server reports nothing. Among equal loads,
// the first server from rank mod Servers on is selected. With Setting.Fixed, this server is always
// selected.
type Chooser struct {
	setting Setting
	rank    int
	layers  int
	weights int
	choices []choice // by interval
	pulled  choice   // the last Pull; its epoch is the version
	own     []int    // by server: unfinished intervals of this rank
	asked   []int    // by server: unfinished intervals of this rank with an unanswered Fetch
	others  []int    // by server: other ranks' intervals
	newest  int      // the highest epoch with a choice
	tallies map[int]*tally
	out     []Message
}

type choice struct {
	epoch, server int
	holds         int  // the version that the rank has, which is sent without values
	fetched       bool // the Fetch is answered
	missing       int  // layers whose gradient has not been sent
}

// tally counts the choices of an epoch.
type tally struct {
	total    int
	byServer []int
}

// NewChooser returns the chooser of a graph rank, for a network with the given numbers of
// layers and weights.
func NewChooser(c Setting, rank, layers, weights int) *Chooser {
	c.check()
	if rank < 0 || rank >= c.Graph() || layers < 1 {
		panic("protocol: no such graph rank, or no layers")
	}
	h := &Chooser{
		setting: c, rank: rank, layers: layers, weights: weights, newest: c.Trained,
		choices: make([]choice, c.Intervals[rank]),
		own:     make([]int, c.Servers), asked: make([]int, c.Servers), others: make([]int, c.Servers),
		tallies: map[int]*tally{},
	}
	for i := range h.choices {
		h.choices[i].epoch = c.Trained
	}
	return h
}

// FetchNewest requests weights like Fetch, but accepts no version before the epoch. The rank must
// know that all intervals have finished the previous epoch, so that their gradients are in transit.
func (h *Chooser) FetchNewest(interval, epoch, holds int) []Message {
	out := h.Fetch(interval, epoch, holds)
	out[0].Count = 1
	return out
}

// Fetch chooses the server of an interval for its next epoch and requests weights. holds is the
// newest version that the rank still has, or 0. That version is sent without values. With the rank's
// last interval in an epoch, the messages also notify all servers. They are valid until the next
// Fetch.
func (h *Chooser) Fetch(interval, epoch, holds int) []Message {
	c := &h.choices[interval]
	if epoch != c.epoch+1 || c.missing > 0 {
		panic("protocol: fetch of an epoch that is not the interval's next")
	}
	h.decayLoads(epoch)
	k := h.lightest()
	*c = choice{epoch: epoch, server: k, holds: holds, missing: h.layers}
	h.own[k]++
	h.asked[k]++
	h.out = append(h.out[:0], Message{
		Type: wire.Fetch, From: h.rank, To: h.setting.Server(k), Epoch: epoch, Interval: interval, Version: holds,
	})
	h.countChoice(epoch, k)
	return h.out
}

// decayLoads halves the reported loads of other ranks' intervals with each new epoch.
func (h *Chooser) decayLoads(epoch int) {
	if epoch <= h.newest {
		return
	}
	h.newest = epoch
	for k := range h.others {
		h.others[k] /= 2
	}
}

func (h *Chooser) lightest() int {
	n := h.setting.Servers
	best := h.rank % n
	if h.setting.Fixed {
		return best
	}
	for i := 1; i < n; i++ {
		if k := (h.rank + i) % n; h.load(k) < h.load(best) {
			best = k
		}
	}
	return best
}

func (h *Chooser) load(k int) int { return h.own[k] + h.others[k] }

// countChoice records a choice, and notifies all servers after the last one of an epoch.
func (h *Chooser) countChoice(epoch, server int) {
	t := h.tallies[epoch]
	if t == nil {
		t = &tally{byServer: make([]int, h.setting.Servers)}
		h.tallies[epoch] = t
	}
	t.total++
	t.byServer[server]++
	if t.total < len(h.choices) {
		return
	}
	delete(h.tallies, epoch)
	for k, n := range t.byServer {
		h.out = append(h.out, Message{Type: wire.Close, From: h.rank, To: h.setting.Server(k), Epoch: epoch, Count: n})
	}
}

// choiceOf returns the choice of an interval that is in that epoch and has its weights.
func (h *Chooser) choiceOf(interval, epoch int) *choice {
	c := &h.choices[interval]
	if c.epoch != epoch || !c.fetched || c.missing == 0 {
		panic("protocol: interval is not in that epoch")
	}
	return c
}

// FetchStash requests the weights of an interval's forward pass again.
func (h *Chooser) FetchStash(interval, epoch, holds int) Message {
	c := h.choiceOf(interval, epoch)
	c.holds = holds
	return Message{
		Type: wire.FetchStash, From: h.rank, To: h.setting.Server(c.server), Epoch: epoch, Interval: interval, Version: holds,
	}
}

// Gradient sends an interval's gradient of a layer, once per layer. After the last one the
// interval has finished the epoch.
func (h *Chooser) Gradient(interval, epoch, layer int, values []float32) Message {
	c := h.choiceOf(interval, epoch)
	if c.missing--; c.missing == 0 {
		h.own[c.server]--
	}
	return Message{
		Type: wire.Gradient, From: h.rank, To: h.setting.Server(c.server), Epoch: epoch, Interval: interval,
		Layer: layer, Values: values,
	}
}

// Pull requests the latest weights of at least that version, for an evaluation or at the end.
// Their message has epoch 0.
func (h *Chooser) Pull(version int) Message {
	h.pulled = choice{epoch: version, server: h.lightest(), missing: 1}
	return Message{Type: wire.Pull, From: h.rank, To: h.setting.Server(h.pulled.server), Version: version}
}

// State requests from the server of the last Pull the optimiser's state at the start of the
// version. The response is a message of the same type, with its values slot after slot.
func (h *Chooser) State(version int) Message {
	return Message{Type: wire.State, From: h.rank, To: h.setting.Server(h.pulled.server), Version: version}
}

// Leave notifies all servers that this rank is done. No interval may be in an epoch, and no
// Pull unanswered.
func (h *Chooser) Leave() []Message {
	h.out = h.out[:0]
	for k := range h.setting.Servers {
		h.out = append(h.out, Message{Type: wire.Leave, From: h.rank, To: h.setting.Server(k)})
	}
	return h.out
}

// Take checks a response to Fetch, FetchStash or Pull, and records the server's load.
func (h *Chooser) Take(m Message) error {
	if m.Type != wire.Weights || m.Interval < 0 || m.Interval >= len(h.choices) {
		return broken("weights", m, "the rank has %d intervals and takes weights", len(h.choices))
	}
	c, least, most := &h.choices[m.Interval], max(m.Epoch-h.setting.Staleness, h.setting.Trained+1), m.Epoch
	if m.Epoch == 0 {
		c, least, most = &h.pulled, h.pulled.epoch, math.MaxInt
	}
	if c.missing == 0 || m.From != h.setting.Server(c.server) || m.Epoch != 0 && m.Epoch != c.epoch {
		return broken("weights", m, "nothing was requested")
	}
	if m.Version < least || m.Version > most {
		return broken("weights", m, "version %d is older than the oldest usable version %d", m.Version, least)
	}
	if len(m.Values) != h.weights && (len(m.Values) != 0 || m.Version != c.holds) {
		return broken("weights", m, "%d weights, want %d", len(m.Values), h.weights)
	}
	h.noteAnswer(c, m)
	return nil
}

// noteAnswer records a response to a request, and its load.
func (h *Chooser) noteAnswer(c *choice, m Message) {
	switch {
	case m.Epoch == 0:
		c.missing = 0
	case !c.fetched:
		c.fetched = true
		h.asked[c.server]--
	}
	h.others[c.server] = max(0, m.Load-h.own[c.server]+h.asked[c.server])
}
