package server

import (
	"fmt"
	"slices"

	"siafu/graph/fault"
)

// Topology says who talks to whom: graph ranks 0..Graph-1, servers after them.
// There are no more servers than graph ranks: one without a rank of its own
// would hold a replica that nobody reads.
type Topology struct {
	Graph, Servers int
}

// ServerOf is the world rank of the server that graph rank r talks to.
func (t Topology) ServerOf(r int) int { return t.Graph + r%t.Servers }

// Ranks are the graph ranks that talk to the k-th server, ascending.
func (t Topology) Ranks(k int) []int {
	var ranks []int
	for r := k; r < t.Graph; r += t.Servers {
		ranks = append(ranks, r)
	}
	return ranks
}

// Updater applies a summed gradient to the weights of one layer in place; step
// counts from 1.
type Updater interface {
	Update(step, layer int, weights, grad []float32)
	// State is what it remembers from step to step, slot after slot; it changes
	// with the next Update.
	State() [][]float32
}

// Server is the state of one parameter server.
type Server struct {
	topology Topology
	index    int   // 0..Servers-1
	ranks    []int // its graph ranks
	servers  []int // 0..Servers-1
	layers   []Range
	weights  []float32
	update   Updater

	epoch   int       // whose starting weights are held; all updates before it are done
	waiting []Message // requests for the next epoch
	early   []Message // partial sums of the next epoch
	sums    []layerSum
	left    int // graph ranks that have left
}

// Range is the part of the flat weights that a layer has.
type Range struct{ Lo, Hi int }

// layerSum collects one layer's gradients of the current epoch.
type layerSum struct {
	own     map[int][]float32 // by graph rank
	partial map[int][]float32 // by server index
	done    bool
}

// New makes the index-th server. weights are the initial ones and become the
// server's.
func New(t Topology, index int, layers []Range, weights []float32, u Updater) *Server {
	s := &Server{
		topology: t, index: index, ranks: t.Ranks(index), layers: layers,
		weights: weights, update: u, epoch: 1,
	}
	for k := range t.Servers {
		s.servers = append(s.servers, k)
	}
	s.reset()
	return s
}

func (s *Server) reset() {
	s.sums = make([]layerSum, len(s.layers))
	for l := range s.sums {
		s.sums[l] = layerSum{own: map[int][]float32{}, partial: map[int][]float32{}}
	}
}

// Done tells whether all graph ranks of this server have left.
func (s *Server) Done() bool { return s.left == len(s.ranks) }

// Epoch is the epoch whose starting weights the server holds.
func (s *Server) Epoch() int { return s.epoch }

// Owing are the ranks of the world that the server's epoch still needs
// gradients or sums from, ascending.
func (s *Server) Owing() []int {
	var ranks []int
	for _, r := range s.ranks {
		if slices.ContainsFunc(s.sums, func(l layerSum) bool { return l.own[r] == nil }) {
			ranks = append(ranks, r)
		}
	}
	if len(ranks) > 0 {
		return ranks
	}
	for _, k := range s.servers {
		if slices.ContainsFunc(s.sums, func(l layerSum) bool { return l.partial[k] == nil }) {
			ranks = append(ranks, s.topology.Graph+k)
		}
	}
	return ranks
}

// Weights are the current weights; they belong to the server.
func (s *Server) Weights() []float32 { return s.weights }

// Step takes one message and returns those that follow from it. An error means
// that the sender broke the protocol.
func (s *Server) Step(m Message) ([]Message, error) {
	switch m.Type {
	case Pull, State:
		return s.pull(m)
	case Push:
		return s.push(m)
	case Partial:
		return s.partial(m)
	case Leave:
		s.left++
		return nil, nil
	}
	return nil, s.broken(m, "a server does not take messages of type %d", m.Type)
}

func (s *Server) broken(m Message, format string, args ...any) error {
	return fault.New(fault.Runtime, "server", "", "rank %d, epoch %d, layer %d: %s",
		m.From, m.Epoch, m.Layer, fmt.Sprintf(format, args...))
}

