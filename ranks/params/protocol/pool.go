package protocol

// pool recycles arrays. Messages of a Step may point to arrays that the same Step releases;
// this is safe because the Step then allocates no more of that kind.
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
