package pairs

import (
	"fmt"

	"siafu/graph"
	"siafu/internal/npy"
	"siafu/internal/pickle"
)

// openArrays returns a function that reads an array of a file by name. It returns nil for an
// array that the file lacks.
func openArrays(r reader) (get func(name string) (*npy.Array, error), done func() error, err error) {
	if kindOf(r.path) == "npz" {
		z, err := npy.OpenZip(r.path)
		if err != nil {
			return nil, nil, err
		}
		return func(name string) (*npy.Array, error) {
			if !z.Has(name) {
				return nil, nil
			}
			return z.Get(name)
		}, z.Close, nil
	}
	f, err := pickle.OpenTorch(r.path)
	if err != nil {
		return nil, nil, err
	}
	dict, ok := f.Value.(*pickle.Dict)
	if !ok {
		defer f.Close()
		return nil, nil, f.Bad("it has %s, expected a dict of tensors", pickle.Describe(f.Value)).
			Then("give a split file of the Open Graph Benchmark, or save {'edge': edge}")
	}
	if part, ok := dict.Get(r.part).(*pickle.Dict); ok {
		dict = part
	}
	return func(name string) (*npy.Array, error) {
		if v := dict.Get(name); v != nil {
			return f.Array(v, name)
		}
		return nil, nil
	}, f.Close, nil
}

// readArrays reads an array file into s.
func readArrays(r reader, s *Split) error {
	if kindOf(r.path) == "npy" {
		a, done, err := npy.Map(r.path)
		if err != nil {
			return err
		}
		defer done()
		s.Edges, err = r.pairs(a, "array")
		return err
	}
	read, done, err := openArrays(r)
	if err != nil {
		return err
	}
	defer done()
	get := func(name string) (a *npy.Array) {
		if err == nil {
			a, err = read(name)
		}
		return a
	}
	edge, not := get("edge"), get("edge_neg")
	source, target, each := get("source_node"), get("target_node"), get("target_node_neg")
	switch {
	case err != nil:
		return err
	case edge != nil:
		if s.Edges, err = r.pairs(edge, "edge"); err == nil && not != nil {
			s.Not, err = r.pairs(not, "edge_neg")
		}
		return err
	case source == nil || target == nil:
		return r.bad("it has neither edge nor source_node and target_node").
			Then("give the arrays the names of the Open Graph Benchmark's split files")
	}
	if s.Edges.Src, err = r.vertices(source, "source_node"); err == nil {
		s.Edges.Dst, err = r.vertices(target, "target_node")
	}
	if n := s.Edges.Len(); err == nil && n != len(s.Edges.Dst) {
		return r.bad("source_node has %d elements, target_node %d", n, len(s.Edges.Dst)).Then("give one element of each array per edge")
	}
	if err == nil && each != nil {
		s.Each, s.Ranked, err = r.rows(each, "target_node_neg")
	}
	if err == nil && len(s.Each) != s.Edges.Len()*s.Ranked {
		return r.bad("target_node_neg has shape %v, for %d edges", each.Shape, s.Edges.Len()).Then("give a row for each edge")
	}
	return err
}

func arrayRows(r reader) ([]uint32, int, error) {
	if kindOf(r.path) != "npy" {
		return nil, 0, r.bad("it is neither a .npy file nor text").
			Then("save the array with numpy.save, or name an archive with target_node_neg as the file of edges")
	}
	a, done, err := npy.Map(r.path)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	return r.rows(a, "array")
}

// rows returns the vertices of a matrix in row-major order, and its number of columns.
func (r reader) rows(a *npy.Array, name string) ([]uint32, int, error) {
	if len(a.Shape) != 2 {
		return nil, 0, r.bad("%s has shape %v, expected [edges vertices]", name, a.Shape).
			Then("give the same number of vertices for each edge")
	}
	all, err := r.vertices(a, name)
	return all, a.Shape[1], err
}

// pairs returns the pairs of a matrix with two columns, or with two rows.
func (r reader) pairs(a *npy.Array, name string) (p graph.Pairs, err error) {
	columns := len(a.Shape) == 2 && a.Shape[1] == 2
	if !columns && (len(a.Shape) != 2 || a.Shape[0] != 2) {
		return p, r.bad("%s has shape %v, expected [pairs 2]", name, a.Shape).Then("give two ids for each pair")
	}
	all, err := r.vertices(a, name)
	if err != nil {
		return p, err
	}
	if !columns {
		return graph.Pairs{Src: all[:len(all)/2], Dst: all[len(all)/2:]}, nil
	}
	for i := 0; i < len(all); i += 2 {
		p.Src, p.Dst = append(p.Src, all[i]), append(p.Dst, all[i+1])
	}
	return p, nil
}

// vertices returns the vertices whose ids an array contains, in row-major order.
func (r reader) vertices(a *npy.Array, name string) ([]uint32, error) {
	a = a.Called(r.path + ": " + name)
	if words, err := a.Strings(); err == nil {
		return find(r, name, words, r.names.word)
	}
	ids, err := a.Int64s()
	if err != nil {
		return nil, err
	}
	return find(r, name, ids, r.names.number)
}

// find returns the vertices with the given ids of the array called name.
func find[T string | int64](r reader, name string, ids []T, vertex func(id T) (uint32, bool)) ([]uint32, error) {
	list := make([]uint32, len(ids))
	for i, id := range ids {
		v, ok := vertex(id)
		if !ok {
			return nil, r.unknown(fmt.Sprintf("element %d of %s", i, name), fmt.Sprint(id))
		}
		list[i] = v
	}
	return list, nil
}
