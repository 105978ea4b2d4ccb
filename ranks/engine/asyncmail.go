package engine

import (
	"siafu/halo/refresh"
	"siafu/ranks/params"
	"siafu/ranks/params/protocol"
	"siafu/ranks/signals"
	"siafu/ranks/world"
)

// mail carries the messages of asynchronous ranks: messages of package
// protocol, rows of ghosts, and numbers, all with one tag, so that a rank sees what
// another one sent in the order in which it was sent.
type mail struct {
	world   world.Comm
	outbox  *world.Outbox
	setting protocol.Setting
	hosted  params.Machine // where no rank is a server, rank 0 hosts the one there is
	wireIn  []float32
	to      addressee
}

// addressee is the graph rank that messages are for.
type addressee interface {
	takeRows(m world.Message) error
	takeWire(from int, m wire) error
	protocol(m protocol.Message) error
}

// poll takes what has come.
func (f *mail) poll() (some bool, err error) {
	for {
		m, ok, err := f.world.TryRecv(world.Any, params.TagAsync)
		if err != nil || !ok {
			return some, err
		}
		some = true
		if err := f.take(m); err != nil {
			return some, err
		}
	}
}

// await waits for the next message and takes it.
func (f *mail) await() error {
	m, err := f.world.Recv(world.Any, params.TagAsync)
	if err != nil {
		return err
	}
	return f.take(m)
}

// takeUntil takes messages until done.
func (f *mail) takeUntil(done func() bool) error {
	for !done() {
		if err := f.await(); err != nil {
			return err
		}
	}
	return nil
}

// deliver sends messages of the protocol with servers and among graph ranks.
// They stand only until the next call of the machine that made them, so they
// are encoded at once.
func (f *mail) deliver(ms []protocol.Message) error {
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
func (f *mail) place(rank int) int {
	if rank >= f.setting.Graph() && f.hostedByRank0() {
		return 0
	}
	return rank
}

// hostedByRank0 reports whether no rank is a server.
func (f *mail) hostedByRank0() bool {
	return f.world.Size() == f.setting.Graph()
}

// local is a message of this rank to itself.
func (f *mail) local(m protocol.Message) error {
	if m.To >= f.setting.Graph() {
		out, err := f.hosted.Step(m)
		if err != nil {
			return err
		}
		return f.deliver(out)
	}
	return f.to.protocol(m)
}

// send sends numbers to a graph rank.
func (f *mail) send(to int, m wire) error {
	b, err := f.outbox.Buffer()
	if err != nil {
		return err
	}
	return f.outbox.Post(m.encode(b), to, params.TagAsync)
}

// take takes a message that has arrived.
func (f *mail) take(in world.Message) error {
	if refresh.Carries(in.Data) {
		return f.to.takeRows(in)
	}
	if len(in.Data) > 0 && in.Data[0] >= wireTally {
		m, err := decodeWire(in.Data, in.Source)
		if err != nil {
			return err
		}
		return f.to.takeWire(in.Source, m)
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
	return f.to.protocol(m)
}

func (f *async) takeWire(_ int, m wire) error {
	if m.kind == wireTally {
		return f.takeTally(m.epoch, m.numbers)
	}
	f.Epochs = min(f.Epochs, m.epoch)
	return nil
}

// protocol is one of package protocol to a graph rank.
func (f *async) protocol(m protocol.Message) error {
	if m.Type == protocol.Finished {
		return f.Take(m)
	}
	f.tallies.ask = max(f.tallies.ask, signals.Request(m.Ask))
	if err := f.Take(m); err != nil {
		return err
	}
	if m.Epoch == 0 { // the answer to Pull
		f.weights = append(f.weights[:0], m.Values...)
		return nil
	}
	f.tallies.starts(m.Epoch, m.Version)
	f.start(f.intervals[m.Interval], m.Values)
	return nil
}
