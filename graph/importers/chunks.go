package importers

import (
	"slices"

	"siafu/internal/mapped"
)

// chunks stores a growing list of pairs in mapped memory without copying, for sources of
// unknown length.
type chunks[T mapped.Elem] struct {
	resources *resources
	input
	list  [][]T
	free  []T // the unused rest of the last chunk
	pairs int64
}

// Chunks grow from the first to the last number of pairs.
const (
	firstChunk = 1 << 12
	lastChunk  = 1 << 22
)

// add appends pairs.
func (c *chunks[T]) add(pairs []T) error {
	c.pairs += int64(len(pairs) / 2)
	for len(pairs) > 0 {
		if len(c.free) == 0 {
			chunk, err := reserve[T](c.resources, c.input, 2*min(firstChunk<<min(len(c.list), 20), lastChunk))
			if err != nil {
				return err
			}
			c.list, c.free = append(c.list, chunk), chunk
		}
		n := copy(c.free, pairs)
		c.free, pairs = c.free[n:], pairs[n:]
	}
	return nil
}

// filled returns the used part of chunk i.
func (c *chunks[T]) filled(i int) []T {
	if i == len(c.list)-1 {
		return c.list[i][:len(c.list[i])-len(c.free)]
	}
	return c.list[i]
}

// contains reports whether f is true for an element.
func (c *chunks[T]) contains(f func(T) bool) bool {
	for i := range c.list {
		if slices.ContainsFunc(c.filled(i), f) {
			return true
		}
	}
	return false
}

// edgeBuffer is chunks of vertex ids as a graph.EdgeSource.
type edgeBuffer struct{ *chunks[uint32] }

func newEdgeBuffer(k *resources, at input) edgeBuffer {
	return edgeBuffer{&chunks[uint32]{resources: k, input: at}}
}

// Each implements graph.EdgeSource.
func (b edgeBuffer) Each(yield func(src, dst uint32) error) error {
	for i := range b.list {
		for pairs := b.filled(i); len(pairs) > 0; pairs = pairs[2:] {
			if err := yield(pairs[0], pairs[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// cursor reads chunks from the start.
type cursor[T mapped.Elem] struct {
	chunks *chunks[T]
	next   int // chunk
	rest   []T
}

// fill sets dst to the next elements. At least len(dst) elements must be left.
func (c *cursor[T]) fill(dst []T) {
	for len(dst) > 0 {
		if len(c.rest) == 0 {
			c.rest = c.chunks.filled(c.next)
			c.next++
		}
		n := copy(dst, c.rest)
		dst, c.rest = dst[n:], c.rest[n:]
	}
}
