package ranks

import (
	"siafu/ranks/params"
	"siafu/ranks/params/protocol"
	"siafu/ranks/signals"
	"siafu/ranks/world"
)

// deliver sends messages of the protocol with servers and among graph ranks.
// They stand only until the next call of the machine that made them, so they
// are encoded at once.
func (e *engine) deliver(ms []protocol.Message) error {
	for _, m := range ms {
		to := e.place(m.To)
		if to == e.world.Rank() {
			if err := e.local(m); err != nil {
				return err
			}
			continue
		}
		b, err := e.outbox.Buffer()
		if err == nil {
			err = e.outbox.Post(protocol.Encode(b, m), to, params.TagAsync)
		}
		if err != nil {
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
func (e *engine) local(m protocol.Message) error {
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
	b, err := e.outbox.Buffer()
	if err != nil {
		return err
	}
	return e.outbox.Post(m.encode(b), to, params.TagAsync)
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
	m, err := protocol.Decode(in.Data, in.Source, e.world.Rank(), e.wireIn)
	if err != nil {
		return err
	}
	if e.hostedByRank0() {
		switch m.Type {
		case protocol.Weights:
			m.From = e.setting.Server(0)
		case protocol.Finished:
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

// protocol is one of package protocol to a graph rank.
func (e *engine) protocol(m protocol.Message) error {
	if m.Type == protocol.Finished {
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

// setting is what all ranks know of each other after an epoch. Collective over
// the world.
func (r *run) setting(trained int) (protocol.Setting, error) {
	counts := make([]int64, r.Graph)
	if r.shard != nil {
		counts[r.rank] = int64(r.crew.intervals(&r.cfg, r.net, r.shard.NumOwn()))
	}
	if err := world.SumInt64s(r.world, counts); err != nil {
		return protocol.Setting{}, err
	}
	s := protocol.Setting{Servers: max(r.Servers, 1), Staleness: r.cfg.MostStaleness(), Trained: trained}
	for _, n := range counts {
		s.Intervals = append(s.Intervals, int(n))
	}
	return s, nil
}