func (s *Server) pull(m Message) ([]Message, error) {
	switch {
	case m.Epoch == s.epoch:
		return []Message{s.reply(m)}, nil
	case m.Epoch == s.epoch+1:
		s.waiting = append(s.waiting, m)
		return nil, nil
	}
	return nil, s.broken(m, "weights or state asked for while the server is in epoch %d", s.epoch)
}

func (s *Server) reply(m Message) Message {
	r := Message{Type: Weights, From: m.To, To: m.From, Epoch: m.Epoch}
	if m.Type == State {
		r.Type, r.Values = State, slices.Concat(s.update.State()...)
	} else {
		r.Values = slices.Clone(s.weights)
	}
	return r
}

// check validates a gradient and returns where it belongs.
func (s *Server) check(m Message) (*layerSum, error) {
	if m.Layer < 0 || m.Layer >= len(s.layers) {
		return nil, s.broken(m, "there are %d layers", len(s.layers))
	}
	r := s.layers[m.Layer]
	if len(m.Values) != r.Hi-r.Lo {
		return nil, s.broken(m, "a gradient of %d values where the layer has %d", len(m.Values), r.Hi-r.Lo)
	}
	if m.Epoch != s.epoch {
		return nil, s.broken(m, "a gradient while the server is in epoch %d", s.epoch)
	}
	return &s.sums[m.Layer], nil
}

func (s *Server) push(m Message) ([]Message, error) {
	sum, err := s.check(m)
	if err != nil {
		return nil, err
	}
	if m.From >= s.topology.Graph || s.topology.ServerOf(m.From) != m.To {
		return nil, s.broken(m, "this rank does not belong to this server")
	}
	if sum.own[m.From] != nil {
		return nil, s.broken(m, "a second gradient")
	}
	sum.own[m.From] = m.Values
	if len(sum.own) < len(s.ranks) {
		return nil, nil
	}
	total := addInOrder(sum.own, s.ranks)
	sum.partial[s.index] = total
	var out []Message
	for k := range s.topology.Servers {
		if k != s.index {
			out = append(out, Message{
				Type: Partial, From: m.To, To: s.topology.Graph + k,
				Epoch: m.Epoch, Layer: m.Layer, Values: total,
			})
		}
	}
	return s.finish(m.Layer, out)
}

// partial takes another server's sum. That server may be an epoch ahead: it
// needs this one's sums to get there, but not those of a third that this one
// still waits for.
func (s *Server) partial(m Message) ([]Message, error) {
	if m.Epoch == s.epoch+1 {
		s.early = append(s.early, m)
		return nil, nil
	}
	sum, err := s.check(m)
	if err != nil {
		return nil, err
	}
	k := m.From - s.topology.Graph
	if k < 0 || k >= s.topology.Servers || k == s.index || sum.partial[k] != nil {
		return nil, s.broken(m, "a partial sum that is not expected")
	}
	sum.partial[k] = m.Values
	return s.finish(m.Layer, nil)
}

// finish updates a layer once every server that has ranks has contributed, and
// ends the epoch once every layer is updated. It appends to out.
func (s *Server) finish(layer int, out []Message) ([]Message, error) {
	sum := &s.sums[layer]
	if len(sum.partial) < s.topology.Servers {
		return out, nil
	}
	r := s.layers[layer]
	s.update.Update(s.epoch, layer, s.weights[r.Lo:r.Hi], addInOrder(sum.partial, s.servers))
	sum.done = true
	for l := range s.sums {
		if !s.sums[l].done {
			return out, nil
		}
	}
	return s.next(out)
}

// next enters the next epoch and takes what has come for it already.
func (s *Server) next(out []Message) ([]Message, error) {
	s.epoch++
	s.reset()
	for _, m := range s.waiting {
		out = append(out, s.reply(m))
	}
	s.waiting = s.waiting[:0]
	early := s.early
	s.early = nil
	for _, m := range early {
		more, err := s.partial(m)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// addInOrder sums the blocks of the given keys in that order.
func addInOrder(blocks map[int][]float32, keys []int) []float32 {
	total := append([]float32(nil), blocks[keys[0]]...)
	for _, k := range keys[1:] {
		for i, v := range blocks[k] {
			total[i] += v
		}
	}
	return total
}
