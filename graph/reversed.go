package graph

// WithReverse returns the edges of a source, and each edge also in the other direction if AddReverse added a
// reverse to its relation.
func (r *Relations) WithReverse(edges EachRelation) EachRelation {
	return func(yield func(src, dst uint32, relation uint16) error) error {
		return edges(func(s, d uint32, relation uint16) error {
			if err := yield(s, d, relation); err != nil {
				return err
			}
			if x := r.Relations[relation]; x.Inverse >= 0 && !x.Reverse {
				return yield(d, s, uint16(x.Inverse))
			}
			return nil
		})
	}
}
