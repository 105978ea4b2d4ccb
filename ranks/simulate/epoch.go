package simulate

import "siafu/ranks/schedule"

// box identifies the messages of one purpose.
type box struct {
	what  messageKind
	epoch int
	at    int // layer, or round
}

type messageKind uint8

const (
	rows messageKind = iota
	gradRows
	losses
	gradients
	sums
	weights
)

// inbox is the number of messages in a box, and the action when it is reached.
type inbox struct {
	came, want int
	then       func()
}

// endpoint is a rank with inboxes: a graph rank, or a server.
type endpoint struct {
	s       *simulation
	id      int
	inboxes map[box]*inbox
	poll    func() // at what has come; may be nil
}

func newEndpoint(s *simulation, id int) *endpoint {
	return &endpoint{s: s, id: id, inboxes: map[box]*inbox{}}
}

// inbox returns the inbox of a purpose.
func (p *endpoint) inbox(b box) *inbox {
	l := p.inboxes[b]
	if l == nil {
		l = &inbox{want: -1}
		p.inboxes[b] = l
	}
	return l
}

// send sends a message into a box of another rank.
func (p *endpoint) send(to *endpoint, bytes float64, b box) {
	p.s.network.send(p.id, to.id, bytes, func() { to.receive(b) })
}

// receive adds a message, or all those of an exchange, to a box.
func (p *endpoint) receive(b box) {
	l := p.inbox(b)
	l.came++
	if l.came == l.want {
		p.takeMessages(b)
	} else if p.poll != nil {
		p.poll()
	}
}

// await calls then when the wanted number of messages is in a box.
func (p *endpoint) await(b box, want int, then func()) {
	l := p.inbox(b)
	l.want, l.then = want, then
	if l.came == want {
		p.takeMessages(b)
	}
}

// takeMessages removes the messages of a box.
func (p *endpoint) takeMessages(b box) {
	then := p.inboxes[b].then
	delete(p.inboxes, b)
	then()
}

// syncRank is a synchronous graph rank, with its walks.
type syncRank struct {
	*workerPool
	*endpoint
	team    *[]*syncRank // all of them
	walks   []walk
	current *walk // nil between walks
	then    func()
	epoch   int
	since   float64   // of the walk: time counted so far
	server  *endpoint // its server; nil without servers
}

// walk is a graph of tasks and their times.
type walk struct {
	*schedule.Walk
	*track
}

// startSync begins the epochs of synchronous ranks.
func (s *simulation) startSync() {
	var servers []*endpoint
	for n := range s.Servers {
		servers = append(servers, newEndpoint(s, len(s.Ranks)+n))
	}
	var hosts []*syncRank
	for n, c := range s.crews {
		h := &syncRank{workerPool: c, endpoint: newEndpoint(s, n), team: &hosts}
		h.endpoint.poll = h.pollMessages
		for _, t := range c.rank.tracks() {
			h.walks = append(h.walks, walk{schedule.NewWalk(t.Graph), t})
		}
		if s.Servers > 0 {
			h.server = servers[n%s.Servers]
		}
		hosts = append(hosts, h)
	}
	for k := range servers {
		s.serve(servers, k, hosts, 0)
	}
	for _, h := range hosts {
		h.begin(0)
	}
}

// begin begins an epoch of a graph rank: weights, the walks with the sum of losses after the
// first, gradients. It ends when the next epoch's weights have arrived.
func (h *syncRank) begin(epoch int) {
	h.epoch = epoch
	s := h.workerPool.s
	if epoch > 0 {
		s.ends[epoch-1] = s.now
	}
	if epoch == s.epochs {
		h.last = s.now
		return
	}
	times := h.times()
	h.work(times.Pull, 0, func() {
		s.processors.run(times.Left*h.slowdown, func() { h.walk(0) })
	})
}

// times returns the times of the current epoch.
func (h *syncRank) times() *Epoch { return &h.rank.Epochs[h.epoch%len(h.rank.Epochs)] }

// walk runs the n-th graph of tasks, and then the rest of the epoch.
func (h *syncRank) walk(n int) {
	h.current, h.since = &h.walks[n], h.workerPool.s.now
	h.current.Start(h.epoch)
	h.reader = h.newReader(h.current.track, h.times())
	h.then = func() {
		if n > 0 {
			h.exchangeGradients()
			return
		}
		h.work(h.times().Score, 0, func() {
			h.sum(losses, lossBytes, func() {
				if len(h.walks) > 1 {
					h.walk(1)
				} else {
					h.exchangeGradients()
				}
			})
		})
	}
	h.dispatch()
}

// lossBytes is the approximate size of the sums of an epoch's losses and hits.
const lossBytes = 128

// accountTime counts the time since the last event of a walk.
func (h *syncRank) accountTime() {
	s := h.workerPool.s
	if _, awaited := h.current.Awaited(); awaited {
		h.use.Rows += (s.now - h.since) * float64(h.free) / float64(s.Workers)
	}
	h.since = s.now
}

// dispatch assigns tasks to idle workers, and ends a finished walk.
func (h *syncRank) dispatch() {
	for h.free > 0 {
		t, ok := h.current.Next()
		if !ok {
			break
		}
		h.start(h, t, h.times().Tasks[h.current.place[t.Ref]].times(h.rank.factor(t.Stage)))
	}
	switch {
	case h.current.Finished():
		then := h.then
		h.current = nil
		then()
	case h.free > 0 && h.arrived(): // an idle worker has polled
		h.dispatch()
	default:
		h.assist()
	}
}

