package graph

import "slices"

// EdgePairs is an EdgeSource in memory: src0, dst0, src1, dst1, …
type EdgePairs []uint32

// Each implements EdgeSource.
func (p EdgePairs) Each(yield func(src, dst uint32) error) error {
	for i := 0; i+1 < len(p); i += 2 {
		if err := yield(p[i], p[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// equal tells whether two CSRs hold the same edges.
func (c CSR) equal(d CSR) bool {
	return slices.Equal(c.Offsets, d.Offsets) && slices.Equal(c.Cols, d.Cols)
}
