package simulate

import "siafu/ranks/schedule"

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

// letters are what a box has come to hold, and what is done when it is enough.
type letters struct {
	came, want int
	then       func()
}

// post is a rank with boxes: a graph rank, or a server.
type post struct {
	s     *simulation
	id    int
	boxes map[box]*letters
	look  func() // at what has come; may be nil
}

func newPost(s *simulation, id int) *post { return &post{s: s, id: id, boxes: map[box]*letters{}} }

// box is that of a purpose.
func (p *post) box(b box) *letters {
	l := p.boxes[b]
	if l == nil {
		l = &letters{want: -1}
		p.boxes[b] = l
	}
	return l
}

// send sends a message into a box of another rank.
func (p *post) send(to *post, bytes float64, b box) {
	p.s.network.send(p.id, to.id, bytes, func() { to.receive(b) })
}

// receive takes a message in, or all those of an exchange.
func (p *post) receive(b box) {
	l := p.box(b)
	l.came++
	if l.came == l.want {
		p.open(b)
	} else if p.look != nil {
		p.look()
	}
}

// await does something when N messages are in a box.
func (p *post) await(b box, want int, then func()) {
	l := p.box(b)
	l.want, l.then = want, then
	if l.came == want {
		p.open(b)
	}
}

// open takes the messages out of a box.
func (p *post) open(b box) {
	then := p.boxes[b].then
	delete(p.boxes, b)
	then()
}

// host is a graph rank that goes in step, with its walks.
type host struct {
	*crew
	*post
	team  *[]*host // all of them
	walks []walk
	on    *walk // nil between walks
	then  func()
	epoch int
	since float64 // of the walk: counted up to there
	hub   *post   // its server; nil without servers
}

// walk is a graph of tasks and where their times are.
type walk struct {
	*schedule.Walk
	*track
}

