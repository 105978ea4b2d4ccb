package protocol

import (
	"slices"

	"siafu/internal/wire"
)

// Server is the state of one parameter server (Dorylus, OSDI'21, §5.1).
type Server struct {
	setting Setting
	index   int   // 0..Servers-1
	firsts  []int // see Setting.firsts
	layers  []Range
	update  Updater

	stash   stash
	draft   *version // the latest version with the complete layers of the next; nil before the first
	sums    map[int]*epochSums
	total   []float32 // buffer for a layer's gradient
	closed  []int     // by graph rank: number of epochs for which the rank has chosen servers
	sent    []int     // by layer: number of epochs whose sum this server has sent
	heard   [][]int   // by server and layer: number of epochs whose sum that server has sent
	waiting []Message // requests for later versions
	left    []bool    // by graph rank
	out     []Message

	blocks []pool[[]float32] // by layer
	spare  pool[*epochSums]
}

// New makes the index-th server. It takes ownership of the initial weights. layers are the parts of
// the weights, at least one.
func New(c Setting, index int, layers []Range, weights []float32, u Updater) *Server {
	c.check()
	if index < 0 || index >= c.Servers || len(layers) == 0 {
		panic("protocol: no such server, or no layers")
	}
	firsts := c.firsts()
	intervals := firsts[c.Graph()]
	s := &Server{
		setting: c, index: index, firsts: firsts, layers: layers, update: u,
		stash:  newStash(intervals, len(layers), c.Trained+1, weights),
		sums:   map[int]*epochSums{},
		closed: slices.Repeat([]int{c.Trained}, c.Graph()),
		sent:   slices.Repeat([]int{c.Trained}, len(layers)),
		left:   make([]bool, c.Graph()),
		spare: pool[*epochSums]{make: func() *epochSums {
			return newEpochSums(intervals, len(layers), c.Servers)
		}},
	}
	widest := 0
	for _, r := range layers {
		s.blocks = append(s.blocks, blocks(r.Hi-r.Lo))
		widest = max(widest, r.Hi-r.Lo)
	}
	s.total = make([]float32, widest)
	for range c.Servers {
		s.heard = append(s.heard, slices.Clone(s.sent))
	}
	return s
}

// Version returns the number of the latest version, from 1.
func (s *Server) Version() int { return s.stash.latest.number }

// Weights returns the weights of the latest version. They belong to the server and are
// valid until the next Step.
func (s *Server) Weights() []float32 { return s.stash.latest.weights }

// Load returns the number of intervals whose gradients the server waits for.
func (s *Server) Load() int { return s.stash.load }

// Memory returns the memory of the server without the weights.
func (s *Server) Memory() Memory { return s.stash.memory }

// AwaitedRanks returns the ranks that the next version waits for, ascending: graph ranks that have
// received weights of the epoch and owe gradients. If there are none, it returns the ranks
// that have not selected servers for the epoch, and otherwise the servers whose sums are
// missing.
func (s *Server) AwaitedRanks() []int {
	epoch := s.Version()
	if owe := s.graphRanks(func(r int) bool {
		mine := s.stash.entries[s.firsts[r]:s.firsts[r+1]]
		return slices.ContainsFunc(mine, func(h stashEntry) bool { return h.epoch == epoch && h.version != nil })
	}); len(owe) > 0 {
		return owe
	}
	if owe := s.graphRanks(func(r int) bool { return s.closed[r] < epoch }); len(owe) > 0 {
		return owe
	}
	var owe []int
	for k := range s.setting.Servers {
		if k != s.index && slices.Min(s.heard[k]) < epoch {
			owe = append(owe, s.setting.Server(k))
		}
	}
	return owe
}

