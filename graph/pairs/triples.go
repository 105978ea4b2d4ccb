package pairs

import (
	"maps"
	"math/rand/v2"
	"slices"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/host"
)

func compareTriples(a, b graph.Triple) int {
	return slices.Compare([]uint32{a.Src, uint32(a.Relation), a.Dst}, []uint32{b.Src, uint32(b.Relation), b.Dst})
}

// Triples is a list of edges of a relational graph.
type Triples []graph.Triple

// EachRelation is graph.RelatedSource.EachRelation.
func (t Triples) EachRelation(yield func(src, dst uint32, relation uint16) error) error {
	for _, x := range t {
		if err := yield(x.Src, x.Dst, x.Relation); err != nil {
			return err
		}
	}
	return nil
}

// Sort sorts the list and removes repeated triples, as Has requires.
func (t Triples) Sort() Triples {
	slices.SortFunc(t, compareTriples)
	return slices.Compact(t)
}

// Has reports whether the sorted list contains a triple.
func (t Triples) Has(x graph.Triple) bool {
	_, ok := slices.BinarySearchFunc(t, x, compareTriples)
	return ok
}

// Corrupt sets the negative pairs of held-out triples: a random vertex of the same kind replaces the source
// or the destination of each (Bordes et al. 2013, section 2), so that the result is not one of the known
// triples, which must be sorted. op and path are those of the fault of kind Data if a triple has no negative.
func Corrupt(op, path string, h *graph.HeldOut, r *graph.Relations, known Triples, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, held := range []*graph.Held{&h.Val, &h.Test} {
		held.Not = graph.Pairs{}
		for _, x := range held.Triples() {
			not, ok := corrupted(x, r, known, rng)
			if !ok {
				return fault.New(fault.Data, op, path, "relation %s connects vertex %d with all vertices, and all vertices with vertex %d",
					r.Label(int(x.Relation)), x.Src, x.Dst).Then("remove the relation from the graph")
			}
			held.Not.Src, held.Not.Dst = append(held.Not.Src, not.Src), append(held.Not.Dst, not.Dst)
		}
	}
	return nil
}

// corrupted returns a random negative of a triple.
//
// Variant: rejection sampling, and after some failures the first negative from a random vertex on.
func corrupted(x graph.Triple, r *graph.Relations, known Triples, rng *rand.Rand) (not graph.Triple, ok bool) {
	const tries = 64
	kinds := [2]int{r.Relations[x.Relation].From, r.Relations[x.Relation].To}
	replace := func(end, v uint64) bool {
		first, n := r.Span(kinds[end])
		not = x
		*[2]*uint32{&not.Src, &not.Dst}[end] = first + uint32(v%uint64(n))
		return !known.Has(not)
	}
	for range tries {
		if replace(rng.Uint64()&1, rng.Uint64()) {
			return not, true
		}
	}
	end, start := rng.Uint64()&1, rng.Uint64()>>1
	for _, end := range []uint64{end, 1 - end} {
		for step := range uint64(r.Kinds[kinds[end]].Vertices) {
			if replace(end, start+step) {
				return not, true
			}
		}
	}
	return not, false
}

// holdTriples holds out edges of a relational graph, with the reverses of them, and returns the dataset
// without these edges.
func holdTriples(ds *graph.Dataset, o HoldOutOptions, shares [2]float64) (*graph.HeldOut, Triples, error) {
	r := ds.Meta.Relations
	if o.ValNegatives+o.TestNegatives+o.ValCandidates+o.TestCandidates != "" || o.Negatives != 0 || o.KeepHeld {
		return nil, nil, usage("leave them out: each edge of a relational graph gets a negative, and is ranked among all vertices",
			"negatives, candidates or --keep-held with a relational graph")
	}
	// The list, its sorted copy and the candidates have 12 bytes for each edge.
	if err := require(ds.Dir, 36*ds.Meta.Edges, host.LargerMachine); err != nil {
		return nil, nil, err
	}
	all := make(Triples, 0, len(ds.In.Cols))
	for v := range ds.In.Rows() {
		for i := ds.In.Offsets[v]; i < ds.In.Offsets[v+1]; i++ {
			all = append(all, graph.Triple{Src: ds.In.Cols[i], Dst: uint32(v), Relation: ds.Relations[i]})
		}
	}
	var held [2]Triples
	if o.Val != "" {
		names := NewNames(ds)
		for k, path := range []string{o.Val, o.Test} {
			s, err := Read(opHoldOut, path, names)
			if err != nil {
				return nil, nil, err
			}
			if s.Relations == nil {
				return nil, nil, fault.New(fault.Data, opHoldOut, path, "its edges have no relations").Then(relationRemedy)
			}
			held[k] = s.Triples()
		}
	} else {
		candidates := slices.DeleteFunc(slices.Clone(all), func(x graph.Triple) bool { return r.Relations[x.Relation].Reverse })
		rng := rand.New(rand.NewPCG(o.Seed, 1))
		rng.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
		n := float64(len(candidates))
		for k := range held {
			held[k], candidates = candidates[:int(shares[k]*n)], candidates[int(shares[k]*n):]
		}
		if len(held[0]) == 0 || len(held[1]) == 0 {
			return nil, nil, fault.New(fault.Data, opHoldOut, ds.Dir, "--split=%s holds out %d and %d edges", o.Split, len(held[0]),
				len(held[1])).Then("set larger percentages")
		}
	}
	h := &graph.HeldOut{}
	h.Val.Add(held[0]...)
	h.Test.Add(held[1]...)
	taken := slices.Concat(held[0], held[1])
	known := slices.Concat(all, taken).Sort()
	for _, x := range taken {
		if inverse := r.Relations[x.Relation].Inverse; inverse >= 0 {
			taken = append(taken, graph.Triple{Src: x.Dst, Dst: x.Src, Relation: uint16(inverse)})
		}
	}
	taken = taken.Sort()
	rest := slices.DeleteFunc(all, taken.Has)
	return h, rest, Corrupt(opHoldOut, ds.Dir, h, r, known, o.Seed)
}

// relationRemedy is the remedy for pairs without a relation.
const relationRemedy = "write a first line src,relation,dst and then the id, the name of a relation and the id of each edge; " +
	"a .tsv or .txt file without this first line has these three words between tabs in each line"

// relation returns the relation of a line with the ends src and dst.
func (r reader) relation(line int, name string, src, dst uint32) (uint16, error) {
	relation, ok := r.names.relations[name]
	if !ok {
		known := slices.Sorted(maps.Keys(r.names.relations))
		return 0, r.bad("line %d names the relation %q, which the graph does not have", line, name).
			Then("the graph's relations are %.500q", known[:min(len(known), 20)])
	}
	of := r.names.of
	x, from, to := of.Relations[relation], of.KindOf(int64(src)), of.KindOf(int64(dst))
	if x.From != from || x.To != to {
		return 0, r.bad("line %d: relation %s leads from kind %s to %s, but the ends have the kinds %s and %s", line, name,
			of.Kinds[x.From].Name, of.Kinds[x.To].Name, of.Kinds[from].Name, of.Kinds[to].Name).
			Then("name vertices of the relation's kinds, or another relation")
	}
	return relation, nil
}