// inStep begins the epochs of ranks that go in step.
func (s *simulation) inStep() {
	var servers []*post
	for n := range s.Servers {
		servers = append(servers, newPost(s, len(s.Ranks)+n))
	}
	var hosts []*host
	for n, c := range s.crews {
		h := &host{crew: c, post: newPost(s, n), team: &hosts}
		h.post.look = h.glance
		for _, t := range c.rank.tracks() {
			h.walks = append(h.walks, walk{schedule.NewWalk(t.Graph), t})
		}
		if s.Servers > 0 {
			h.hub = servers[n%s.Servers]
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

// begin begins an epoch of a graph rank: weights, the walks with the sum of losses
// after the first, gradients. Its end is when the next one's weights are there.
func (h *host) begin(epoch int) {
	h.epoch = epoch
	s := h.crew.s
	if epoch > 0 {
		s.ends[epoch-1] = s.now
	}
	if epoch == s.epochs {
		h.last = s.now
		return
	}
	times := h.times()
	h.work(times.Pull, 0, func() {
		s.processors.run(times.Left*h.slower, func() { h.walk(0) })
	})
}

// times are those of the epoch under way.
func (h *host) times() *Epoch { return &h.rank.Epochs[h.epoch%len(h.rank.Epochs)] }

// walk goes through the n-th graph of tasks, and what follows.
func (h *host) walk(n int) {
	h.on, h.since = &h.walks[n], h.crew.s.now
	h.on.Start(h.epoch)
	h.then = func() {
		if n > 0 {
			h.flush()
			return
		}
		h.work(h.times().Score, 0, func() {
			h.sum(losses, lossBytes, func() {
				if len(h.walks) > 1 {
					h.walk(1)
				} else {
					h.flush()
				}
			})
		})
	}
	h.dispatch()
}

// lossBytes is about what ranks sum of an epoch's losses and hits.
const lossBytes = 128

// pass counts the time since the last event of a walk.
func (h *host) pass() {
	s := h.crew.s
	if _, awaited := h.on.Awaited(); awaited {
		h.use.Rows += (s.now - h.since) * float64(h.free) / float64(s.Workers)
	}
	h.since = s.now
}

// dispatch gives tasks to workers that have none, and ends the walk where it has ended.
func (h *host) dispatch() {
	for h.free > 0 {
		t, ok := h.on.Next()
		if !ok {
			break
		}
		h.start(h, t, h.times().Tasks[h.on.place[t.Ref]]*h.rank.factor(t.Stage))
	}
	switch {
	case h.on.Finished():
		then := h.then
		h.on = nil
		then()
	case h.free > 0 && h.arrived(): // a worker that has nothing to run has asked
		h.dispatch()
	}
}

// done is the end of a task: a worker takes note of it, asks for messages once, and
// takes the next.
func (h *host) done(t schedule.Task) {
	if t.Stage == schedule.Send || t.Stage == schedule.SendBackward {
		h.leave(t)
	}
	h.on.Done(t)
	h.idle()
}

// idle is what a worker does between two tasks.
func (h *host) idle() {
	h.arrived()
	h.dispatch()
}

// glance is what a worker without a task does when messages come.
func (h *host) glance() {
	if h.on == nil || h.free == 0 {
		return
	}
	h.pass()
	if h.arrived() {
		h.dispatch()
	}
}

// leave sends rows to all other ranks, the next one first.
func (h *host) leave(t schedule.Task) {
	s, backward := h.crew.s, t.Stage == schedule.SendBackward
	h.exchange(rowBox(t.Layer, h.epoch, backward), s.pattern(backward), s.Bytes[t.Layer])
}

func rowBox(layer, epoch int, backward bool) box {
	if backward {
		return box{gradRows, epoch, layer}
	}
	return box{rows, epoch, layer}
}

// exchange sends a message to each other graph rank, whose box has one when it has
// those of all.
func (h *host) exchange(b box, p *pattern, unit float64) {
	s, n := h.crew.s, len(h.crew.s.Ranks)
	x := s.exchanges[b]
	if x == nil {
		x = &exchange{make([]float64, n), n}
		s.exchanges[b] = x
	}
	s.network.leave(x, h.crew.id, p, unit)
	h.moves(unit * p.before(h.crew.id, n))
	if x.left > 0 {
		return
	}
	delete(s.exchanges, b)
	came := p.come()
	s.network.settle(x, p, unit, func(to int, at float64) {
		s.at(at, func() {
			q := (*h.team)[to]
			q.moves(unit * came[to])
			q.receive(b)
		})
	})
}

// arrived tells the walk of the rows that it awaits, if they are there.
func (h *host) arrived() bool {
	t, ok := h.on.Awaited()
	if !ok {
		return false
	}
	b := rowBox(t.Layer, h.epoch, t.Stage == schedule.ReceiveBackward)
	if h.box(b).came == 0 {
		return false
	}
	delete(h.boxes, b)
	h.on.Done(t)
	return true
}

// shortBytes is the length up to which a vector is summed in one round
// (world.SumFloat32s).
const shortBytes = 4 << 10

// sum is a sum over all graph ranks: everybody receives everybody's vector, or a share
// of it, and then all sums of shares.
func (h *host) sum(of what, bytes float64, then func()) {
	if bytes <= shortBytes {
		h.round(box{of, h.epoch, 0}, bytes, then)
		return
	}
	share := bytes / float64(len(h.crew.s.Ranks))
	h.round(box{of, h.epoch, 0}, share, func() { h.round(box{of, h.epoch, 1}, share, then) })
}

// round sends N bytes to all other graph ranks, and awaits theirs.
func (h *host) round(b box, bytes float64, then func()) {
	if len(h.crew.s.Ranks) == 1 {
		then()
		return
	}
	h.exchange(b, h.crew.s.even, bytes)
	h.wait(b, then)
}

// wait is await of a rank that does nothing else.
func (h *host) wait(b box, then func()) {
	began := h.crew.s.now
	h.await(b, 1, func() {
		h.use.Sums += h.crew.s.now - began
		then()
	})
}

// flush hands gradients over and gets the next weights.
func (h *host) flush() {
	next := func() { h.begin(h.epoch + 1) }
	h.work(h.times().Flush, 0, func() {
		if h.hub == nil {
			h.sum(gradients, h.crew.s.Weights, next)
			return
		}
		h.send(h.hub, h.crew.s.Weights, box{gradients, h.epoch, 0})
		h.wait(box{weights, h.epoch, 0}, next)
	})
}

// serve is an epoch of a server: gradients of its ranks come, servers exchange their
// sums, and the weights go to the same ranks.
func (s *simulation) serve(servers []*post, k int, hosts []*host, epoch int) {
	if epoch == s.epochs {
		return
	}
	p := servers[k]
	var mine []*host
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
					p.send(r.post, s.Weights, box{weights, epoch, 0})
				}
				s.serve(servers, k, hosts, epoch+1)
			})
		})
	})
}
