package protocol

// pool recycles arrays. Messages of a Step may point to some that the same Step
// gives back; that is safe because a Step takes none of their kind after them.
type pool[T any] struct {
	make func() T
	free []T
}

func (p *pool[T]) get() T {
	last := len(p.free) - 1
	if last < 0 {
		return p.make()
	}
	v := p.free[last]
	p.free = p.free[:last]
	return v
}

func (p *pool[T]) put(v T) { p.free = append(p.free, v) }

// blocks makes a pool of arrays of n values.
func blocks(n int) pool[[]float32] {
	return pool[[]float32]{make: func() []float32 { return make([]float32, n) }}
}
