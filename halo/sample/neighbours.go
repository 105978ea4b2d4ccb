package sample

import (
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/comm"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// EdgeData has the optional data of edges: weights and features.
type EdgeData struct {
	Weighted bool // weights, which the shard's edges must have
	EdgeDim  int  // number of features: all that the shard's edges have, or 0
}

// Options are the settings of Neighbours.
type Options struct {
	Comm  comm.Comm
	Shard *shard.Shard
	Seed  uint64
	// Fanouts is the maximum number of sampled neighbours per vertex, by layer from the input
	// on. A vertex with fewer neighbours takes all.
	Fanouts []int
	// Self makes a vertex one of its own neighbours, as with the self loops of Kipf's Â.
	Self bool
	EdgeData
	Team *kernels.Team
}

// Neighbours makes fields of sampled neighbours.
type Neighbours struct {
	o      Options
	ghosts []Vertex // [ghosts] their locations
	field  Field
	places []int32           // of own vertices in the field, -1: none
	others map[Vertex]uint32 // of vertices of other ranks
	asked  [][]uint32        // requested rows, by rank
	stats  halo.Stats
}

// Lists is the purpose of the memory for lists of vertices for sampling.
const Lists = "places of vertices, for samples"

// NewNeighbours exchanges the lists of rows that are ghosts on other ranks. Memory comes
// from a. Collective.
func NewNeighbours(o Options, a *mapped.Arena) (*Neighbours, error) {
	n := newNeighbours(o, a)
	for i := range n.places {
		n.places[i] = -1
	}
	messages := make([][]uint32, o.Comm.Size())
	for q := range messages {
		messages[q] = o.Shard.SendRows[o.Shard.SendStart[q]:o.Shard.SendStart[q+1]]
	}
	start := o.Shard.GhostStart
	rows, err := comm.Swap(o.Comm, messages, func(q int) uint64 { return uint64(start[q+1] - start[q]) })
	if err != nil {
		return nil, err
	}
	for q, list := range rows {
		if len(list) != int(start[q+1]-start[q]) {
			return nil, n.damaged(q)
		}
		for i, row := range list {
			n.ghosts[int(start[q])+i] = Vertex{uint32(q), row}
		}
	}
	return n, nil
}

func newNeighbours(o Options, a *mapped.Arena) *Neighbours {
	a = a.For(Lists)
	n := &Neighbours{o: o, others: map[Vertex]uint32{}, places: mapped.Make[int32](a, o.Shard.NumOwn()),
		asked: make([][]uint32, o.Comm.Size())}
	n.ghosts = vertices(mapped.Make[uint64](a, o.Shard.NumGhosts()))
	n.field.Ends, n.field.Layers = make([]int, len(o.Fanouts)+1), make([]Edges, len(o.Fanouts))
	return n
}

// Sketch makes the arrays of NewNeighbours in a, which is a sketch.
func Sketch(o Options, a *mapped.Arena) { newNeighbours(o, a) }

func (n *Neighbours) damaged(q int) error {
	return fault.New(fault.Runtime, "sample", "", "rank %d: corrupt neighbour reply from rank %d", n.o.Comm.Rank(), q)
}

// Draw samples the field of a training step from the own vertices of its loss. It is valid
// until the next call. Collective.
func (n *Neighbours) Draw(step int, targets []uint32) (*Field, error) {
	rows := make([]Vertex, len(targets))
	for i, t := range targets {
		rows[i] = Vertex{uint32(n.o.Comm.Rank()), t}
	}
	return n.draw(step, rows)
}

// Ghosts returns the locations of the shard's ghosts.
func (n *Neighbours) Ghosts() []Vertex { return n.ghosts }

// Around samples the field around any vertices, without repetition, instead of own ones. It is
// valid until the next call. Collective.
func (n *Neighbours) Around(rows []Vertex) (*Field, error) { return n.draw(0, rows) }

func (n *Neighbours) draw(step int, rows []Vertex) (*Field, error) {
	f := &n.field
	for _, v := range f.Rows {
		if int(v.Rank) == n.o.Comm.Rank() {
			n.places[v.Row] = -1
		}
	}
	clear(n.others)
	f.Rows = f.Rows[:0]
	for _, v := range rows {
		n.place(v)
	}
	last := len(f.Layers) - 1
	f.Ends[last+1] = len(f.Rows)
	for l := last; l >= 0; l-- {
		if err := n.grow(l, step); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// place returns the row of a vertex in the field, and adds it if necessary.
func (n *Neighbours) place(v Vertex) uint32 {
	next := len(n.field.Rows)
	if int(v.Rank) == n.o.Comm.Rank() {
		if at := n.places[v.Row]; at >= 0 {
			return uint32(at)
		}
		n.places[v.Row] = int32(next)
	} else {
		if at, ok := n.others[v]; ok {
			return at
		}
		n.others[v] = uint32(next)
	}
	n.field.Rows = append(n.field.Rows, v)
	return uint32(next)
}

// grow samples the neighbours of all rows so far in a layer. Collective.
func (n *Neighbours) grow(layer, step int) error {
	f, draw := &n.field, kernels.Sample{Seed: n.o.Seed, Step: step, Layer: layer}
	answer := func(rows []uint32) []uint32 { return n.samples(rows, draw) }
	each := n.each()
	lists, err := n.ask(f.Rows, 1+each*n.o.Fanouts[layer], answer, answer)
	if err != nil {
		return err
	}
	e := &f.Layers[layer]
	e.clear()
	for _, v := range f.Rows[:f.Ends[layer+1]] {
		list := &lists[v.Rank]
		if len(*list) == 0 {
			return n.damaged(int(v.Rank))
		}
		pool := int((*list)[0])
		drawn := each * min(pool, n.o.Fanouts[layer])
		if drawn > len(*list)-1 {
			return n.damaged(int(v.Rank))
		}
		for at := 1; at <= drawn; at += each {
			u := Vertex{(*list)[at], (*list)[at+1]}
			if int(u.Rank) >= n.o.Comm.Size() || int(u.Rank) == n.o.Comm.Rank() && int(u.Row) >= len(n.places) {
				return n.damaged(int(v.Rank))
			}
			e.Sources = append(e.Sources, n.place(u))
			along := floats((*list)[at+2 : at+each])
			weight := along[:len(along)-n.o.EdgeDim]
			e.Weights, e.Features = append(e.Weights, weight...), append(e.Features, along[len(weight):]...)
		}
		e.end(pool)
		*list = (*list)[1+drawn:]
	}
	f.Ends[layer] = len(f.Rows)
	return nil
}

// ask requests an answer for each row from its owner, in order, with at most each numbers per
// row. own answers for this rank's rows. It returns the answers by rank. Collective.
func (n *Neighbours) ask(rows []Vertex, each int, answer, own func(rows []uint32) []uint32) ([][]uint32, error) {
	rank, c := n.o.Comm.Rank(), n.o.Comm
	for q := range n.asked {
		n.asked[q] = n.asked[q][:0]
	}
	for _, v := range rows {
		n.asked[v.Rank] = append(n.asked[v.Rank], v.Row)
	}
	mine := own(n.asked[rank])
	if c.Size() == 1 {
		return [][]uint32{mine}, nil
	}
	n.asked[rank] = n.asked[rank][:0]
	asks, err := comm.Swap(c, n.asked, func(int) uint64 { return uint64(n.o.Shard.NumOwn()) })
	if err != nil {
		return nil, err
	}
	replies := make([][]uint32, len(asks))
	for q, list := range asks {
		for _, row := range list {
			if int(row) >= n.o.Shard.NumOwn() {
				return nil, n.damaged(q)
			}
		}
		replies[q] = answer(list)
		n.stats.SentBytes += int64(4 * (len(replies[q]) + len(n.asked[q])))
	}
	answers, err := comm.Swap(c, replies, func(q int) uint64 { return uint64(each) * uint64(len(n.asked[q])) })
	if err == nil {
		answers[rank] = mine
	}
	return answers, err
}

// rowGrain is the number of vertices that a worker samples for at a time.
const rowGrain = 64

// each returns the numbers per sample: rank, row, the weight of the edge and its features.
func (n *Neighbours) each() int {
	if n.o.Weighted {
		return 3 + n.o.EdgeDim
	}
	return 2 + n.o.EdgeDim
}

// samples returns the samples of own rows: for each row its number of neighbours, and for each
// sampled neighbour rank, row and the data of the edge.
func (n *Neighbours) samples(rows []uint32, draw kernels.Sample) []uint32 {
	k, start, each := n.o.Fanouts[draw.Layer], make([]int, len(rows)+1), n.each()
	for i, row := range rows {
		start[i+1] = start[i] + 1 + each*min(n.pool(row), k)
	}
	out := make([]uint32, start[len(rows)])
	n.o.Team.Run(len(rows), rowGrain, func(lo, hi int) {
		var chosen []uint32
		for i := lo; i < hi; i++ {
			row, to := rows[i], out[start[i]:start[i+1]]
			to[0] = uint32(n.pool(row))
			chosen = draw.Draw(chosen[:0], n.o.Shard.Own[row], k, int(to[0]))
			for j, at := range chosen {
				v, to := n.neighbour(row, at), to[1+each*j:][:each]
				to[0], to[1] = v.Rank, v.Row
				n.along(floats(to[2:]), row, at)
			}
		}
	})
	return out
}

// along sets dst to the requested weight and features of the edge from the at-th neighbour of
// an own vertex. The edge from itself has weight 1, as a self loop of Kipf's Â.
func (n *Neighbours) along(dst []float32, row, at uint32) {
	s := n.o.Shard
	k := s.In.Offsets[row] + int64(at)
	itself := k >= s.In.Offsets[row+1]
	if n.o.Weighted {
		if dst[0] = 1; !itself {
			dst[0] = s.Weights[k]
		}
		dst = dst[1:]
	}
	if !itself {
		copy(dst, s.EdgeFeatures[int(k)*n.o.EdgeDim:])
	}
}

// pool returns the number of neighbours that an own vertex samples from.
func (n *Neighbours) pool(row uint32) int {
	d := int(n.o.Shard.In.Offsets[row+1] - n.o.Shard.In.Offsets[row])
	if n.o.Self {
		d++
	}
	return d
}

// neighbour returns the at-th neighbour of an own vertex; after the last one it is the vertex
// itself.
func (n *Neighbours) neighbour(row, at uint32) Vertex {
	s := n.o.Shard
	u, own := row, uint32(s.NumOwn())
	if k := s.In.Offsets[row] + int64(at); k < s.In.Offsets[row+1] {
		u = s.In.Cols[k]
	}
	if u >= own {
		return n.ghosts[u-own]
	}
	return Vertex{uint32(n.o.Comm.Rank()), u}
}
