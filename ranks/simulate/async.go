package simulate

import (
	"math"
	"time"

	"siafu/internal/wire"
	"siafu/ranks/engine"
	"siafu/ranks/params/protocol"
	"siafu/ranks/schedule"
)

// taskKey names a task of an epoch.
type taskKey struct {
	stage           schedule.Stage
	layer, interval int
}

// asyncRank is a graph rank in bounded asynchrony: the Executor of its AsyncScheduler.
type asyncRank struct {
	*workerPool
	*engine.AsyncScheduler
	world  *asyncCluster
	inbox  []message
	stored map[epochTask]int // messages stored so far, by rows and epoch
	oldest map[taskKey]int   // the last epoch with all rows stored
	until  time.Time         // end of its wait budget
	nodes  int               // number of ranks that send it rows
	ranges int               // messages of a layer's rows received per epoch
	ended  map[int]int       // by epoch: intervals that have finished it
}

// keyIn returns the key of a task in its epoch.
func keyIn(t schedule.Task) taskKey { return taskKey{t.Stage, t.Layer, t.Interval} }

// epochTask names a task of a run.
type epochTask struct {
	taskKey
	epoch int
}

// message is a message of package protocol or, if rows is set, a message with ghost rows.
type message struct {
	protocol.Message
	rows, backward bool
}

// asyncCluster are all ranks in bounded asynchrony, and their servers.
type asyncCluster struct {
	ranks   []*asyncRank
	servers []*protocol.Server
	busy    []float64 // by server with its own host: time until which it is busy
}

// unweighted is an Updater that updates no weights.
type unweighted struct{}

func (unweighted) Update(int, int, []float32, []float32) {}
func (unweighted) State() [][]float32                    { return nil }

// startAsync begins the epochs of ranks in bounded asynchrony. The messages equal those of a run, but
// have no values.
func (s *simulation) startAsync() {
	set := protocol.Setting{Servers: max(s.Servers, 1), Staleness: s.Staleness}
	for _, r := range s.Ranks {
		set.Intervals = append(set.Intervals, r.Outline.Intervals)
	}
	world := &asyncCluster{busy: make([]float64, set.Servers)}
	for k := range set.Servers {
		layers := make([]protocol.Range, len(s.Ranks[0].Outline.Layers))
		world.servers = append(world.servers, protocol.New(set, k, layers, nil, unweighted{}))
	}
	for n, c := range s.crews {
		o := c.rank.Outline
		p := &asyncRank{workerPool: c, world: world, stored: map[epochTask]int{}, oldest: map[taskKey]int{}, ended: map[int]int{}}
		p.AsyncScheduler = engine.NewAsyncScheduler(o, set, n, s.Workers, 0, s.Linger, s.time, p)
		p.Epochs, p.nodes = s.epochs, len(s.Ranks)-1
		for r, k := range set.Intervals {
			if r != n {
				p.ranges += k
			}
		}
		world.ranks = append(world.ranks, p)
	}
	for _, p := range world.ranks {
		p.panicOn(p.Start())
		p.dispatch()
	}
}

// panicOn panics on errors of the scheduler, which occur only if ranks break the protocol.
func (p *asyncRank) panicOn(err error) {
	if err != nil {
		panic(err)
	}
}

// workOf returns the work of a task.
func (p *asyncRank) workOf(t schedule.Task) (sum Work) {
	times := p.rank.asyncTimes()[t.Epoch%len(p.rank.Epochs)]
	for _, t := range p.FusedStages(t) {
		factor := p.rank.factor(t.Stage)
		switch t.Stage {
		case schedule.Receive:
			factor /= float64(max(p.ranges, 1))
		case schedule.ReceiveBackward:
			factor /= float64(max(p.nodes, 1))
		}
		sum = sum.plus(times[keyIn(t)].times(factor))
	}
	return sum
}

// dispatch assigns tasks to idle workers.
func (p *asyncRank) dispatch() {
	for p.free > 0 {
		t, ok := p.Next()
		if !ok {
			return
		}
		p.start(p, t, p.workOf(t))
	}
}

func (p *asyncRank) accountTime() {}

func (p *asyncRank) idle() {
	p.poll()
	p.dispatch()
	if p.free == 0 {
		return
	}
	if begun, err := p.StartStale(); begun || err != nil {
		p.panicOn(err)
		p.idle()
	}
	if until := p.WaitDeadline(); !until.IsZero() && until != p.until {
		p.until = until
		p.s.at(max(p.s.now, float64(until.UnixNano()+1)/1e9), p.idle)
	}
	p.assist()
}

func (p *asyncRank) done(t schedule.Task) {
	switch t.Stage {
	case schedule.Send:
		p.sendRows(t, float64(p.Intervals))
	case schedule.GhostGrads:
		p.sendRows(t, 1)
	case schedule.Receive, schedule.ReceiveBackward:
		p.noteStored(t)
	}
	p.panicOn(p.AsyncScheduler.Done(t))
	p.idle()
}

// sendRows sends a fraction of a layer's rows to the ranks that have them as ghosts.
func (p *asyncRank) sendRows(t schedule.Task, parts float64) {
	backward := t.Stage == schedule.GhostGrads
	l := message{protocol.Message{From: p.id, Epoch: t.Epoch, Layer: t.Layer}, true, backward}
	of := p.s.pattern(backward)
	for k := 1; k < len(p.s.Ranks); k++ {
		to := p.world.ranks[(p.id+k)%len(p.s.Ranks)]
		bytes := of.to(p.id, to.id) * p.s.Bytes[t.Layer] / parts
		p.addCopied(bytes)
		p.s.network.send(p.id, to.id, bytes, func() {
			to.addCopied(bytes)
			to.receive(l)
		})
	}
}

