package simulate

import (
	"math"
	"time"

	"siafu/ranks/engine"
	"siafu/ranks/params/protocol"
	"siafu/ranks/schedule"
)

// place names a task of an epoch.
type place struct {
	stage           schedule.Stage
	layer, interval int
}

// pacer is a graph rank in bounded asynchrony: the Crew of its Course.
type pacer struct {
	*crew
	*engine.Course
	world  *paces
	inbox  []letter
	heard  map[rowsOf]int // messages of rows that have been put into their place
	oldest map[place]int  // the last epoch of which all have been
	until  time.Time      // when it will have lingered enough
	nodes  int            // that send it rows
	ranges int            // messages of rows of a layer that come in an epoch
	ended  map[int]int    // by epoch: intervals that have finished it
}

// rowsOf are those of an epoch.
type rowsOf struct {
	place
	epoch int
}

// letter is a message: of package protocol, or of rows where rows is.
type letter struct {
	protocol.Message
	rows, backward bool
}

// paces are all ranks in bounded asynchrony, and their servers.
type paces struct {
	ranks   []*pacer
	servers []*protocol.Server
	busy    []float64 // by server on a host of its own: until then
}

// unweighted steps no weights.
type unweighted struct{}

func (unweighted) Update(int, int, []float32, []float32) {}
func (unweighted) State() [][]float32                    { return nil }

// paced begins the epochs of ranks in bounded asynchrony. Messages are those of a run,
// without values.
func (s *simulation) paced() {
	set := protocol.Setting{Servers: max(s.Servers, 1), Staleness: s.Staleness}
	for _, r := range s.Ranks {
		set.Intervals = append(set.Intervals, r.Outline.Intervals)
	}
	world := &paces{busy: make([]float64, set.Servers)}
	for k := range set.Servers {
		layers := make([]protocol.Range, len(s.Ranks[0].Outline.Layers))
		world.servers = append(world.servers, protocol.New(set, k, layers, nil, unweighted{}))
	}
	for n, c := range s.crews {
		o := c.rank.Outline
		p := &pacer{crew: c, world: world, heard: map[rowsOf]int{}, oldest: map[place]int{}, ended: map[int]int{}}
		p.Course = engine.NewCourse(o, set, n, s.Workers, 0, s.Linger, s.time, p)
		p.Epochs, p.nodes = s.epochs, len(s.Ranks)-1
		for r, k := range set.Intervals {
			if r != n {
				p.ranges += k
			}
		}
		world.ranks = append(world.ranks, p)
	}
	for _, p := range world.ranks {
		p.must(p.Start())
		p.dispatch()
	}
}

// must is for what a Course says only of ranks that break the protocol.
func (p *pacer) must(err error) {
	if err != nil {
		panic(err)
	}
}

// seconds is what a task takes.
func (p *pacer) seconds(t schedule.Task) (sum float64) {
	times := p.rank.paced()[t.Epoch%len(p.rank.Epochs)]
	for _, t := range p.Chain(t) {
		takes := times[place{t.Stage, t.Layer, t.Interval}]
		switch t.Stage {
		case schedule.Receive:
			takes /= float64(max(p.ranges, 1))
		case schedule.ReceiveBackward:
			takes /= float64(max(p.nodes, 1))
		}
		sum += takes * p.rank.factor(t.Stage)
	}
	return sum
}

// dispatch gives tasks to workers that have none.
func (p *pacer) dispatch() {
	for p.free > 0 {
		t, ok := p.Next()
		if !ok {
			return
		}
		p.start(p, t, p.seconds(t))
	}
}

func (p *pacer) pass() {}

func (p *pacer) idle() {
	p.poll()
	p.dispatch()
	if p.free == 0 {
		return
	}
	if begun, err := p.Hurry(); begun || err != nil {
		p.must(err)
		p.idle()
	}
	if until := p.Until(); !until.IsZero() && until != p.until {
		p.until = until
		p.s.at(max(p.s.now, float64(until.UnixNano()+1)/1e9), p.idle)
	}
}

func (p *pacer) done(t schedule.Task) {
	switch t.Stage {
	case schedule.Send:
		p.leave(t, float64(p.Intervals))
	case schedule.GhostGrads:
		p.leave(t, 1)
	case schedule.Receive, schedule.ReceiveBackward:
		p.put(t)
	}
	p.must(p.Course.Done(t))
	p.idle()
}

// leave sends a share of a layer's rows to the ranks that hold them.
func (p *pacer) leave(t schedule.Task, parts float64) {
	backward := t.Stage == schedule.GhostGrads
	l := letter{protocol.Message{From: p.id, Epoch: t.Epoch, Layer: t.Layer}, true, backward}
	of := p.s.pattern(backward)
	for k := 1; k < len(p.s.Ranks); k++ {
		to := p.world.ranks[(p.id+k)%len(p.s.Ranks)]
		bytes := of.to(p.id, to.id) * p.s.Bytes[t.Layer] / parts
		p.moves(bytes)
		p.s.network.send(p.id, to.id, bytes, func() {
			to.moves(bytes)
			to.come(l)
		})
	}
}

// come is a message that comes.
func (p *pacer) come(l letter) {
	p.inbox = append(p.inbox, l)
	if p.free > 0 { // a worker without a task looks for messages
		p.idle()
	}
}

