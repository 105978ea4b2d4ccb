package simulate

import "siafu/ranks/schedule"

// Cluster is ranks on which epochs are replayed.
type Cluster struct {
	Ranks   []*Rank
	Slower  []float64 // by graph rank: all of its work takes so many times as long; nil: 1
	Workers int       // a rank
	Shared  int       // processors that all ranks share; 0: each worker has one
	Link    Link
	Rows    [][]float64 // that each rank (first) sends each other (second) in an exchange
	Bytes   []float64   // by layer: of a row
	Weights float64     // bytes of all weights, and of their gradients
	Servers int         // of weights; 0: gradients are summed over the ranks
	Server  float64     // seconds that a server works for an epoch
}

// Modelled is what a simulation comes to.
type Modelled struct {
	Epoch float64 // seconds of an epoch, the mean
	Ranks []Use   // of an epoch
}

// Run replays so many epochs. Those that were recorded take turns.
func (c *Cluster) Run(epochs int) Modelled {
	s := &simulation{Cluster: c, epochs: epochs}
	s.processors = &processors{clock: &s.clock, shared: c.Shared > 0, free: c.Shared}
	s.network = newNetwork(&s.clock, c.Link, len(c.Ranks)+c.Servers)
	for n, r := range c.Ranks {
		s.hosts = append(s.hosts, s.host(n, r))
	}
	for n := range c.Servers {
		s.hosts = append(s.hosts, &host{s: s, id: len(c.Ranks) + n, boxes: map[box]*letters{}})
	}
	for n := range c.Servers {
		s.serve(s.hosts[len(c.Ranks)+n], 0)
	}
	for _, h := range s.hosts[:len(c.Ranks)] {
		h.begin(0)
	}
	s.run()
	return s.sum()
}

// simulation is a run of a Cluster.
type simulation struct {
	*Cluster
	clock
	network    *network
	processors *processors
	hosts      []*host // graph ranks, then servers
	epochs     int
}

func (s *simulation) sum() (m Modelled) {
	each := 1 / float64(s.epochs)
	for _, h := range s.hosts[:len(s.Ranks)] {
		var u Use
		u.add(h.use, each)
		u.Span = h.last * each
		m.Ranks = append(m.Ranks, u)
		m.Epoch = max(m.Epoch, u.Span)
	}
	return m
}

// bytes is what a rank sends another in an exchange of a layer's rows.
func (s *simulation) bytes(from, to, layer int, backward bool) float64 {
	if backward {
		from, to = to, from
	}
	return s.Rows[from][to] * s.Bytes[layer]
}

// box is where messages of one purpose come in.
type box struct {
	what  what
	epoch int
	at    int // layer, or round
}

type what uint8

const (
	rows what = iota
	gradRows
	losses
	gradients
	sums
	weights
)

// letters are the messages of a box, and what is done when enough have come.
type letters struct {
	came, want int
	then       func()
}

// host is a rank: a graph rank with its walks, or a server.
type host struct {
	s      *simulation
	id     int
	rank   *Rank
	slower float64
	boxes  map[box]*letters

	walks  []walk
	on     *walk // nil between walks
	then   func()
	epoch  int
	free   int // workers
	passed float64
	last   float64 // when the last epoch ended
	use    Use     // of all epochs
}

// walk is a graph of tasks and where their times are.
type walk struct {
	*schedule.Walk
	place map[int32]int // by Ref: in Epoch.Tasks
}

func (s *simulation) host(id int, r *Rank) *host {
	h := &host{s: s, id: id, rank: r, slower: 1, boxes: map[box]*letters{}, free: s.Workers}
	if s.Slower != nil {
		h.slower = s.Slower[id]
	}
	n := 0
	for _, g := range r.Graphs() {
		w := walk{schedule.NewWalk(g), map[int32]int{}}
		for _, t := range g.Tasks() {
			w.place[t.Ref] = n
			n++
		}
		h.walks = append(h.walks, w)
	}
	return h
}

// box is that of a purpose.
func (h *host) box(b box) *letters {
	l := h.boxes[b]
	if l == nil {
		l = &letters{want: -1}
		h.boxes[b] = l
	}
	return l
}

// send sends a message into a box of another rank.
func (h *host) send(to int, bytes float64, b box) {
	h.s.network.send(h.id, to, bytes, func() { h.s.hosts[to].receive(b) })
}

// receive takes a message in.
func (h *host) receive(b box) {
	l := h.box(b)
	l.came++
	if l.came == l.want {
		h.open(b)
	} else if h.on != nil {
		h.look()
	}
}

// await does something when so many messages are in a box.
func (h *host) await(b box, want int, then func()) {
	l := h.box(b)
	l.want, l.then = want, then
	if l.came == want {
		h.open(b)
	}
}

// open takes the messages out of a box.
func (h *host) open(b box) {
	then := h.boxes[b].then
	delete(h.boxes, b)
	then()
}
