package server

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// sgd subtracts the gradient, so that weights count what was applied.
type sgd struct{ updates int }

func (u *sgd) Update(_, _ int, w, g []float32) {
	u.updates++
	for i := range w {
		w[i] -= g[i]
	}
}

func (*sgd) State() [][]float32 { return nil }

var twoLayers = []Range{{0, 2}, {2, 5}}

// cluster delivers messages between servers and graph ranks in an order drawn
// at random, keeping only the order of messages between the same two.
type cluster struct {
	servers []*Server
	links   map[[2]int][]Message
	inbox   map[int][]Message // of graph ranks
	graph   int
}

func newCluster(graph, servers int) *cluster {
	c := &cluster{links: map[[2]int][]Message{}, inbox: map[int][]Message{}, graph: graph}
	t := Topology{Graph: graph, Servers: servers}
	for k := range servers {
		c.servers = append(c.servers, New(t, k, twoLayers, make([]float32, 5), &sgd{}))
	}
	return c
}

func (c *cluster) send(m Message) {
	k := [2]int{m.From, m.To}
	c.links[k] = append(c.links[k], m)
}

// deliver hands over one message of a random link; false when none is left.
func (c *cluster) deliver(t testingT, r *rand.Rand) bool {
	var open [][2]int
	for from := range c.graph + len(c.servers) {
		for to := range c.graph + len(c.servers) {
			if len(c.links[[2]int{from, to}]) > 0 {
				open = append(open, [2]int{from, to})
			}
		}
	}
	if len(open) == 0 {
		return false
	}
	k := open[r.IntN(len(open))]
	m := c.links[k][0]
	c.links[k] = c.links[k][1:]
	if m.To < c.graph {
		c.inbox[m.To] = append(c.inbox[m.To], m)
		return true
	}
	out, err := c.servers[m.To-c.graph].Step(m)
	if err != nil {
		t.Fatalf("server %d: %v", m.To-c.graph, err)
	}
	for _, o := range out {
		c.send(o)
	}
	return true
}

type testingT interface{ Fatalf(string, ...any) }

// "Dorylus lets each PS host a replication of weight matrices of all layers"
// (Dorylus, OSDI'21, §5.1): after any number of epochs, under any order of
// delivery, all servers hold the same bits, every gradient has been counted
// once, and every rank was given the weights that its epoch starts from.
func TestServersStayReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		graph := rapid.IntRange(1, 5).Draw(t, "graph")
		servers := rapid.IntRange(1, graph).Draw(t, "servers")
		epochs := rapid.IntRange(1, 4).Draw(t, "epochs")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		c := newCluster(graph, servers)
		topology := Topology{Graph: graph, Servers: servers}
		at := make([]int, graph)
		pull := func(rank int) {
			c.send(Message{Type: Pull, From: rank, To: topology.ServerOf(rank), Epoch: at[rank]})
		}
		for rank := range graph {
			at[rank] = 1
			pull(rank)
		}
		for c.deliver(t, r) {
			for rank := range graph {
				for _, m := range c.inbox[rank] {
					if m.Type != Weights || m.Epoch != at[rank] {
						t.Fatalf("rank %d in epoch %d was given epoch %d", rank, at[rank], m.Epoch)
					}
					for i, w := range m.Values {
						if want := -float32((at[rank]-1)*graph*(graph+1)/2) * float32(i+1); w != want {
							t.Fatalf("epoch %d: weight %d is %v, want %v", m.Epoch, i, w, want)
						}
					}
					if at[rank] > epochs {
						continue
					}
					for l, g := range twoLayers {
						grad := make([]float32, 0, 3)
						for i := g.Lo; i < g.Hi; i++ {
							grad = append(grad, float32((rank+1)*(i+1)))
						}
						c.send(Message{Type: Push, From: rank, To: topology.ServerOf(rank),
							Epoch: at[rank], Layer: l, Values: grad})
					}
					at[rank]++
					pull(rank)
				}
				c.inbox[rank] = nil
			}
		}
		for rank, e := range at {
			if e != epochs+1 {
				t.Fatalf("rank %d stopped in epoch %d of %d: deadlock", rank, e, epochs)
			}
		}
		for k, s := range c.servers {
			if s.update.(*sgd).updates != epochs*len(twoLayers) {
				t.Fatalf("server %d updated %d times", k, s.update.(*sgd).updates)
			}
			for i, w := range s.Weights() {
				if w != c.servers[0].Weights()[i] {
					t.Fatalf("server %d differs from server 0 in weight %d", k, i)
				}
			}
		}
	})
}

func TestBrokenProtocol(t *testing.T) {
	grad := func(n int) []float32 { return make([]float32, n) }
	for name, tc := range map[string]struct {
		before []Message
		m      Message
	}{
		"pull of a past epoch":   {nil, Message{Type: Pull, From: 0, To: 2, Epoch: 0}},
		"pull two epochs ahead":  {nil, Message{Type: Pull, From: 0, To: 2, Epoch: 3}},
		"unknown layer":          {nil, Message{Type: Push, From: 0, To: 2, Epoch: 1, Layer: 2, Values: grad(2)}},
		"negative layer":         {nil, Message{Type: Push, From: 0, To: 2, Epoch: 1, Layer: -1, Values: grad(2)}},
		"wrong length":           {nil, Message{Type: Push, From: 0, To: 2, Epoch: 1, Layer: 0, Values: grad(3)}},
		"another server's rank":  {nil, Message{Type: Push, From: 1, To: 2, Epoch: 1, Layer: 0, Values: grad(2)}},
		"push of another epoch":  {nil, Message{Type: Push, From: 0, To: 2, Epoch: 2, Layer: 0, Values: grad(2)}},
		"second gradient":        {[]Message{{Type: Push, From: 0, To: 2, Epoch: 1, Layer: 0, Values: grad(2)}}, Message{Type: Push, From: 0, To: 2, Epoch: 1, Layer: 0, Values: grad(2)}},
		"partial sum of oneself": {nil, Message{Type: Partial, From: 2, To: 2, Epoch: 1, Layer: 0, Values: grad(2)}},
		"partial sum of a rank":  {nil, Message{Type: Partial, From: 1, To: 2, Epoch: 1, Layer: 0, Values: grad(2)}},
		"weights":                {nil, Message{Type: Weights, From: 0, To: 2, Epoch: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Topology{Graph: 2, Servers: 2}, 0, twoLayers, grad(5), &sgd{})
			for _, m := range tc.before {
				if _, err := s.Step(m); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Step(tc.m); err == nil {
				t.Fatal("the server took it")
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode(nil, Message{Type: Push, Epoch: 3, Layer: 1, Values: []float32{1, 2}}))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b, 1, 2)
		if err != nil {
			return
		}
		again, err := Decode(Encode(nil, m), 1, 2)
		if err != nil || again.Epoch != m.Epoch || len(again.Values) != len(m.Values) {
			t.Fatalf("%v does not survive a round trip: %v %v", m, again, err)
		}
	})
}
