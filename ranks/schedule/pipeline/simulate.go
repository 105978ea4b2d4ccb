package pipeline

import "fmt"

// Costs are measured or assumed times, in seconds. A missing entry of a slice is 0.
type Costs struct {
	Forward  []float64 // of a microbatch, by stage
	Backward []float64
	Transfer []float64 // of the activations or gradients of a microbatch between stages s and s+1, by s
	Reduce   []float64 // Reduce and Apply, by stage
	Spill    []float64 // of the protected stage's microbatch

	// Preparation is the time that any redundancy adds to each own pass, as a fraction of the pass.
	Preparation float64
	// Detection is the time until all ranks know a loss and have agreed how to continue.
	Detection float64
	// Overlap is the fraction of redundant forward passes outside bubbles that takes no time, because it
	// runs in parallel with own passes (§3.5.2).
	Overlap float64
}

func at(list []float64, i int) float64 {
	if i < 0 || i >= len(list) {
		return 0
	}
	return list[i]
}

// seconds returns the time of an operation on its rank, without waits.
func (c *Costs) seconds(i Instruction) float64 {
	switch i.Op {
	case Forward, RedundantForward:
		return at(c.Forward, i.Stage)
	case Backward, RedundantBackward:
		return at(c.Backward, i.Stage)
	case Reduce:
		return at(c.Reduce, i.Stage)
	case Spill:
		return at(c.Spill, i.Stage)
	}
	return 0
}

// link returns the time of a message between two stages. Redundant gradients cross two links, of which
// the slower one counts.
func (c *Costs) link(from, to int) float64 {
	low, high := min(from, to), max(from, to)
	if high == low+1 {
		return at(c.Transfer, low)
	}
	return max(at(c.Transfer, from), at(c.Transfer, from-1))
}

// Usage is the time of a rank in a step, in seconds. All but Redundant sum to Timeline.Seconds.
type Usage struct {
	Busy               float64 // own passes, Reduce and Apply
	Extra              float64 // redundant work that delays own work
	WaitForPredecessor float64 // bubbles, including the redundant work that runs in them
	WaitForSuccessor   float64
	Idle               float64 // after the last instruction
	Redundant          float64 // all redundant work
}

// Bubble returns the time in which the rank does no own work.
func (u Usage) Bubble() float64 { return u.WaitForPredecessor + u.WaitForSuccessor + u.Idle }

// Event is an executed instruction. The time of a receive is its wait. Redundant work may overlap the
// instructions after it.
type Event struct {
	Instruction
	Begin, End float64
}

// Timeline is a simulated step.
type Timeline struct {
	Settings Settings // of Simulate
	Seconds  float64
	Ranks    []Usage   // by stage of the list
	Events   [][]Event // in the order of the list
}

// Simulate returns the timeline of a step. Equal arguments give equal timelines.
func Simulate(s Settings, c Costs) Timeline {
	lists := make([][]Instruction, s.Stages)
	for stage := range lists {
		lists[stage] = s.Of(stage)
	}
	if s.Redundancy != Off {
		c = c.prepared()
	}
	t, err := c.Execute(lists)
	if err != nil {
		panic(err) // lists of Of cannot deadlock
	}
	t.Settings = s
	return t
}

// prepared returns the costs with redundancy.
func (c Costs) prepared() Costs {
	scaled := func(list []float64) []float64 {
		next := make([]float64, len(list))
		for k, x := range list {
			next[k] = (1 + c.Preparation) * x
		}
		return next
	}
	c.Forward, c.Backward = scaled(c.Forward), scaled(c.Backward)
	return c
}