// poll takes what has come.
func (p *pacer) poll() {
	for len(p.inbox) > 0 {
		l := p.inbox[0]
		p.inbox = p.inbox[1:]
		switch {
		case l.rows:
			p.Receive(l.Epoch, l.Layer, l.backward)
		case l.To >= len(p.s.Ranks):
			p.serve(l.Message)
		default:
			p.must(p.Take(l.Message))
		}
	}
}

// serve is for the server that rank 0 hosts where no rank is one.
func (p *pacer) serve(m protocol.Message) {
	out, err := p.world.servers[0].Step(m)
	p.must(err)
	p.must(p.Deliver(out))
}

// put takes note of rows that are in their place. Those of an epoch come after those of
// the epoch before.
func (p *pacer) put(t schedule.Task) {
	at, all := place{stage: t.Stage, layer: t.Layer}, p.ranges
	if t.Stage == schedule.ReceiveBackward {
		all = p.nodes
	}
	of := rowsOf{at, t.Epoch}
	if p.heard[of]++; p.heard[of] == all {
		delete(p.heard, of)
		p.oldest[at] = max(p.oldest[at], t.Epoch)
	}
}

// Oldest implements engine.Crew.
func (p *pacer) Oldest(t schedule.Task) int {
	if p.nodes == 0 {
		return math.MaxInt
	}
	at := place{stage: schedule.Receive, layer: t.Layer}
	if t.Stage == schedule.GatherBackward {
		at.stage = schedule.ReceiveBackward
	}
	return p.oldest[at]
}

// time is the moment for whoever lingers.
func (s *simulation) time() time.Time { return time.Unix(0, int64(s.now*1e9)) }

// Gradient implements engine.Crew.
func (p *pacer) Gradient(int, int) []float32 { return nil }

// Ended implements engine.Crew.
func (p *pacer) Ended(epoch int) error {
	if p.ended[epoch]++; p.ended[epoch] == p.Intervals {
		delete(p.ended, epoch)
		p.last = p.s.now
		p.Lap()
		p.s.ends[epoch-1] = p.s.now
	}
	return nil
}

// headerBytes is about the length of a message without values.
const headerBytes = 64

// bytes is the length of a message.
func (p *pacer) bytes(m protocol.Message) float64 {
	switch m.Type {
	case protocol.Weights:
		return headerBytes + p.s.Weights
	case protocol.Gradient, protocol.Sum:
		return headerBytes + p.s.Weights/float64(len(p.Layers))
	}
	return headerBytes
}

// Deliver implements engine.Crew.
func (p *pacer) Deliver(ms []protocol.Message) error {
	ranks := len(p.s.Ranks)
	for _, m := range ms {
		to := m.To
		if to >= ranks && p.s.Servers == 0 {
			to = 0
		}
		from := m.From
		if from >= ranks && p.s.Servers == 0 {
			from = 0
		}
		switch {
		case to == from && m.To >= ranks:
			p.serve(m)
		case to == from:
			p.must(p.Take(m))
		default:
			p.s.network.send(from, to, p.bytes(m), func() { p.world.deliver(p.s, m, to) })
		}
	}
	return nil
}

// deliver is a message that has come to a rank. A server on a host of its own takes one
// after another, each its share of the server's work.
func (w *paces) deliver(s *simulation, m protocol.Message, to int) {
	if to < len(w.ranks) {
		w.ranks[to].come(letter{Message: m})
		return
	}
	k, takes := to-len(w.ranks), 0.0
	if m.Type == protocol.Gradient {
		takes = s.Server / float64(w.gradients())
	}
	w.busy[k] = max(w.busy[k], s.now) + takes
	s.at(w.busy[k], func() {
		out, err := w.servers[k].Step(m)
		w.ranks[0].must(err)
		w.ranks[0].must(w.ranks[0].Deliver(out))
	})
}

// gradients is how many come to a server in an epoch.
func (w *paces) gradients() (n int) {
	for _, p := range w.ranks {
		n += p.Intervals * len(p.Layers)
	}
	return max(n/len(w.servers), 1)
}

// paced are the seconds of the rank's tasks as bounded asynchrony cuts them, by epoch:
// as recorded there, or of a recording in step. Of what is taken of other ranks' rows it
// is the whole of an epoch.
func (k *Rank) paced() []map[place]float64 {
	if k.pace != nil {
		return k.pace
	}
	for _, e := range k.Epochs {
		k.pace = append(k.pace, k.apart(&e))
	}
	return k.pace
}

// apart are an epoch's times in bounded asynchrony: an interval gathers at once what in
// step is gathered before and after the exchange, sends rows by itself, and gradients of
// ghosts are made and sent as one.
func (k *Rank) apart(e *Epoch) map[place]float64 {
	times := map[place]float64{}
	for _, track := range k.tracks() {
		for _, t := range track.Tasks() {
			takes := e.Tasks[track.place[t.Ref]]
			at := place{t.Stage, t.Layer, t.Interval}
			switch t.Stage {
			case schedule.GatherOwn:
				at.stage = schedule.GatherGhosts
			case schedule.Send:
				for i := range k.Outline.Intervals {
					times[place{schedule.Send, t.Layer, i}] += takes / float64(k.Outline.Intervals)
				}
				continue
			case schedule.GhostGrads, schedule.SendBackward:
				at = place{schedule.GhostGrads, t.Layer, schedule.Whole}
			}
			times[at] += takes
		}
	}
	return times
}
