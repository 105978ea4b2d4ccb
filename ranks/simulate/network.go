package simulate

import (
	"cmp"
	"container/heap"
	"slices"
)

// Link is the network link between any two ranks, each on its own host.
type Link struct {
	Rate    float64 // bytes per second, into and out of a host concurrently; +Inf: unlimited
	Latency float64 // seconds from the send of a byte to its arrival
}

// event is an action at a time. Events of the same time run in the order of scheduling.
type event struct {
	at     float64
	number int
	do     func()
}

// clock is the time of a simulation, in seconds, and its future events.
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

// at schedules an event.
func (c *clock) at(t float64, do func()) {
	c.count++
	heap.Push(c, event{t, c.count, do})
}

// run executes all events.
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
	rate    []float64 // by host, of its card in each direction; +Inf: unlimited
	out, in []float64 // by host: from when on its card may send, and receive
	arrived []arriving
}

func newNetwork(c *clock, latency float64, rates []float64) *network {
	return &network{clock: c, latency: latency, rate: rates, out: make([]float64, len(rates)), in: make([]float64, len(rates))}
}

// send sends a message, and calls came when its last byte has arrived. It is sent after
// earlier messages; messages that arrive at a busy card wait in order of arrival.
func (n *network) send(from, to int, bytes float64, came func()) {
	begin := max(n.now, n.out[from])
	left := begin + bytes/n.rate[from]
	n.out[from] = left
	n.at(begin+n.latency, func() { n.at(n.receive(to, arriving{n.now, bytes / n.rate[to], left + n.latency}), came) })
}

// arriving is a message at its receiving card: arrival of the first byte, time of the card,
// and earliest arrival of the last byte.
type arriving struct{ first, takes, last float64 }

// receive returns the time when a message has been received.
func (n *network) receive(to int, m arriving) float64 {
	n.in[to] = max(m.first, n.in[to]) + m.takes
	return max(n.in[to], m.last)
}

// exchange is a message from each graph rank to each other one. A rank waits only for all of
// them, so they are not separate events.
type exchange struct {
	began []float64 // by rank: from when on its card sends
	left  int       // ranks that have not sent
}

// leave sends a rank's messages of an exchange, the next rank's first; p has their lengths in
// units of unit bytes.
func (n *network) leave(x *exchange, from int, p *pattern, unit float64) {
	x.began[from] = max(n.now, n.out[from])
	n.out[from] = x.began[from] + unit*p.before(from, len(x.began))/n.rate[from]
	x.left--
}

// settle computes when each rank has the messages of an exchange that all have begun. Other
// messages to its card wait after them.
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

// pattern is the number of rows, or bytes, between each pair of ranks.
type pattern struct {
	ranks    int
	sums     [][]float64 // by sender: of the first messages, in the order of sending
	receiver []float64   // else, by receiver: sum over the receivers before it, if each rank sends it the same number
	sender   []float64   // else, by sender: number that it sends to each rank
	received []float64   // by receiver, once computed
}

// before returns the sum of a rank's messages before the one to the k-th rank after it, k from
// 1.
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

// to returns the size of a message between two ranks.
func (p *pattern) to(from, to int) float64 {
	k := (to - from + p.ranks) % p.ranks
	return p.before(from, k+1) - p.before(from, k)
}

// come returns the total received by each rank.
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

// listed returns the pattern of explicit numbers, by sender and receiver; backward: of
// returned gradients.
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

// spread returns the pattern of ghosts that are evenly distributed over owners; backward: of
// returned gradients.
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

// even returns the pattern of messages of equal length.
func even(ranks int) *pattern {
	return &pattern{ranks: ranks, sender: slices.Repeat([]float64{1}, ranks)}
}

// processors models the processors that the ranks of one process share. A worker keeps its
// processor while it has work. Then the worker that has waited longest gets it.
type processors struct {
	*clock
	shared bool // else there is one for each worker
	free   int
	queue  []func()
}

// run occupies a processor for some seconds, as soon as one is free, and then calls then.
func (p *processors) run(seconds float64, then func()) {
	if !p.shared {
		p.at(p.now+seconds, then)
		return
	}
	p.queue = append(p.queue, func() {
		p.at(p.now+seconds, func() {
			p.free++
			rest := p.queue // other workers: they wait while this worker has work
			p.queue = nil
			then()
			p.queue = append(p.queue, rest...)
			p.give()
		})
	})
	p.give()
}

// give assigns free processors to waiting workers.
func (p *processors) give() {
	for p.free > 0 && len(p.queue) > 0 {
		start := p.queue[0]
		p.queue = p.queue[1:]
		p.free--
		start()
	}
}
