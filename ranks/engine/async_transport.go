package engine

import (
	"siafu/internal/signals"
	"siafu/internal/wire"
	"siafu/ranks/params"
	"siafu/ranks/params/protocol"
	"siafu/ranks/world"
)

// transport carries the messages of asynchronous ranks: messages of package protocol, ghost
// rows, and numbers. All have one tag, so a rank receives another rank's messages in the order
// of sending.
type transport struct {
	world        world.Comm
	outbox       *world.Outbox
	setting      protocol.Setting
	localServer  localServer // hosted by rank 0 if no rank is a server
	decodeBuffer []float32
	handler      messageHandler
	// serverRequest is a request that a server has reported, and that this rank has not passed on.
	serverRequest signals.Request
}

// localServer is a server that a graph rank hosts.
type localServer interface {
	Step(m protocol.Message) ([]protocol.Message, error)
	Done() bool
}

// noServer is the server of a rank that hosts none.
type noServer struct{}

func (noServer) Step(m protocol.Message) ([]protocol.Message, error) {
	return nil, wire.Unexpected("train", m.From, m.Type)
}

func (noServer) Done() bool { return true }

// messageHandler is the graph rank that handles messages.
type messageHandler interface {
	handleRows(m world.Message) error
	handleWire(from int, m wire.Message) error
	handleProtocol(m protocol.Message) error
}

// poll handles received messages.
func (f *transport) poll() (some bool, err error) {
	for {
		m, ok, err := f.world.TryRecv(world.Any, params.TagAsync)
		if err != nil || !ok {
			return some, err
		}
		some = true
		if err := f.dispatch(m); err != nil {
			return some, err
		}
	}
}

// dispatchNext waits for the next message and handles it.
func (f *transport) dispatchNext() error {
	m, err := f.world.Recv(world.Any, params.TagAsync)
	if err != nil {
		return err
	}
	return f.dispatch(m)
}

// dispatchUntil handles messages until done.
func (f *transport) dispatchUntil(done func() bool) error {
	for !done() {
		if err := f.dispatchNext(); err != nil {
			return err
		}
	}
	return nil
}

// deliver sends messages of package protocol. They are valid only until the next call of the state
// machine that made them, so deliver encodes them at once.
func (f *transport) deliver(ms []protocol.Message) error {
	for _, m := range ms {
		to := f.worldRank(m.To)
		if to == f.world.Rank() {
			if err := f.deliverLocal(m); err != nil {
				return err
			}
			continue
		}
		encode := func(b []byte) []byte { return protocol.Encode(b, m) }
		if err := f.outbox.Send(to, params.TagAsync, encode); err != nil {
			return err
		}
	}
	return nil
}

// worldRank returns the world's rank of a rank of the protocol.
func (f *transport) worldRank(rank int) int {
	if rank >= f.setting.Graph() && f.hostedByRank0() {
		return 0
	}
	return rank
}

// hostedByRank0 reports whether no rank is a server.
func (f *transport) hostedByRank0() bool {
	return f.world.Size() == f.setting.Graph()
}

// deliverLocal delivers a message of this rank to itself.
func (f *transport) deliverLocal(m protocol.Message) error {
	if m.To >= f.setting.Graph() {
		out, err := f.localServer.Step(m)
		if err != nil {
			return err
		}
		return f.deliver(out)
	}
	return f.handler.handleProtocol(m)
}

// send sends a message to a graph rank.
func (f *transport) send(to int, m wire.Message) error {
	return f.outbox.Send(to, params.TagAsync, m.Append)
}

// dispatch handles a received message.
func (f *transport) dispatch(in world.Message) error {
	kind := wire.KindOf(in.Data)
	if kind == wire.Rows || kind == wire.RowGrads {
		return f.handler.handleRows(in)
	}
	defer wire.PutBuffer(in.Data)
	if kind >= wire.Tally && kind <= wire.Leaving {
		m, err := wire.Open("train", in.Source, in.Data, wire.Tally, wire.Leaving)
		if err != nil {
			return err
		}
		return f.handler.handleWire(in.Source, m)
	}
	m, err := protocol.Decode(in.Data, in.Source, f.world.Rank(), f.decodeBuffer)
	if err != nil {
		return err
	}
	if f.hostedByRank0() {
		switch m.Type {
		case wire.Weights:
			m.From = f.setting.Server(0)
		case wire.Finished:
		default:
			m.To = f.setting.Server(0)
			return f.deliverLocal(m)
		}
	}
	return f.handler.handleProtocol(m)
}

func (f *asyncRank) handleWire(from int, m wire.Message) error {
	switch m.Kind {
	case wire.Tally:
		return f.takeTally(m.Numbers[0], wire.Elements[float64](m.Body))
	case wire.Stop:
		f.Epochs = min(f.Epochs, m.Numbers[0])
		return nil
	}
	return wire.Unexpected("train", from, m.Kind)
}

// handleProtocol handles a message of package protocol to a graph rank.
func (f *asyncRank) handleProtocol(m protocol.Message) error {
	if m.Type == wire.Finished {
		return f.HandleMessage(m)
	}
	f.serverRequest = max(f.serverRequest, signals.Request(m.Ask))
	if err := f.HandleMessage(m); err != nil {
		return err
	}
	if m.Epoch == 0 { // the answer to Pull
		f.weights = append(f.weights[:0], m.Values...)
		return nil
	}
	f.tallies.count(tallyStarts, m.Epoch, m.Version)
	f.start(f.intervals[m.Interval], m.Values)
	return nil
}