// graphRanks returns the graph ranks that satisfy are and have not left.
func (s *Server) graphRanks(are func(rank int) bool) []int {
	var ranks []int
	for r, left := range s.left {
		if !left && are(r) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// Done reports whether all graph ranks have left and all epochs that they finished together
// are in the weights.
func (s *Server) Done() bool {
	return !slices.Contains(s.left, false) && s.Version() > slices.Min(s.closed)
}

// Step processes one message and returns the messages that follow from it. They are valid
// until the next Step.
func (s *Server) Step(m Message) ([]Message, error) {
	s.out = s.out[:0]
	var err error
	switch m.Type {
	case wire.Fetch:
		err = s.fetch(m)
	case wire.FetchStash:
		err = s.fetchStash(m)
	case wire.Gradient:
		err = s.gradient(m)
	case wire.Close:
		err = s.close(m)
	case wire.Sum:
		err = s.sum(m)
	case wire.Pull, wire.State:
		err = s.pull(m)
	case wire.Leave:
		err = s.leave(m)
	default:
		err = s.broken(m, "a server does not accept this type")
	}
	return s.out, err
}

func (s *Server) broken(m Message, format string, args ...any) error {
	return broken("server", m, format, args...)
}

func (s *Server) send(m Message) {
	m.From = s.setting.Server(s.index)
	s.out = append(s.out, m)
}

// sender checks that m is from a graph rank that has not left.
func (s *Server) sender(m Message) error {
	if m.From < 0 || m.From >= s.setting.Graph() {
		return s.broken(m, "there are %d graph ranks", s.setting.Graph())
	}
	if s.left[m.From] {
		return s.broken(m, "the rank has left")
	}
	return nil
}

// interval returns the number of m's interval among the intervals of all ranks.
func (s *Server) interval(m Message) (int, error) {
	if err := s.sender(m); err != nil {
		return 0, err
	}
	if n := s.setting.Intervals[m.From]; m.Interval < 0 || m.Interval >= n {
		return 0, s.broken(m, "the rank has %d intervals", n)
	}
	return s.firsts[m.From] + m.Interval, nil
}

// fetch records that an interval has chosen this server for an epoch, and responds as soon as
// a version is new enough.
func (s *Server) fetch(m Message) error {
	i, err := s.interval(m)
	if err != nil {
		return err
	}
	// A rank's slowest interval has finished Epoch-1-s, so the rank has closed
	// that epoch.
	if c := s.closed[m.From]; m.Epoch <= c || m.Epoch > c+1+s.setting.Staleness {
		return s.broken(m, "the rank has closed epoch %d and the staleness bound is %d", c, s.setting.Staleness)
	}
	if e := s.stash.entries[i].epoch; e != 0 {
		return s.broken(m, "the interval has not finished epoch %d", e)
	}
	sums := s.sumsOf(m.Epoch)
	if sums.mine[i] {
		return s.broken(m, "the interval has already finished this epoch")
	}
	sums.mine[i] = true
	s.stash.addEntry(i, m.Epoch)
	if s.Version() < s.oldest(m) {
		s.waiting = append(s.waiting, m)
		return nil
	}
	s.answer(m, s.stash.assignLatest(i))
	return nil
}

// oldest returns the oldest version allowed for a Fetch.
func (s *Server) oldest(m Message) int {
	if m.Count > 0 {
		return m.Epoch
	}
	return m.Epoch - s.setting.Staleness
}

// answer sends a version, without values if the rank reports that it has it.
func (s *Server) answer(m Message, v *version) {
	if m.Type == wire.State {
		s.send(Message{Type: wire.State, To: m.From, Version: v.number, Values: slices.Concat(s.update.State()...)})
		return
	}
	values := v.weights
	if m.Version == v.number && m.Type != wire.Pull {
		values = nil
	}
	s.send(Message{
		Type: wire.Weights, To: m.From, Epoch: m.Epoch, Interval: m.Interval,
		Version: v.number, Load: s.stash.load, Values: values,
	})
}

func (s *Server) entry(m Message) (int, *stashEntry, error) {
	i, err := s.interval(m)
	if err != nil {
		return 0, nil, err
	}
	e := &s.stash.entries[i]
	if m.Epoch < 1 || e.epoch != m.Epoch || e.version == nil {
		return 0, nil, s.broken(m, "no weights are stashed for this interval")
	}
	return i, e, nil
}

func (s *Server) fetchStash(m Message) error {
	_, e, err := s.entry(m)
	if err != nil {
		return err
	}
	s.answer(m, e.version)
	return nil
}

func (s *Server) pull(m Message) error {
	if err := s.sender(m); err != nil {
		return err
	}
	if s.Version() < m.Version {
		s.waiting = append(s.waiting, m)
		return nil
	}
	s.answer(m, s.stash.latest)
	return nil
}

// leave handles the leave of a rank with no pending gradient or request.
func (s *Server) leave(m Message) error {
	if err := s.sender(m); err != nil {
		return err
	}
	for i := s.firsts[m.From]; i < s.firsts[m.From+1]; i++ {
		if e := s.stash.entries[i].epoch; e != 0 {
			return s.broken(m, "interval %d has not finished epoch %d", i-s.firsts[m.From], e)
		}
	}
	if slices.ContainsFunc(s.waiting, func(w Message) bool { return w.From == m.From }) {
		return s.broken(m, "the rank is waiting for weights")
	}
	s.left[m.From] = true
	return nil
}
