package ranks

import (
	"sync"

	"siafu/graph/fault"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/kernels/model"
	"siafu/ranks/inject"
	"siafu/ranks/server"
	"siafu/ranks/server/async"
	"siafu/ranks/signals"
	"siafu/ranks/tune"
	"siafu/ranks/world"
)

// deliver sends messages of the protocol with servers and among graph ranks.
// They stand only until the next call of the machine that made them, so they
// are encoded at once.
func (e *engine) deliver(ms []async.Message) error {
	for _, m := range ms {
		to := e.place(m.To)
		if to == e.world.Rank() {
			if err := e.local(m); err != nil {
				return err
			}
			continue
		}
		if err := e.mail.post(e.world, to, async.Encode(e.mail.buffer(), m)); err != nil {
			return err
		}
	}
	return nil
}

// place is the rank that plays a rank of the protocol.
func (e *engine) place(rank int) int {
	if rank >= e.setting.Graph() && e.hostedByRank0() {
		return 0
	}
	return rank
}

// hostedByRank0 tells whether there is no rank that is a server.
func (e *engine) hostedByRank0() bool {
	return e.world.Size() == e.setting.Graph()
}

// local is a message of this rank to itself.
func (e *engine) local(m async.Message) error {
	if m.To >= e.setting.Graph() {
		out, err := e.hosted.Step(m)
		if err != nil {
			return err
		}
		return e.deliver(out)
	}
	return e.protocol(m)
}

// send sends numbers to a graph rank.
func (e *engine) send(to int, m wire) error {
	return e.mail.post(e.world, to, m.encode(e.mail.buffer()))
}

// mail is messages on their way. Several workers may use it at once.
type mail struct {
	mu      sync.Mutex
	pending []outgoing
	spare   [][]byte
}

// outgoing is a message on its way, with the memory that it must keep.
type outgoing struct {
	request halo.Request
	buffer  []byte
}

// buffer is memory for a message: that of one which has arrived, if there is.
func (m *mail) buffer() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := m.pending[:0]
	for _, o := range m.pending {
		if done, err := o.request.Test(); done || err != nil {
			m.spare = append(m.spare, o.buffer)
		} else {
			kept = append(kept, o)
		}
	}
	m.pending = kept
	if n := len(m.spare); n > 0 {
		b := m.spare[n-1]
		m.spare = m.spare[:n-1]
		return b[:0]
	}
	return nil
}

func (m *mail) post(w world.Comm, to int, b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := w.Isend(b, to, tagAsync)
	if err == nil {
		m.pending = append(m.pending, outgoing{r, b})
	}
	return err
}

// settle waits until everything sent has left.
func (m *mail) settle() error {
	for _, o := range m.pending {
		if err := o.request.Wait(); err != nil {
			return err
		}
	}
	m.pending = m.pending[:0]
	return nil
}

// take takes a message that has arrived.
func (e *engine) take(in world.Message) error {
	if len(in.Data) > 0 && in.Data[0] >= wireRows {
		m, err := decodeWire(in.Data, in.Source)
		if err != nil {
			return err
		}
		return e.takeWire(m, in.Source)
	}
	m, err := async.Decode(in.Data, in.Source, e.world.Rank(), e.wireIn)
	if err != nil {
		return err
	}
	if e.hostedByRank0() {
		switch m.Type {
		case async.Weights:
			m.From = e.setting.Server(0)
		case async.Finished:
		default:
			m.To = e.setting.Server(0)
			return e.local(m)
		}
	}
	return e.protocol(m)
}

func (e *engine) takeWire(m wire, from int) error {
	switch m.kind {
	case wireTally:
		return e.takeTally(m.epoch, m.numbers)
	case wireStop:
		e.epochs = min(e.epochs, m.epoch)
		return nil
	}
	if m.epoch <= e.setting.Trained {
		return nil // from the stretch before
	}
	return e.expect(m, from)
}

