package async

// pool recycles what messages may point to: what is given back rests until the
// next turn, because messages of this one still need it.
type pool[T any] struct {
	make          func() T
	free, resting []T
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

func (p *pool[T]) put(v T) { p.resting = append(p.resting, v) }

func (p *pool[T]) turn() {
	p.free = append(p.free, p.resting...)
	p.resting = p.resting[:0]
}

// blocks makes a pool of arrays of n values.
func blocks(n int) pool[[]float32] {
	return pool[[]float32]{make: func() []float32 { return make([]float32, n) }}
}
