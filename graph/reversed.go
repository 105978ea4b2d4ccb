package graph

// WithReverse returns the edges of a source, and each edge also in the other direction if AddReverse added a
// reverse to its relation.
func (r *Relations) WithReverse(edges RelatedSource) RelatedSource { return &reversed{edges, r} }

type reversed struct {
	edges RelatedSource
	of    *Relations
}

// Each implements EdgeSource.
func (e *reversed) Each(yield func(src, dst uint32) error) error {
	return e.EachRelation(func(s, d uint32, _ uint16) error { return yield(s, d) })
}

// EachRelation implements RelatedSource.
func (e *reversed) EachRelation(yield func(src, dst uint32, relation uint16) error) error {
	return e.edges.EachRelation(func(s, d uint32, relation uint16) error {
		err := yield(s, d, relation)
		if int(relation) >= len(e.of.Relations) || err != nil {
			return err
		}
		if x := e.of.Relations[relation]; x.Inverse >= 0 && !x.Reverse {
			return yield(d, s, uint16(x.Inverse))
		}
		return nil
	})
}
