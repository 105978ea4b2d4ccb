package params

import (
	"cmp"

	"siafu/internal/signals"
	"siafu/internal/wire"
	"siafu/ranks/inject"
	"siafu/ranks/params/protocol"
	"siafu/ranks/world"
)

// StateMachine is a parameter server as a state machine: a protocol.Server or a
// protocol.Eager.
type StateMachine interface {
	// Step processes one message and returns the messages that follow from it. They are
	// valid until the next Step.
	Step(m protocol.Message) ([]protocol.Message, error)
	// Version returns one more than the number of epochs in the weights.
	Version() int
	Weights() []float32
	Memory() protocol.Memory
	// AwaitedRanks returns the ranks of the world that the next version waits for, ascending.
	AwaitedRanks() []int
	// Done reports whether all graph ranks have left.
	Done() bool
}

// Server connects a parameter server to a world.
type Server struct {
	StateMachine
	comm    world.Comm // the whole world
	tag     int
	watcher *signals.Watcher
	fault   *inject.Fault
	outbox  *world.Outbox
	values  []float32 // of the last message
}

// NewServer connects a server to a world. Its messages have the given tag. watcher watches the
// signals of the process, and f is for tests. Both may be nil.
func NewServer(w world.Comm, tag int, s StateMachine, watcher *signals.Watcher, f *inject.Fault) *Server {
	return &Server{StateMachine: s, comm: w, tag: tag, watcher: watcher, fault: f, outbox: world.NewOutbox(w)}
}

// Run processes messages until all graph ranks have left and its own messages have been sent.
func (s *Server) Run() error { return s.until(s.Done) }

// ServeUntil processes messages until the server has a version.
func (s *Server) ServeUntil(version int) error {
	return s.until(func() bool { return s.Version() >= version })
}

func (s *Server) until(done func() bool) error {
	for !done() {
		if err := s.stepNext(); err != nil {
			return err
		}
	}
	return s.outbox.Settle()
}

// stepNext waits for a message, and sends the messages that follow from it.
func (s *Server) stepNext() error {
	in, err := s.comm.Recv(world.Any, s.tag)
	if err != nil {
		return err
	}
	m, err := protocol.Decode(in.Data, in.Source, s.comm.Rank(), s.values)
	wire.PutBuffer(in.Data)
	if err != nil {
		return err
	}
	if m.Values != nil {
		s.values = m.Values
	}
	epoch := cmp.Or(m.Epoch, m.Version)
	s.fault.At(m.Type.String(), epoch)
	out, err := s.Step(m)
	if err != nil {
		return err
	}
	if m.Ask > 0 {
		s.watcher.Served()
	}
	for _, m := range out {
		if err := s.send(m); err != nil {
			return err
		}
	}
	if m.Type == wire.Fetch || m.Type == wire.Pull {
		s.fault.At(inject.Eval, epoch)
	}
	return nil
}

// send sends a message with the pending request to this process.
func (s *Server) send(m protocol.Message) error {
	m.Ask = uint8(s.watcher.Pending())
	return s.outbox.Send(m.To, s.tag, func(b []byte) []byte { return protocol.Encode(b, m) })
}
