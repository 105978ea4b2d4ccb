package pairs

import (
	"slices"

	"siafu/graph"
	"siafu/internal/fault"
)

// read reads the held-out edges, negative pairs and candidates from files. If the files contain
// negative pairs or candidates, no other candidates are sampled.
func (d *drawer) read(h *graph.HeldOut, o HoldOutOptions) error {
	names := NewNames(d.ds)
	var ranked [2]int
	d.drawn = map[uint64]bool{}
	for k, from := range []struct {
		to                     *graph.Held
		part, edges, not, each string
	}{{&h.Val, "valid", o.Val, o.ValNegatives, o.ValCandidates}, {&h.Test, "test", o.Test, o.TestNegatives, o.TestCandidates}} {
		s, err := readPart(opHoldOut, from.edges, from.part, names)
		if err != nil {
			return err
		}
		if from.not != "" {
			list, err := Read(opHoldOut, from.not, names)
			if err != nil {
				return err
			}
			s.Not = list.Edges
		}
		if from.each != "" {
			if s.Each, s.Ranked, err = readEach(opHoldOut, from.each, names, s.Edges.Len()); err != nil {
				return err
			}
		}
		*from.to, ranked[k] = s.Held, s.Ranked
		for i, u := range s.Edges.Src {
			held := pairKey(u, s.Edges.Dst[i])
			if d.drawn[held] = true; !o.KeepHeld { // a held-out edge must not be a negative pair
				d.taken = append(d.taken, held)
			}
		}
	}
	if ranked[0] != ranked[1] {
		return fault.New(fault.Data, opHoldOut, o.Test,
			"it ranks each edge among %d vertices, but %s ranks among %d", ranked[1], o.Val, ranked[0]).
			Then("give the same number for both")
	}
	warnOfHeld(h, d.ds.Meta.Directed, o)
	slices.Sort(d.taken)
	d.taken = slices.Compact(d.taken)
	if h.Val.Not.Len()+h.Test.Not.Len() > 0 || ranked[0] > 0 {
		h.Ranked = ranked[0]
	}
	return nil
}

// heldCounts are the numbers of held-out pairs that are also other pairs, or none.
type heldCounts struct{ loops, repeated, reversed, shared int }

func (c *heldCounts) any() bool { return *c != heldCounts{} }

// countHeld counts the pairs that are no links or count twice: (v, v), repeated in a file, and in
// both files. Of an undirected graph, it also counts pairs whose reverse is in the same file.
func countHeld(h *graph.HeldOut, directed bool) (c heldCounts) {
	all := map[uint64]int{} // set of each pair, from 1
	for k, held := range []*graph.Held{&h.Val, &h.Test} {
		seen := map[[2]uint32]bool{}
		for i, u := range held.Edges.Src {
			v := held.Edges.Dst[i]
			key := pairKey(u, v)
			if directed {
				key = uint64(u)<<32 | uint64(v)
			}
			switch {
			case u == v:
				c.loops++
			case seen[[2]uint32{u, v}]:
				c.repeated++
			case seen[[2]uint32{v, u}] && !directed:
				c.reversed++
			case all[key] == 1 && k == 1:
				c.shared++
			}
			seen[[2]uint32{u, v}], all[key] = true, k+1
		}
	}
	return c
}

func warnOfHeld(h *graph.HeldOut, directed bool, o HoldOutOptions) {
	if c := countHeld(h, directed); c.any() && o.Log != nil {
		o.Log("warning: %s and %s: pairs (v, v)=%d, repeated=%d, reversed=%d, in both files=%d: they count twice "+
			"or are no links; remove them",
			o.Val, o.Test, c.loops, c.repeated, c.reversed, c.shared)
	}
}