// Execute returns the timeline of lists, one per rank. Messages between two stages in one direction follow
// one another; other messages do not delay them. A send takes no time of the sender. The error names the
// instruction that waits for ever.
func (c Costs) Execute(lists [][]Instruction) (Timeline, error) {
	e := &executor{Costs: c, arrived: map[Instruction]float64{}, links: map[[2]int]float64{}}
	e.ranks = make([]rankClock, len(lists))
	t := Timeline{Ranks: make([]Usage, len(lists)), Events: make([][]Event, len(lists))}
	for moved := true; moved; {
		moved = false
		for r, list := range lists {
			for e.ranks[r].next < len(list) && e.step(&e.ranks[r], list[e.ranks[r].next]) {
				moved = true
			}
		}
	}
	for r := range lists {
		k := &e.ranks[r]
		if k.next < len(lists[r]) {
			return t, fmt.Errorf("list %d waits for ever at %v", r, lists[r][k.next])
		}
		k.payDebt(&c)
		t.Seconds = max(t.Seconds, k.now)
		t.Ranks[r], t.Events[r] = k.usage, k.events
	}
	for r := range t.Ranks {
		u := &t.Ranks[r]
		u.Idle = t.Seconds - u.Busy - u.Extra - u.WaitForPredecessor - u.WaitForSuccessor
	}
	return t, nil
}

// executor executes lists. The key of a message is its receive instruction.
type executor struct {
	Costs
	ranks   []rankClock
	arrived map[Instruction]float64
	links   map[[2]int]float64 // time at which each link is free
}

// rankClock is the progress of a rank.
type rankClock struct {
	next    int
	now     float64
	forward float64 // redundant forward passes that have neither run in a wait nor delayed own work yet
	debt    float64 // other such redundant work
	usage   Usage
	events  []Event
}

// receiver returns the receive instruction of a send, and the stage that sends.
func (i Instruction) receiver() (receive Instruction, from int) {
	switch i.Op {
	case SendActivations:
		return Instruction{ReceiveActivations, i.Peer, i.Microbatch, i.Stage}, i.Stage
	case SendGradients:
		return Instruction{ReceiveGradients, i.Peer, i.Microbatch, i.Stage}, i.Stage
	}
	return Instruction{ReceiveRedundantGradients, i.Stage, i.Microbatch, i.Stage + 1}, i.Stage + 1
}

// step executes an instruction, or reports false if its message was not sent yet.
func (e *executor) step(k *rankClock, i Instruction) bool {
	begin, seconds := k.now, e.seconds(i)
	switch {
	case i.Op.Receives():
		arrival, sent := e.arrived[i]
		if !sent {
			return false
		}
		k.wait(arrival, i.Op == ReceiveActivations)
	case i.Op.Sends():
		receive, from := i.receiver()
		link := [2]int{from, i.Peer}
		e.links[link] = max(e.links[link], k.now) + e.link(from, i.Peer)
		e.arrived[receive] = e.links[link]
	case i.Op.Redundant():
		begin += k.forward + k.debt
		if i.Op == RedundantForward {
			k.forward += seconds
		} else {
			k.debt += seconds
		}
		k.usage.Redundant += seconds
	default:
		k.payDebt(&e.Costs)
		begin = k.now
		k.now += seconds
		k.usage.Busy += seconds
	}
	k.next++
	k.events = append(k.events, Event{i, begin, max(k.now, begin+seconds)})
	return true
}

// wait advances the clock to the arrival of a message. Redundant work runs meanwhile.
func (k *rankClock) wait(arrival float64, predecessor bool) {
	if arrival <= k.now {
		return
	}
	waited := arrival - k.now
	if predecessor {
		k.usage.WaitForPredecessor += waited
	} else {
		k.usage.WaitForSuccessor += waited
	}
	left := max(k.forward+k.debt-waited, 0)
	k.forward = min(k.forward, left)
	k.debt = left - k.forward
	k.now = arrival
}

// payDebt delays own work by the redundant work that neither ran in a wait nor overlaps own work.
func (k *rankClock) payDebt(c *Costs) {
	extra := k.forward*(1-c.Overlap) + k.debt
	k.now += extra
	k.usage.Extra += extra
	k.forward, k.debt = 0, 0
}
