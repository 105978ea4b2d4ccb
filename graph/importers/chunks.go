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

// oneChunk has all elements of a list.
func oneChunk[T mapped.Elem](list []T) *chunks[T] { return &chunks[T]{list: [][]T{list}} }

// Chunks grow from the first to the last number of pairs.
const (
	firstChunk = 1 << 12
	lastChunk  = 1 << 22
)

func (c *chunks[T]) add(pairs []T) {
	c.pairs += int64(len(pairs) / 2)
	for len(pairs) > 0 {
		if len(c.free) == 0 {
			chunk := reserve[T](c.resources, c.input, 2*min(firstChunk<<min(len(c.list), 20), lastChunk))
			c.list, c.free = append(c.list, chunk), chunk
		}
		n := copy(c.free, pairs)
		c.free, pairs = c.free[n:], pairs[n:]
	}
}

// filled returns the used part of chunk i.
func (c *chunks[T]) filled(i int) []T {
	if i == len(c.list)-1 {
		return c.list[i][:len(c.list[i])-len(c.free)]
	}
	return c.list[i]
}

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
	chunk  int // the next one
	rest   []T // of the last one
	row    []T // elements of several chunks
}

// next returns the next n elements, which must exist. They are valid until the next call.
func (c *cursor[T]) next(n int) []T {
	if n <= len(c.rest) {
		next := c.rest[:n]
		c.rest = c.rest[n:]
		return next
	}
	c.row = c.row[:0]
	for len(c.row) < n {
		if len(c.rest) == 0 {
			c.rest = c.chunks.filled(c.chunk)
			c.chunk++
		}
		part := c.rest[:min(n-len(c.row), len(c.rest))]
		c.row, c.rest = append(c.row, part...), c.rest[len(part):]
	}
	return c.row
}
