//go:build !amd64

package avx

// Best is None: there is no assembly for this architecture.
func Best() Set { return None }

// Gather is not there on this architecture.
func (Set) Gather([]float32, *Rows, int, int, float32, bool) { panic("avx: not on this architecture") }

// Multiply is not there on this architecture.
func (Set) Multiply(Product) { panic("avx: not on this architecture") }
