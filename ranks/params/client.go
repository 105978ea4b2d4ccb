package params

import (
	"slices"

	"siafu/internal/signals"
	"siafu/internal/wire"
	"siafu/ranks/params/protocol"
	"siafu/ranks/world"
)

// Tags of the protocol's messages. Messages between two ranks with one tag are delivered in order.
// A run may continue synchronously after bounded asynchrony. The two tags separate messages of
// bounded asynchrony that are still in transit from messages of the synchronous run.
const (
	TagSync  = 1
	TagAsync = 3
)

// Client is a graph rank's side of the parameter servers in a synchronous run: one interval
// with a single version.
type Client struct {
	comm    world.Comm // the whole world
	server  int
	chooser *protocol.Chooser
	outbox  *world.Outbox
	layers  []protocol.Range
	slots   int       // of the optimiser
	buffer  []float32 // for the values of a message
	weights int       // number of weights
	epoch   int       // of the last pulled weights
	ask     signals.Request
	done    bool // this process has carried out the server's request, and has not confirmed it yet
}

// Setting returns the settings that all ranks of a synchronous run share. The run starts
// after the given number of trained epochs.
func Setting(graphRanks, servers, trained int) protocol.Setting {
	s := protocol.Setting{Servers: servers, Trained: trained, Fixed: true}
	for range graphRanks {
		s.Intervals = append(s.Intervals, 1)
	}
	return s
}

// AsyncSetting returns the settings that all ranks of an asynchronous run share. The run
// starts after the given number of trained epochs. intervals is the number of intervals of
// this rank, if it is a graph rank. If no rank is a server, the setting has one server,
// which a graph rank hosts. Collective over the world.
func AsyncSetting(w world.Comm, graphRanks, intervals, staleness, trained int) (protocol.Setting, error) {
	counts := make([]int64, graphRanks)
	if w.Rank() < graphRanks {
		counts[w.Rank()] = int64(intervals)
	}
	if err := world.SumInt64s(w, counts); err != nil {
		return protocol.Setting{}, err
	}
	s := protocol.Setting{Servers: max(w.Size()-graphRanks, 1), Staleness: staleness, Trained: trained}
	for _, n := range counts {
		s.Intervals = append(s.Intervals, int(n))
	}
	return s, nil
}

// NewClient returns the client of a graph rank, for the weights of the given layers and an optimiser
// with the given number of slots.
func NewClient(w world.Comm, s protocol.Setting, layers []protocol.Range, slots int) *Client {
	weights := layers[len(layers)-1].Hi
	return &Client{
		comm: w, server: s.Server(w.Rank() % s.Servers), outbox: world.NewOutbox(w),
		chooser: protocol.NewChooser(s, w.Rank(), len(layers), weights), layers: layers,
		slots: slots, weights: weights,
	}
}

// send sends a message to a server, with the confirmation of its request.
func (c *Client) send(m protocol.Message) error {
	if c.done {
		m.Ask, c.done = 1, false
	}
	return c.outbox.Send(m.To, TagSync, func(b []byte) []byte { return protocol.Encode(b, m) })
}

// receive waits for a message of the server.
func (c *Client) receive() (protocol.Message, error) {
	in, err := c.comm.Recv(c.server, TagSync)
	if err != nil {
		return protocol.Message{}, err
	}
	m, err := protocol.Decode(in.Data, in.Source, c.comm.Rank(), c.buffer)
	wire.PutBuffer(in.Data)
	if m.Values != nil {
		c.buffer = m.Values
	}
	return m, err
}

// receiveWeights waits for weights and records the server's request.
func (c *Client) receiveWeights() (protocol.Message, error) {
	m, err := c.receive()
	if err == nil {
		err = c.chooser.Take(m)
	}
	c.ask = max(c.ask, signals.Request(m.Ask))
	return m, err
}

// Pull implements Source.
func (c *Client) Pull(epoch int, dst []float32) error {
	c.ask = signals.None
	if err := c.send(c.chooser.Pull(epoch)); err != nil {
		return err
	}
	m, err := c.receiveWeights()
	if err != nil {
		return err
	}
	if m.Version != epoch {
		return unexpected(m, epoch)
	}
	c.epoch = epoch
	copy(dst, m.Values)
	return nil
}

// Step implements Source. The server stashes the version that this rank has, and then takes the
// gradients of the version.
func (c *Client) Step(step int, grad []float32) error {
	for _, m := range c.chooser.Fetch(0, step, c.epoch) {
		if err := c.send(m); err != nil {
			return err
		}
	}
	if _, err := c.receiveWeights(); err != nil {
		return err
	}
	for l, at := range slices.Backward(c.layers) {
		if err := c.send(c.chooser.Gradient(0, step, l, grad[at.Lo:at.Hi])); err != nil {
			return err
		}
	}
	return nil
}

// State implements Source.
func (c *Client) State() ([][]float32, error) {
	if err := c.send(c.chooser.State(c.epoch)); err != nil {
		return nil, err
	}
	m, err := c.receive()
	if err != nil {
		return nil, err
	}
	if m.Type != wire.State || m.Version != c.epoch || len(m.Values) != c.slots*c.weights {
		return nil, unexpected(m, c.epoch)
	}
	c.buffer = nil // the caller owns it now
	return Slots(m.Values, c.weights), nil
}

// Slots cuts an optimiser's state into slots of n values.
func Slots(all []float32, n int) [][]float32 {
	var slots [][]float32
	for k := 0; k+n <= len(all) && n > 0; k += n {
		slots = append(slots, all[k:k+n])
	}
	return slots
}

func unexpected(m protocol.Message, epoch int) error {
	return wire.Mismatch("train", "rank %d sent %v of version %d with %d values, but version %d was requested",
		m.From, m.Type, m.Version, len(m.Values), epoch)
}

// Asked implements Control.
func (c *Client) Asked() signals.Request { return c.ask }

// Saved implements Control.
func (c *Client) Saved() { c.ask, c.done = signals.None, true }

// Leave implements Control.
func (c *Client) Leave() error {
	for _, m := range c.chooser.Leave() {
		if err := c.send(m); err != nil {
			return err
		}
	}
	return c.outbox.Settle()
}