// done handles the end of a task: a worker records it, polls for messages once, and takes the
// next task.
func (h *syncRank) done(t schedule.Task) {
	if t.Stage == schedule.Send || t.Stage == schedule.SendBackward {
		h.sendRows(t)
	}
	h.current.Done(t)
	h.idle()
}

// idle handles a worker between two tasks.
func (h *syncRank) idle() {
	h.arrived()
	h.dispatch()
}

// pollMessages handles messages that arrive at an idle worker.
func (h *syncRank) pollMessages() {
	if h.current == nil || h.free == 0 {
		return
	}
	h.accountTime()
	if h.arrived() {
		h.dispatch()
	}
}

// sendRows sends rows to all other ranks, the next one first.
func (h *syncRank) sendRows(t schedule.Task) {
	s, backward := h.workerPool.s, t.Stage == schedule.SendBackward
	h.exchange(rowBox(t.Layer, h.epoch, backward), s.pattern(backward), s.Bytes[t.Layer])
}

func rowBox(layer, epoch int, backward bool) box {
	if backward {
		return box{gradRows, epoch, layer}
	}
	return box{rows, epoch, layer}
}

// exchange sends a message to each other graph rank. A rank's box has one message when all
// have arrived.
func (h *syncRank) exchange(b box, p *pattern, unit float64) {
	s, n := h.workerPool.s, len(h.workerPool.s.Ranks)
	x := s.exchanges[b]
	if x == nil {
		x = &exchange{make([]float64, n), n}
		s.exchanges[b] = x
	}
	s.network.leave(x, h.workerPool.id, p, unit)
	h.addCopied(unit * p.before(h.workerPool.id, n))
	if x.left > 0 {
		return
	}
	delete(s.exchanges, b)
	came := p.come()
	s.network.settle(x, p, unit, func(to int, at float64) {
		s.at(at, func() {
			q := (*h.team)[to]
			q.addCopied(unit * came[to])
			q.receive(b)
		})
	})
}

// arrived notifies the walk of its awaited rows, if they have arrived.
func (h *syncRank) arrived() bool {
	t, ok := h.current.Awaited()
	if !ok {
		return false
	}
	b := rowBox(t.Layer, h.epoch, t.Stage == schedule.ReceiveBackward)
	if h.inbox(b).came == 0 {
		return false
	}
	delete(h.inboxes, b)
	h.current.Done(t)
	return true
}

// shortBytes is the length up to which a vector is summed in one round
// (world.SumFloat32s).
const shortBytes = 4 << 10

// sum is a sum over all graph ranks: every rank receives every vector, or a part of it, and
// then the sums of all parts.
func (h *syncRank) sum(of messageKind, bytes float64, then func()) {
	if bytes <= shortBytes {
		h.round(box{of, h.epoch, 0}, bytes, then)
		return
	}
	share := bytes / float64(len(h.workerPool.s.Ranks))
	h.round(box{of, h.epoch, 0}, share, func() { h.round(box{of, h.epoch, 1}, share, then) })
}

// round sends some bytes to all other graph ranks, and awaits theirs.
func (h *syncRank) round(b box, bytes float64, then func()) {
	if len(h.workerPool.s.Ranks) == 1 {
		then()
		return
	}
	h.exchange(b, h.workerPool.s.even, bytes)
	h.wait(b, then)
}

// wait is await of an otherwise idle rank.
func (h *syncRank) wait(b box, then func()) {
	began := h.workerPool.s.now
	h.await(b, 1, func() {
		h.use.Sums += h.workerPool.s.now - began
		then()
	})
}

// exchangeGradients sends gradients and receives the next weights.
func (h *syncRank) exchangeGradients() {
	next := func() { h.begin(h.epoch + 1) }
	h.work(h.times().Flush, 0, func() {
		if h.server == nil {
			h.sum(gradients, h.workerPool.s.Weights, next)
			return
		}
		h.send(h.server, h.workerPool.s.Weights, box{gradients, h.epoch, 0})
		h.wait(box{weights, h.epoch, 0}, next)
	})
}

// serve simulates an epoch of a server: it receives its ranks' gradients, exchanges sums with
// servers, and sends the weights to its ranks.
func (s *simulation) serve(servers []*endpoint, k int, hosts []*syncRank, epoch int) {
	if epoch == s.epochs {
		return
	}
	p := servers[k]
	var mine []*syncRank
	for r := k; r < len(hosts); r += len(servers) {
		mine = append(mine, hosts[r])
	}
	p.await(box{gradients, epoch, 0}, len(mine), func() {
		for n := 1; n < s.Servers; n++ {
			p.send(servers[(k+n)%s.Servers], s.Weights, box{sums, epoch, 0})
		}
		p.await(box{sums, epoch, 0}, s.Servers-1, func() {
			s.processors.run(s.Server, func() {
				for _, r := range mine {
					p.send(r.endpoint, s.Weights, box{weights, epoch, 0})
				}
				s.serve(servers, k, hosts, epoch+1)
			})
		})
	})
}