// protocol is a message of package async to a graph rank.
func (e *engine) protocol(m async.Message) error {
	if m.Type == async.Finished {
		if err := e.progress.Step(m); err != nil {
			return err
		}
		return e.startReady()
	}
	e.tallies.ask = max(e.tallies.ask, signals.Request(m.Ask))
	if err := e.chooser.Take(m); err != nil {
		return err
	}
	if m.Epoch == 0 { // the answer to Pull
		e.weights = append(e.weights[:0], m.Values...)
		return nil
	}
	e.start(e.intervals[m.Interval], m.Values)
	return nil
}

// serveStretch is what a parameter server does in a stretch. watcher is the
// process's, which may be nil.
func serveStretch(w world.Comm, s *async.Server, watcher *signals.Watcher, f *inject.Fault) error {
	var pending []halo.Request
	for !s.Done() {
		var err error
		if pending, err = takeAsync(w, s, pending, watcher, f); err != nil {
			return err
		}
	}
	for _, r := range pending {
		if err := r.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// takeAsync waits for a message to a server and sends what follows from it;
// pending are requests of earlier ones.
func takeAsync(w world.Comm, s *async.Server, pending []halo.Request, watcher *signals.Watcher, f *inject.Fault) ([]halo.Request, error) {
	in, err := w.Recv(world.Any, tagAsync)
	if err != nil {
		return nil, err
	}
	m, err := async.Decode(in.Data, in.Source, w.Rank(), nil)
	if err != nil {
		return nil, err
	}
	f.At(m.Type.String(), m.Epoch)
	out, err := s.Step(m)
	if err != nil {
		return nil, err
	}
	kept := pending[:0]
	for _, r := range pending {
		if done, err := r.Test(); err != nil {
			return nil, err
		} else if !done {
			kept = append(kept, r)
		}
	}
	for _, m := range out {
		m.Ask = uint8(watcher.Pending())
		r, err := w.Isend(async.Encode(nil, m), m.To, tagAsync)
		if err != nil {
			return nil, err
		}
		kept = append(kept, r)
	}
	if m.Type == async.Fetch {
		f.At(inject.Eval, m.Epoch)
	}
	return kept, nil
}

// setting is what all ranks know of each other after an epoch. Collective over
// the world.
func (r *run) setting(trained int) (async.Setting, error) {
	counts := make([]int64, r.Graph)
	if r.shard != nil {
		counts[r.rank] = int64(r.cfg.intervals(r.net, r.shard.NumOwn()))
	}
	if err := world.SumInt64s(r.world, counts); err != nil {
		return async.Setting{}, err
	}
	s := async.Setting{Servers: max(r.Servers, 1), Staleness: r.cfg.Staleness, Trained: trained}
	for _, n := range counts {
		s.Intervals = append(s.Intervals, int(n))
	}
	return s, nil
}

// layerRanges are the parts of the flat weights that layers have.
func layerRanges(s model.Spec) []server.Range {
	var layers []server.Range
	for l := range s.Layers() {
		lo, hi := s.LayerRange(l)
		layers = append(layers, server.Range{Lo: lo, Hi: hi})
	}
	return layers
}

// checkAsync refuses what bounded asynchrony does not do.
func (c *Config) checkAsync() error {
	if c.Mode != "async" {
		if c.Staleness != 0 || c.SwitchToSync != 0 {
			return fault.New(fault.Usage, "train", "", "--staleness=%d --switch-to-sync=%g", c.Staleness, c.SwitchToSync).Then("they need --mode async")
		}
		return nil
	}
	if list, _ := tune.Candidates(c.Codec); list != nil {
		return fault.New(fault.Usage, "train", "", "--codec=%s with --mode async", c.Codec).
			Then("name the codec: epochs of single intervals do not show which one is fastest")
	}
	if rows, err := codec.ByName(c.Codec); err == nil {
		if _, fed := rows.(codec.Corrected); fed {
			return fault.New(fault.Usage, "train", "", "--codec=%s with --mode async", c.Codec).
				Then("leave +ef out: rows of an interval may be sent again before the next epoch")
		}
	}
	return nil
}
