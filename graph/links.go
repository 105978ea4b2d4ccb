package graph

import (
	"fmt"
	"math"

	"siafu/internal/arrayfile"
)

// Pairs are pairs of vertices by number: pair i is Src[i], Dst[i].
type Pairs struct{ Src, Dst []uint32 }

// Len returns the number of pairs.
func (p Pairs) Len() int { return len(p.Src) }

// Held contains the edges that were held out of a graph for one split, and negative pairs
// (pairs without an edge) to rank them against.
type Held struct {
	Edges Pairs
	Not   Pairs // negative pairs that all edges share; none is an edge of the whole graph
	// Each [Edges x Ranked] are negative destinations per edge: vertices without an edge to or
	// from the edge's source in the whole graph. If an edge has fewer, its own destination fills
	// the rest (Candidates).
	Each []uint32
	// Relations are the relations of Edges; nil if the graph is not relational. Negative pair i then has the
	// relation of edge i and one of its ends.
	Relations []uint16
}

// Triple is an edge of a relational graph: source (head), relation, destination (tail).
type Triple struct {
	Src, Dst uint32
	Relation uint16
}

// Triples returns the edges of a relational graph.
func (h *Held) Triples() (list []Triple) {
	for i, relation := range h.Relations {
		list = append(list, Triple{h.Edges.Src[i], h.Edges.Dst[i], relation})
	}
	return list
}

// Add appends edges of a relational graph.
func (h *Held) Add(list ...Triple) {
	for _, x := range list {
		h.Edges.Src, h.Edges.Dst = append(h.Edges.Src, x.Src), append(h.Edges.Dst, x.Dst)
		h.Relations = append(h.Relations, x.Relation)
	}
}

// Candidates returns the number of negative destinations of an edge to dst in its part of Held.Each.
func Candidates(each []uint32, dst uint32) int {
	n := len(each)
	for n > 0 && each[n-1] == dst {
		n--
	}
	return n
}

// HeldOut contains the held-out edges of a dataset for link prediction. The dataset's graph
// does not contain them.
type HeldOut struct {
	Ranked    int // number of vertices per edge in Each
	Val, Test Held
	// Loops are training edges v→v of a relational graph, which is stored without them.
	Loops Held
}

// of returns the held-out edges of a split.
func (h *HeldOut) of(split int) *Held {
	if split == SplitVal {
		return &h.Val
	}
	return &h.Test
}

// LinkCounts are the numbers of pairs in links.bin, as recorded in meta.json.
type LinkCounts struct {
	Train   int64 `json:"train"` // of vertices with an edge in the graph
	Val     int64 `json:"val"`
	Test    int64 `json:"test"`
	NotVal  int64 `json:"not_val"`
	NotTest int64 `json:"not_test"`
	Ranked  int64 `json:"ranked"` // negative destinations per held-out edge
	Loops   int64 `json:"loops,omitempty"`
}

const (
	linkFile = "links.bin" // only for the task Links
	linkKind = "siafu.links"
)

// Arrays of links.bin of a relational graph.
const (
	valRelations  = "val_relations"
	testRelations = "test_relations"
	loopVertices  = "loop_vertices"
	loopRelations = "loop_relations"
)

// linkArrays returns the names of a split's arrays in links.bin, in file order.
func linkArrays(split int) [5]string {
	p := map[int]string{SplitVal: "val_", SplitTest: "test_"}[split]
	return [5]string{p + "src", p + "dst", p + "not_src", p + "not_dst", p + "each"}
}

func (h *Held) arrays() [5]*[]uint32 {
	return [5]*[]uint32{&h.Edges.Src, &h.Edges.Dst, &h.Not.Src, &h.Not.Dst, &h.Each}
}

// validateLinks checks the held-out edges of a content.
func (c *Content) validateLinks() error {
	h := c.HeldOut
	if (h != nil) != (c.Task == Links) {
		return invalid("set held-out edges for the task links only", "the task is %s", c.Task)
	}
	if h == nil {
		return nil
	}
	for split := SplitVal; split <= SplitTest; split++ {
		x := h.of(split)
		for i, list := range x.arrays() {
			if at, v := badID(*list, c.Vertices); at >= 0 {
				return invalid("name existing vertices", "%s names vertex %d of %d", linkArrays(split)[i], v, c.Vertices)
			}
		}
		if x.Edges.Len() == 0 || x.Not.Len() == 0 {
			return invalid("hold out more edges", "there are %d held-out edges and %d negative pairs", x.Edges.Len(), x.Not.Len())
		}
		if len(x.Edges.Dst) != x.Edges.Len() || len(x.Not.Dst) != x.Not.Len() || len(x.Each) != x.Edges.Len()*h.Ranked {
			return invalid("give both ends of each pair",
				"there are %d and %d ends of held-out edges, %d and %d of negative pairs, and %d to rank",
				x.Edges.Len(), len(x.Edges.Dst), x.Not.Len(), len(x.Not.Dst), len(x.Each))
		}
		if err := c.validateTriples(x); err != nil {
			return err
		}
	}
	if at, v := badID(h.Loops.Edges.Src, c.Vertices); at >= 0 {
		return invalid("name an existing vertex", "edge %d from a vertex to itself names vertex %d of %d", at, v, c.Vertices)
	}
	return nil
}

