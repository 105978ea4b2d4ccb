package engine

import (
	"slices"

	"siafu/ranks/params/protocol"
	"siafu/ranks/schedule"
)

// Course decides what a graph rank does in bounded asynchrony (Dorylus, OSDI'21, §5):
// its intervals go through their epochs with whatever rows of neighbours are there,
// each at most s epochs ahead of the slowest interval of all ranks. It knows nothing of
// values: a rank that trains and a simulation of one ask the same Course.
//
// An interval's next task is queued when the one before it has ended. What a
// task in the queue still waits for is rows that have never come, and that
// nobody reads what it writes or writes what it reads (gate).
//
// It belongs to one goroutine at a time.
type Course struct {
	Outline
	Epochs int // to train; may be lowered

	crew     Crew
	chooser  *protocol.Chooser
	progress *protocol.Progress
	paces    []pace
	gates    []*gate // by layer, nil for a layer that does not gather

	// queue[:received] are messages that have come, and the rest are tasks; both
	// are in the order in which they were queued. active has a place for each job
	// that can run at once, here or with the backend, and running of them are
	// taken.
	queue    []job
	received int
	active   []job
	running  int
}

// Crew does what a Course decides, and tells it what only values and messages tell.
type Crew interface {
	// Here tells whether every row has come that a gather reads.
	Here(gather schedule.Task) bool
	// Gradient is that of a layer's weights, which an interval has made.
	Gradient(interval, layer int) []float32
	// Deliver sends messages, which stand until the next ones are made.
	Deliver([]protocol.Message) error
	// Ended takes note that an interval has finished an epoch, before anybody is told.
	Ended(epoch int) error
}

// pace is where an interval is: in this epoch if it is busy, else it has finished the
// epoch and has not begun another. asked is the server that has been asked for the
// epoch's weights, nobody once they have come; only a busy interval has asked.
type pace struct {
	epoch int
	busy  bool
	asked int
}

// nobody is no rank.
const nobody = -1

// job is a task that is queued or runs.
type job struct {
	schedule.Task
	access access
	runs   bool // in a place of Course.active
}

// NewCourse is that of a graph rank of a setting, whose network has so many weights;
// so many tasks may run here at once, beside those that a backend has. The outline's
// Ghosts say whether this rank has any.
func NewCourse(o Outline, s protocol.Setting, rank, workers, weights int, crew Crew) *Course {
	c := &Course{
		Outline: o, crew: crew,
		chooser: protocol.NewChooser(s, rank, len(o.Layers), weights), progress: protocol.NewProgress(s, rank),
		gates: make([]*gate, len(o.Layers)), active: make([]job, workers+o.Intervals),
	}
	for l, of := range o.Layers {
		if of.Gathers {
			c.gates[l] = &gate{ready: map[int]int{}}
		}
	}
	for range o.Intervals {
		c.paces = append(c.paces, pace{epoch: s.Trained, asked: nobody})
	}
	return c
}

// Start begins the epochs that may begin.
func (c *Course) Start() error { return c.startReady() }

// Finished tells whether every interval of every rank has finished the last epoch.
func (c *Course) Finished() bool { return c.progress.Slowest() >= c.Epochs && c.running == 0 }

// Waiting is how many tasks wait for a worker.
func (c *Course) Waiting() int { return len(c.queue) }

// Next takes a task that may run now.
func (c *Course) Next() (schedule.Task, bool) {
	for _, g := range c.gates {
		g.unclaim()
	}
	for k, j := range c.queue {
		if !c.mayRun(&j) {
			c.gates[j.Layer].claim(j.access)
			continue
		}
		c.queue = slices.Delete(c.queue, k, k+1)
		if k < c.received {
			c.received--
		}
		c.running++
		return c.begin(j), true
	}
	return schedule.Task{}, false
}

// Done takes note that a task has run, and queues what follows.
func (c *Course) Done(t schedule.Task) error {
	c.running--
	c.end(t)
	if t.Interval == schedule.Whole {
		return nil
	}
	for next, more := c.fused(t); more; next, more = c.fused(t) {
		t = next
	}
	switch t.Stage {
	case schedule.SendBackward:
		c.countGrads(t)
	case schedule.EmitBackward:
		return c.push(t)
	}
	c.enqueue(c.after(t))
	return nil
}

// Receive queues the task that puts rows of a message into their place. Such tasks come
// before all others, in the order in which the messages have come.
func (c *Course) Receive(epoch, layer int, backward bool) {
	t := schedule.Task{Stage: schedule.Receive, Epoch: epoch, Layer: layer, Interval: schedule.Whole}
	if backward {
		t.Stage = schedule.ReceiveBackward
	}
	c.queue = slices.Insert(c.queue, c.received, job{Task: t, access: accessOf(t.Stage)})
	c.received++
}

// Take takes a message of package protocol: another rank's progress, or weights, with
// which an interval begins its epoch unless they are those that were pulled.
func (c *Course) Take(m protocol.Message) error {
	if m.Type == protocol.Finished {
		if err := c.progress.Step(m); err != nil {
			return err
		}
		return c.startReady()
	}
	if err := c.chooser.Take(m); err != nil || m.Epoch == 0 {
		return err
	}
	c.paces[m.Interval].asked = nobody
	t := c.Outline.first()
	t.Epoch, t.Interval = m.Epoch, m.Interval
	c.enqueue(t)
	return nil
}

func (c *Course) enqueue(t schedule.Task) {
	c.queue = append(c.queue, job{Task: t, access: accessOf(t.Stage)})
}

// countGrads counts an interval whose gradient is published. With the rank's
// last one of that epoch, the gradients of ghosts are due to their owners.
func (c *Course) countGrads(t schedule.Task) {
	g := c.gates[t.Layer]
	if g.ready[t.Epoch]++; g.ready[t.Epoch] < c.Intervals {
		return
	}
	delete(g.ready, t.Epoch)
	if c.Ghosts {
		c.enqueue(schedule.Task{Stage: schedule.GhostGrads, Epoch: t.Epoch, Layer: t.Layer, Interval: schedule.Whole})
	}
}

// push hands over the gradient of a layer. After the first layer's the interval
// has finished its epoch.
func (c *Course) push(t schedule.Task) error {
	m := c.chooser.Gradient(t.Interval, t.Epoch, t.Layer, c.crew.Gradient(t.Interval, t.Layer))
	if err := c.crew.Deliver([]protocol.Message{m}); err != nil {
		return err
	}
	if t.Layer > 0 {
		c.enqueue(behindPush(t))
		return nil
	}
	c.paces[t.Interval].busy = false
	told := c.progress.Finish(t.Interval, t.Epoch)
	if err := c.crew.Ended(t.Epoch); err != nil {
		return err
	}
	if err := c.crew.Deliver(told); err != nil {
		return err
	}
	return c.startReady()
}

// startReady sends for weights for the intervals that may start an epoch.
func (c *Course) startReady() error {
	for k := range c.paces {
		p := &c.paces[k]
		if p.busy || p.epoch >= c.Epochs || !c.progress.MayStart(p.epoch+1) {
			continue
		}
		p.busy = true
		p.epoch++
		fetch := c.chooser.Fetch(k, p.epoch, 0)
		p.asked = fetch[0].To
		if err := c.crew.Deliver(fetch); err != nil {
			return err
		}
	}
	return nil
}

// finished is how many epochs all intervals of this rank have finished.
func (c *Course) finished() int {
	least := c.Epochs
	for _, p := range c.paces {
		done := p.epoch
		if p.busy {
			done--
		}
		least = min(least, done)
	}
	return least
}
