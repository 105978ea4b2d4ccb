package engine

import (
	"siafu/halo/refresh"
	"siafu/ranks/params"
	"siafu/ranks/params/protocol"
	"siafu/ranks/signals"
	"siafu/ranks/world"
)

// deliver sends messages of the protocol with servers and among graph ranks.
// They stand only until the next call of the machine that made them, so they
// are encoded at once.
func (f *async) deliver(ms []protocol.Message) error {
	for _, m := range ms {
		to := f.place(m.To)
		if to == f.world.Rank() {
			if err := f.local(m); err != nil {
				return err
			}
			continue
		}
		b, err := f.outbox.Buffer()
		if err == nil {
			err = f.outbox.Post(protocol.Encode(b, m), to, params.TagAsync)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// place is the rank that plays a rank of the protocol.
func (f *async) place(rank int) int {
	if rank >= f.setting.Graph() && f.hostedByRank0() {
		return 0
	}
	return rank
}

// hostedByRank0 tells whether there is no rank that is a server.
func (f *async) hostedByRank0() bool {
	return f.world.Size() == f.setting.Graph()
}

// local is a message of this rank to itself.
func (f *async) local(m protocol.Message) error {
	if m.To >= f.setting.Graph() {
		out, err := f.hosted.Step(m)
		if err != nil {
			return err
		}
		return f.deliver(out)
	}
	return f.protocol(m)
}

// send sends numbers to a graph rank.
func (f *async) send(to int, m wire) error {
	b, err := f.outbox.Buffer()
	if err != nil {
		return err
	}
	return f.outbox.Post(m.encode(b), to, params.TagAsync)
}

// take takes a message that has arrived.
func (f *async) take(in world.Message) error {
	if refresh.Carries(in.Data) {
		return f.takeRows(in)
	}
	if len(in.Data) > 0 && in.Data[0] >= wireTally {
		m, err := decodeWire(in.Data, in.Source)
		if err != nil {
			return err
		}
		return f.takeWire(m)
	}
	m, err := protocol.Decode(in.Data, in.Source, f.world.Rank(), f.wireIn)
	if err != nil {
		return err
	}
	if f.hostedByRank0() {
		switch m.Type {
		case protocol.Weights:
			m.From = f.setting.Server(0)
		case protocol.Finished:
		default:
			m.To = f.setting.Server(0)
			return f.local(m)
		}
	}
	return f.protocol(m)
}

func (f *async) takeWire(m wire) error {
	if m.kind == wireTally {
		return f.takeTally(m.epoch, m.numbers)
	}
	f.epochs = min(f.epochs, m.epoch)
	return nil
}

// protocol is one of package protocol to a graph rank.
func (f *async) protocol(m protocol.Message) error {
	if m.Type == protocol.Finished {
		if err := f.progress.Step(m); err != nil {
			return err
		}
		return f.startReady()
	}
	f.tallies.ask = max(f.tallies.ask, signals.Request(m.Ask))
	if err := f.chooser.Take(m); err != nil {
		return err
	}
	if m.Epoch == 0 { // the answer to Pull
		f.weights = append(f.weights[:0], m.Values...)
		return nil
	}
	f.start(f.intervals[m.Interval], m.Values)
	return nil
}
