package importers

import (
	"fmt"
	"slices"

	"siafu/graph"
	"siafu/internal/pickle"
)

// isRelationKey reports whether a key of a HeteroData's dict names a relation: KIND, RELATION, KIND.
func isRelationKey(key any) bool {
	words, _ := key.(pickle.Tuple)
	return len(words) == 3 && !slices.ContainsFunc(words, func(w any) bool { _, ok := w.(string); return !ok })
}

// heteroDict returns the dict of HeteroData.to_dict: the tensors of each kind and relation.
func heteroDict(state *pickle.Dict) *pickle.Dict {
	all := &pickle.Dict{}
	for _, of := range []string{"_node_store_dict", "_edge_store_dict"} {
		stores, _ := state.Get(of).(*pickle.Dict)
		if stores == nil {
			return nil
		}
		for i, v := range stores.Values {
			if store, ok := v.(*pickle.Object); ok {
				if mapping := mappingOf(store); mapping != nil {
					all.Keys, all.Values = append(all.Keys, stores.Keys[i]), append(all.Values, mapping)
				}
			}
		}
	}
	return all
}

// relational reads the tensors of a HeteroData.
func (t *torchArrays) relational(k *resources, o Options) *graph.Content {
	var kinds []kindArrays
	var relations []relationArrays
	rest := &pickle.Dict{} // of the whole graph
	stores := []*torchArrays{{input: t.input, dict: rest}}
	for i, key := range t.dict.Keys {
		dict, _ := t.dict.Values[i].(*pickle.Dict)
		name, isName := key.(string)
		store := &torchArrays{file: t.file, dict: dict, got: map[string]bool{}, input: t.element(name)}
		switch {
		case dict != nil && isRelationKey(key):
			words := key.(pickle.Tuple)
			store.input = t.element(fmt.Sprint(words[0], ",", words[1], ",", words[2]))
			relations = append(relations, relationArrays{words[0].(string), words[1].(string), words[2].(string), store})
		case dict != nil && isName && name != "_global_store":
			kinds = append(kinds, kindArrays{name: name, namedArrays: store})
		default:
			rest.Keys, rest.Values = append(rest.Keys, key), append(rest.Values, t.dict.Values[i])
			continue
		}
		stores = append(stores, store)
	}
	c := pygRelational(k, o, kinds, relations)
	for _, s := range stores {
		s.logRest(o)
	}
	return c
}