// receive handles an arriving message.
func (p *asyncRank) receive(l message) {
	p.inbox = append(p.inbox, l)
	if p.free > 0 { // an idle worker polls for messages
		p.idle()
	}
}

// poll handles received messages.
func (p *asyncRank) poll() {
	for len(p.inbox) > 0 {
		l := p.inbox[0]
		p.inbox = p.inbox[1:]
		switch {
		case l.rows:
			p.QueueReceive(l.Epoch, l.Layer, l.backward)
		case l.To >= len(p.s.Ranks): // the server that rank 0 hosts if no rank is a server
			p.serve(0, l.Message)
		default:
			p.panicOn(p.HandleMessage(l.Message))
		}
	}
}

// serve handles a message to a server.
func (p *asyncRank) serve(server int, m protocol.Message) {
	out, err := p.world.servers[server].Step(m)
	p.panicOn(err)
	p.panicOn(p.Deliver(out))
}

// noteStored records stored rows. Rows of an epoch arrive after those of the previous epoch.
func (p *asyncRank) noteStored(t schedule.Task) {
	at, all := taskKey{stage: t.Stage, layer: t.Layer}, p.ranges
	if t.Stage == schedule.ReceiveBackward {
		all = p.nodes
	}
	of := epochTask{at, t.Epoch}
	if p.stored[of]++; p.stored[of] == all {
		delete(p.stored, of)
		p.oldest[at] = max(p.oldest[at], t.Epoch)
	}
}

// Oldest implements engine.Executor.
func (p *asyncRank) Oldest(t schedule.Task) int {
	if p.nodes == 0 {
		return math.MaxInt
	}
	at := taskKey{stage: schedule.Receive, layer: t.Layer}
	if t.Stage == schedule.GatherBackward {
		at.stage = schedule.ReceiveBackward
	}
	return p.oldest[at]
}

// time returns the current time for wait budgets.
func (s *simulation) time() time.Time { return time.Unix(0, int64(s.now*1e9)) }

// Gradient implements engine.Executor.
func (p *asyncRank) Gradient(int, int) []float32 { return nil }

// Ended implements engine.Executor.
func (p *asyncRank) Ended(epoch int) error {
	if p.ended[epoch]++; p.ended[epoch] == p.Intervals {
		delete(p.ended, epoch)
		p.last = p.s.now
		p.EndEpoch()
		p.s.ends[epoch-1] = p.s.now
	}
	return nil
}

// headerBytes is the approximate length of a message without values.
const headerBytes = 64

// bytes returns the length of a message.
func (p *asyncRank) bytes(m protocol.Message) float64 {
	switch m.Type {
	case wire.Weights:
		return headerBytes + p.s.Weights
	case wire.Gradient, wire.Sum:
		return headerBytes + p.s.Weights/float64(len(p.Layers))
	}
	return headerBytes
}

// Deliver implements engine.Executor.
func (p *asyncRank) Deliver(ms []protocol.Message) error {
	ranks := len(p.s.Ranks)
	host := func(id int) int { // rank 0 hosts the server if no rank is one
		if id >= ranks && p.s.Servers == 0 {
			return 0
		}
		return id
	}
	for _, m := range ms {
		from, to := host(m.From), host(m.To)
		switch {
		case to == from && m.To >= ranks:
			p.serve(0, m)
		case to == from:
			p.panicOn(p.HandleMessage(m))
		default:
			p.s.network.send(from, to, p.bytes(m), func() { p.world.deliver(p.s, m, to) })
		}
	}
	return nil
}

// deliver handles a message to a rank. A server on its own host processes one message at a time. Each
// gradient takes an equal share of the server's time per epoch.
func (w *asyncCluster) deliver(s *simulation, m protocol.Message, to int) {
	if to < len(w.ranks) {
		w.ranks[to].receive(message{Message: m})
		return
	}
	k, takes := to-len(w.ranks), 0.0
	if m.Type == wire.Gradient {
		takes = s.Server / float64(w.gradients())
	}
	w.busy[k] = max(w.busy[k], s.now) + takes
	s.at(w.busy[k], func() { w.ranks[0].serve(k, m) })
}

// gradients returns the number of gradients that a server receives per epoch.
func (w *asyncCluster) gradients() (n int) {
	for _, p := range w.ranks {
		n += p.Intervals * len(p.Layers)
	}
	return max(n/len(w.servers), 1)
}

// asyncTimes returns the seconds of the rank's tasks in bounded asynchrony, by epoch: as
// recorded, or derived from a synchronous recording. The times to receive ghost rows are totals of
// an epoch.
func (k *Rank) asyncTimes() []map[taskKey]Work {
	if k.pace != nil {
		return k.pace
	}
	for _, e := range k.Epochs {
		k.pace = append(k.pace, k.splitTimes(&e))
	}
	return k.pace
}

// splitTimes returns an epoch's times in bounded asynchrony. An interval gathers once instead
// of before and after the exchange, and sends its own rows. Gradients of ghosts are computed
// and sent in one task.
func (k *Rank) splitTimes(e *Epoch) map[taskKey]Work {
	times := map[taskKey]Work{}
	for _, track := range k.tracks() {
		for _, t := range track.Tasks() {
			takes := e.Tasks[track.place[t.Ref]]
			at := keyIn(t)
			switch t.Stage {
			case schedule.GatherOwn:
				at.stage = schedule.GatherGhosts
			case schedule.Send:
				for i := range k.Outline.Intervals {
					at.interval = i
					times[at] = times[at].plus(takes.times(1 / float64(k.Outline.Intervals)))
				}
				continue
			case schedule.GhostGrads, schedule.SendBackward:
				at = taskKey{schedule.GhostGrads, t.Layer, schedule.Whole}
			}
			times[at] = times[at].plus(takes)
		}
	}
	return times
}
