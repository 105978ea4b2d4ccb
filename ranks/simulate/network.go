package simulate

import (
	"cmp"
	"container/heap"
	"slices"
)

// Link is the network link between any two ranks, each on its own host.
type Link struct {
	Rate    float64 // bytes of messages a second, into a host and out of it at once; +Inf has no end
	Latency float64 // seconds from when a byte leaves to when it comes
}

// event is something that happens at a moment; of those of one moment, what was
// planned first.
type event struct {
	at     float64
	number int
	do     func()
}

// clock is the time of a simulation, in seconds, and what is to happen.
type clock struct {
	now    float64
	count  int
	events []event
}

func (c *clock) Len() int      { return len(c.events) }
func (c *clock) Swap(i, j int) { c.events[i], c.events[j] = c.events[j], c.events[i] }
func (c *clock) Push(x any)    { c.events = append(c.events, x.(event)) }
func (c *clock) Less(i, j int) bool {
	a, b := c.events[i], c.events[j]
	return a.at < b.at || a.at == b.at && a.number < b.number
}

func (c *clock) Pop() any {
	last := c.events[len(c.events)-1]
	c.events = c.events[:len(c.events)-1]
	return last
}

// at plans something.
func (c *clock) at(t float64, do func()) {
	c.count++
	heap.Push(c, event{t, c.count, do})
}

// run lets everything happen.
func (c *clock) run() {
	for len(c.events) > 0 {
		e := heap.Pop(c).(event)
		c.now = e.at
		e.do()
	}
}

// network is the cards of all hosts.
type network struct {
	*clock
	latency float64
	rate    []float64 // by host, of its card in each direction; +Inf has no end
	out, in []float64 // by host: from when on its card may send, and receive
	arrived []arriving
}

func newNetwork(c *clock, latency float64, rates []float64) *network {
	return &network{clock: c, latency: latency, rate: rates, out: make([]float64, len(rates)), in: make([]float64, len(rates))}
}

// send sends a message, and does what is to be done when the last byte has come. It
// leaves when the messages before it have left; what comes while the receiving card is
// busy waits, in the order of coming.
func (n *network) send(from, to int, bytes float64, came func()) {
	begin := max(n.now, n.out[from])
	left := begin + bytes/n.rate[from]
	n.out[from] = left
	n.at(begin+n.latency, func() { n.at(n.receive(to, arriving{n.now, bytes / n.rate[to], left + n.latency}), came) })
}

// arriving is a message at the card that receives it: when its first byte comes, how
// long the card takes, and when the last byte comes at the earliest.
type arriving struct{ first, takes, last float64 }

// receive is when a message has been received.
func (n *network) receive(to int, m arriving) float64 {
	n.in[to] = max(m.first, n.in[to]) + m.takes
	return max(n.in[to], m.last)
}

// exchange is a message from each graph rank to each other one. A rank looks for all of
// them alone, so that they are no events of their own.
type exchange struct {
	began []float64 // by rank: from when on its card sends
	left  int       // ranks that have not sent
}

// leave has a rank send its messages of an exchange, the next rank's first: p says how
// long each is, in units of N bytes.
func (n *network) leave(x *exchange, from int, p *pattern, unit float64) {
	x.began[from] = max(n.now, n.out[from])
	n.out[from] = x.began[from] + unit*p.before(from, len(x.began))/n.rate[from]
	x.left--
}

// settle says when each rank has the messages of an exchange that all have begun. What
// else came to its card meanwhile waits behind them.
func (n *network) settle(x *exchange, p *pattern, unit float64, came func(to int, at float64)) {
	ranks := len(x.began)
	for to := range x.began {
		list, at := n.arrived[:0], n.now
		for k := 1; k < ranks; k++ {
			from := to - k
			if from < 0 {
				from += ranks
			}
			before := unit * p.before(from, k)
			size := unit*p.before(from, k+1) - before
			first := x.began[from] + before/n.rate[from] + n.latency
			list = append(list, arriving{first, size / n.rate[to], first + size/n.rate[from]})
		}
		order := func(a, b arriving) int { return cmp.Compare(a.first, b.first) }
		if !slices.IsSortedFunc(list, order) {
			slices.SortFunc(list, order)
		}
		for _, m := range list {
			at = max(at, n.receive(to, m))
		}
		n.arrived = list
		came(to, at)
	}
}

// pattern is how many rows, or bytes, ranks send each other.
type pattern struct {
	ranks    int
	sums     [][]float64 // by sender: of the first messages, in the order of sending
	receiver []float64   // else, by receiver: of those before it, where all send it as many
	sender   []float64   // else, by sender: where it sends as many to all
	received []float64   // by receiver, once it is known
}

// before is the sum of what a rank sends to those before the k-th after it, k from 1.
func (p *pattern) before(from, k int) float64 {
	switch {
	case p.sums != nil:
		return p.sums[from][k-1]
	case p.sender != nil:
		return float64(k-1) * p.sender[from]
	}
	first, end := from+1, from+k
	if end <= p.ranks {
		return p.receiver[end] - p.receiver[first]
	}
	return p.receiver[p.ranks] - p.receiver[first] + p.receiver[end-p.ranks]
}

// to is what a rank sends another.
func (p *pattern) to(from, to int) float64 {
	k := (to - from + p.ranks) % p.ranks
	return p.before(from, k+1) - p.before(from, k)
}

// come is what comes to each, of all.
func (p *pattern) come() []float64 {
	if p.received != nil {
		return p.received
	}
	p.received = make([]float64, p.ranks)
	for to := range p.received {
		for k := 1; k < p.ranks; k++ {
			p.received[to] += p.to((to-k+p.ranks)%p.ranks, to)
		}
	}
	return p.received
}

// listed is the pattern of explicit numbers, by sender and receiver; backward, of what
// goes back.
func listed(rows [][]float64, backward bool) *pattern {
	p := &pattern{ranks: len(rows)}
	for from := range rows {
		sums := make([]float64, p.ranks)
		for k := 1; k < p.ranks; k++ {
			a, b := from, (from+k)%p.ranks
			if backward {
				a, b = b, a
			}
			sums[k] = sums[k-1] + rows[a][b]
		}
		p.sums = append(p.sums, sums)
	}
	return p
}

// spread is the pattern of ghosts that have as many owners each as any; backward, of
// what goes back to them.
func spread(ghosts []float64, backward bool) *pattern {
	n := len(ghosts)
	p := &pattern{ranks: n}
	each, sums := make([]float64, n), make([]float64, n+1)
	for r, g := range ghosts {
		each[r] = g / float64(max(n-1, 1))
		sums[r+1] = sums[r] + each[r]
	}
	if backward {
		p.sender = each
	} else {
		p.receiver = sums
	}
	return p
}

// even is that of messages of one length.
func even(ranks int) *pattern {
	return &pattern{ranks: ranks, sender: slices.Repeat([]float64{1}, ranks)}
}
