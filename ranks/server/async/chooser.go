package async

// Chooser is a graph rank's side of the servers: it "picks the PS with the
// lightest load" for an interval's first task with weights in an epoch and
// "remembers this choice for the interval" (Dorylus, OSDI'21, §5.1).
//
// A server's load is known from its answers. Between them it is the number of
// this rank's own intervals there, which is exact, and of others', which was
// told; since a server that is avoided tells nothing, others' are halved with
// every epoch. Equal loads go to the first from server rank mod Servers on.
type Chooser struct {
	setting Setting
	rank    int
	layers  int
	choices []choice // by interval
	own     []int    // by server: intervals of this rank that have not finished
	asked   []int    // by server: those among them whose Fetch is unanswered
	others  []int    // by server: other ranks' intervals
	newest  int      // the highest epoch chosen for
	tallies map[int]*tally
	out     []Message
}

type choice struct {
	epoch, server int
	fetched       bool // the Fetch is answered
	missing       int  // layers whose gradient has not been sent
}

// tally counts the choices of an epoch.
type tally struct {
	total    int
	byServer []int
}

// NewChooser makes the chooser of a graph rank, of a network with so many
// layers.
func NewChooser(c Setting, rank, layers int) *Chooser {
	c.check()
	if rank < 0 || rank >= c.Graph() || layers < 1 {
		panic("async: no such graph rank, or no layers")
	}
	h := &Chooser{
		setting: c, rank: rank, layers: layers, newest: c.Trained,
		choices: make([]choice, c.Intervals[rank]),
		own:     make([]int, c.Servers), asked: make([]int, c.Servers), others: make([]int, c.Servers),
		tallies: map[int]*tally{},
	}
	for i := range h.choices {
		h.choices[i].epoch = c.Trained
	}
	return h
}

// Fetch chooses the server of an interval for its next epoch and asks it for
// weights. holds is the newest version that the rank still has, 0 for none:
// that one comes without values. With the rank's last interval in an epoch,
// all servers are told. The messages stand until the next Fetch.
func (h *Chooser) Fetch(interval, epoch, holds int) []Message {
	c := &h.choices[interval]
	if epoch != c.epoch+1 || c.missing > 0 {
		panic("async: fetch of an epoch that is not the interval's next")
	}
	h.age(epoch)
	k := h.lightest()
	*c = choice{epoch: epoch, server: k, missing: h.layers}
	h.own[k]++
	h.asked[k]++
	h.out = append(h.out[:0], Message{
		Type: Fetch, From: h.rank, To: h.setting.Server(k), Epoch: epoch, Interval: interval, Version: holds,
	})
	h.count(epoch, k)
	return h.out
}

// age halves what is known of other ranks' intervals with each new epoch.
func (h *Chooser) age(epoch int) {
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
	for i := 1; i < n; i++ {
		if k := (h.rank + i) % n; h.load(k) < h.load(best) {
			best = k
		}
	}
	return best
}

func (h *Chooser) load(k int) int { return h.own[k] + h.others[k] }

// count notes a choice and tells all servers after the last one of an epoch.
func (h *Chooser) count(epoch, server int) {
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
		h.out = append(h.out, Message{Type: Close, From: h.rank, To: h.setting.Server(k), Epoch: epoch, Count: n})
	}
}

// at is the choice of an interval that is in that epoch and has its weights.
func (h *Chooser) at(interval, epoch int) *choice {
	c := &h.choices[interval]
	if c.epoch != epoch || !c.fetched || c.missing == 0 {
		panic("async: interval is not in that epoch")
	}
	return c
}

// FetchStash asks for the weights of an interval's forward pass again.
func (h *Chooser) FetchStash(interval, epoch, holds int) Message {
	c := h.at(interval, epoch)
	return Message{
		Type: FetchStash, From: h.rank, To: h.setting.Server(c.server), Epoch: epoch, Interval: interval, Version: holds,
	}
}

// Gradient hands over an interval's gradient of a layer, once for each. After
// the last one the interval has finished the epoch.
func (h *Chooser) Gradient(interval, epoch, layer int, values []float32) Message {
	c := h.at(interval, epoch)
	if c.missing--; c.missing == 0 {
		h.own[c.server]--
	}
	return Message{
		Type: Gradient, From: h.rank, To: h.setting.Server(c.server), Epoch: epoch, Interval: interval,
		Layer: layer, Values: values,
	}
}

// Take checks an answer to Fetch or FetchStash and learns the server's load.
func (h *Chooser) Take(m Message) error {
	if m.Type != Weights || m.Interval < 0 || m.Interval >= len(h.choices) {
		return broken("weights", m, "the rank has %d intervals and takes weights", len(h.choices))
	}
	c := &h.choices[m.Interval]
	if m.From != h.setting.Server(c.server) || m.Epoch != c.epoch {
		return broken("weights", m, "rank %d was asked for weights of epoch %d", h.setting.Server(c.server), c.epoch)
	}
	if m.Version < m.Epoch-h.setting.Staleness || m.Version > m.Epoch {
		return broken("weights", m, "weights of version %d with a staleness bound of %d", m.Version, h.setting.Staleness)
	}
	if !c.fetched {
		c.fetched = true
		h.asked[c.server]--
	}
	h.others[c.server] = max(0, m.Load-h.own[c.server]+h.asked[c.server])
	return nil
}
