package simulate

import (
	"container/heap"
	"math"
)

// Link is what lies between any two ranks, each of which is on a host of its own.
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

// network is the cards of all ranks.
type network struct {
	*clock
	link    Link
	out, in []float64 // by rank: from when on its card may send, and receive
}

func newNetwork(c *clock, l Link, ranks int) *network {
	return &network{c, l, make([]float64, ranks), make([]float64, ranks)}
}

// send sends a message, and does what is to be done when the last byte has come. It
// leaves when the messages before it have left; what comes while the receiving card is
// busy waits, in the order of coming.
func (n *network) send(from, to int, bytes float64, came func()) {
	takes := 0.0
	if !math.IsInf(n.link.Rate, 1) {
		takes = bytes / n.link.Rate
	}
	begin := max(n.now, n.out[from])
	n.out[from] = begin + takes
	n.at(begin+n.link.Latency, func() {
		n.in[to] = max(n.now, n.in[to]) + takes
		n.at(n.in[to], came)
	})
}