// validateTriples checks the relations of held-out edges.
func (c *Content) validateTriples(h *Held) error {
	if c.Relations == nil && h.Relations == nil {
		return nil
	}
	if c.Relations == nil || len(h.Relations) != h.Edges.Len() || h.Not.Len() != h.Edges.Len() || len(h.Each) > 0 {
		return invalid("give each held-out edge of a relational graph a relation and a negative pair, and no candidates",
			"there are %d relations and %d negative pairs for %d held-out edges", len(h.Relations), h.Not.Len(), h.Edges.Len())
	}
	if why := c.Relations.misfit(h.Edges, h.Relations); why != "" {
		return invalid("fix the edge, or the kinds of the relation", "held-out %s", why)
	}
	return nil
}

// misfit returns why edges cannot be held out as those of relations; empty: they can.
func (r *Relations) misfit(edges Pairs, relations []uint16) string {
	for i, relation := range relations {
		if int(relation) >= len(r.Relations) || r.Relations[relation].Reverse {
			return fmt.Sprintf("edge %d has relation %d of %d, or a reverse relation", i, relation, len(r.Relations))
		}
		x, src, dst := r.Relations[relation], edges.Src[i], edges.Dst[i]
		if r.KindOf(int64(src)) != x.From || r.KindOf(int64(dst)) != x.To {
			return fmt.Sprintf("edge %d from vertex %d to vertex %d is not of the kinds of relation %s", i, src, dst,
				r.Label(int(relation)))
		}
	}
	return ""
}

// links writes the held-out edges.
func (w *writer) links() error {
	h := w.content.HeldOut
	if h == nil {
		return nil
	}
	n := w.meta.Edges
	if !w.meta.Directed {
		n /= 2
	}
	if r := w.content.Relations; r != nil {
		n = int64(h.Loops.Edges.Len())
		for _, x := range r.Relations {
			if !x.Reverse {
				n += x.Edges
			}
		}
	}
	w.meta.Links = &LinkCounts{
		n, int64(h.Val.Edges.Len()), int64(h.Test.Edges.Len()), int64(h.Val.Not.Len()), int64(h.Test.Not.Len()), int64(h.Ranked),
		int64(h.Loops.Edges.Len()),
	}
	return w.file(linkFile, linkKind, func(f *arrayfile.Writer) error {
		for split := SplitVal; split <= SplitTest; split++ {
			for i, list := range h.of(split).arrays() {
				if err := arrayfile.Put(f, linkArrays(split)[i], *list); err != nil {
					return err
				}
			}
		}
		if w.content.Relations == nil {
			return nil
		}
		arrayfile.Put(f, valRelations, h.Val.Relations)
		arrayfile.Put(f, testRelations, h.Test.Relations)
		arrayfile.Put(f, loopVertices, h.Loops.Edges.Src)
		return arrayfile.Put(f, loopRelations, h.Loops.Relations)
	})
}

// OpenHeldOut maps the held-out edges of a dataset folder; they are valid until done is called.
// It returns the same faults as Open.
func OpenHeldOut(dir string) (h *HeldOut, done func() error, err error) {
	d, err := open(dir, math.MaxInt64, func(l *loader) { h = l.links() })
	if err != nil {
		return nil, nil, err
	}
	return h, d.Close, nil
}

// links returns the held-out edges of a dataset with the task Links, and nil for other tasks.
func (l *loader) links() *HeldOut {
	c := l.Meta.Links
	if c == nil {
		return nil
	}
	p := l.open(linkFile, linkKind)
	h := &HeldOut{Ranked: int(c.Ranked)}
	for split, n := range map[int][2]int64{SplitVal: {c.Val, c.NotVal}, SplitTest: {c.Test, c.NotTest}} {
		sizes := [5]int64{n[0], n[0], n[1], n[1], n[0] * c.Ranked}
		for i, list := range h.of(split).arrays() {
			*list = array[uint32](p, linkArrays(split)[i], sizes[i])
			if l.err != nil {
				return nil
			}
			if at, v := badID(*list, l.Meta.Vertices); at >= 0 {
				p.bad("%s %d is vertex %d of %d", linkArrays(split)[i], at, v, l.Meta.Vertices)
				return nil
			}
		}
	}
	if l.Meta.Relations != nil {
		l.triples(p, h)
	}
	return h
}

// triples maps the relations of held-out edges.
func (l *loader) triples(p part, h *HeldOut) {
	c := l.Meta.Links
	h.Val.Relations, h.Test.Relations = array[uint16](p, valRelations, c.Val), array[uint16](p, testRelations, c.Test)
	loops := array[uint32](p, loopVertices, c.Loops)
	h.Loops = Held{Edges: Pairs{loops, loops}, Relations: array[uint16](p, loopRelations, c.Loops)}
	if l.err != nil {
		return
	}
	for _, list := range []Held{h.Val, h.Test, h.Loops} {
		if why := l.Meta.Relations.misfit(list.Edges, list.Relations); why != "" {
			p.bad("%s", why)
		}
	}
}

// checkLinks reports whether the fields of meta.json about links.bin are valid.
func (m *Meta) checkLinks() bool {
	c := m.Links
	if c == nil || m.Task != Links {
		return c == nil && m.Task != Links
	}
	least := min(c.Val, c.Test, c.NotVal, c.NotTest)
	if m.Relations != nil && (c.NotVal != c.Val || c.NotTest != c.Test || c.Ranked > 0) || m.Relations == nil && c.Loops != 0 {
		return false
	}
	return c.Train >= 0 && c.Loops >= 0 && c.Loops <= maxVertices && least > 0 && c.Ranked >= 0 && c.Ranked <= maxFeatures &&
		max(c.Val, c.Test) <= maxVertices*int64(maxFeatures)
}
