//go:build !amd64

package avx

// Best is None: there is no assembly for this architecture.
func Best() Set { return None }

// Gather is unavailable on this architecture.
func (Set) Gather([]float32, *Rows[float32], int, int, bool) {
	panic("avx: not on this architecture")
}

// GatherHalf is unavailable on this architecture.
func (Set) GatherHalf([]float32, *Rows[uint16], int, int, bool) {
	panic("avx: not on this architecture")
}

// Maxima is unavailable on this architecture.
func (Set) Maxima([]float32, []uint32, []float32, []uint32, []uint32, uint32, int) {
	panic("avx: not on this architecture")
}

// MaximaGrad is unavailable on this architecture.
func (Set) MaximaGrad([]float32, []uint32, []float32, []uint32, uint32, int) {
	panic("avx: not on this architecture")
}

// GatherLists is unavailable on this architecture.
func (Set) GatherLists([]float32, *Rows[uint64], []float32, int, int, bool) {
	panic("avx: not on this architecture")
}

// MostPacked is 0: no row is packed.
func (Set) MostPacked() int { return 0 }

// Pack is unavailable on this architecture.
func (Set) Pack([]float32, []uint64, []float32, int) int {
	panic("avx: not on this architecture")
}

// GatherPacked is unavailable on this architecture.
func (Set) GatherPacked([]float32, *Rows[float32], []uint64, int, int, int, bool) {
	panic("avx: not on this architecture")
}

// Widen is unavailable on this architecture.
func (Set) Widen([]float32, []uint16) int { panic("avx: not on this architecture") }

// Narrow is unavailable on this architecture.
func (Set) Narrow([]uint16, []float32, float32) int { panic("avx: not on this architecture") }

// PackSize is 0: there is no assembly that needs scratch memory.
const PackSize = 0

// Multiply is unavailable on this architecture.
func (Set) Multiply(Product) { panic("avx: not on this architecture") }

// Activate is unavailable on this architecture.
func (Set) Activate(_, _, _ []float32, _ bool) { panic("avx: not on this architecture") }

// Gradient is unavailable on this architecture.
func (Set) Gradient(_, _, _ []float32, _ float32) { panic("avx: not on this architecture") }

// AddRow is unavailable on this architecture.
func (Set) AddRow(_, _ []float32) { panic("avx: not on this architecture") }

// Softmax is unavailable on this architecture.
func (Set) Softmax(_, _ []float32, _ float64) (float32, float64) {
	panic("avx: not on this architecture")
}

// Dropout is unavailable on this architecture.
func (Set) Dropout(_ *Draw, _, _ []float32, _ uint32) { panic("avx: not on this architecture") }

// DropoutPair is unavailable on this architecture.
func (Set) DropoutPair(_ *Draw, _, _ []float32, _, _ uint32) { panic("avx: not on this architecture") }

// Sift is unavailable on this architecture.
func (Set) Sift(_ *Draw, _ []uint32, _ []float32, _ []uint64, _, _, _ []uint32, _ []float32) {
	panic("avx: not on this architecture")
}

// GatherValues is unavailable on this architecture.
func (Set) GatherValues(_, _ []float32, _ []uint32, _ []float32) {
	panic("avx: not on this architecture")
}

// SGD is unavailable on this architecture.
func (Set) SGD(_ *SGD, _, _, _ []float32) { panic("avx: not on this architecture") }

// Adam is unavailable on this architecture.
func (Set) Adam(_ *Adam, _, _, _, _ []float32) { panic("avx: not on this architecture") }

// Scores is unavailable on this architecture.
func (Set) Scores(_ []float32, _, _ int, _ *Near, _ []float32, _ int, _ []uint32, _ float32, _ *Near) {
	panic("avx: not on this architecture")
}

// Weights is unavailable on this architecture.
func (Set) Weights(_ []float32, _ int, _ PerEdge, _, _ *Near) {
	panic("avx: not on this architecture")
}

// Ends is unavailable on this architecture.
func (Set) Ends(_, _, _ []float32, _, _ int, _ *Near, _ []float32, _ []uint32, _ float32) {
	panic("avx: not on this architecture")
}

// Look is unavailable on this architecture.
func (Set) Look(_, _, _ []uint32) { panic("avx: not on this architecture") }

// Slopes is unavailable on this architecture.
func (Set) Slopes(_, _ []float32, _ int, _, _, _ PerEdge, _ float32, _ *Near) {
	panic("avx: not on this architecture")
}

// SlopesOfEdges is unavailable on this architecture.
func (Set) SlopesOfEdges(_, _ []float32, _ int, _, _, _ PerEdge, _ float32) {
	panic("avx: not on this architecture")
}

// Tops is unavailable on this architecture.
func (Set) Tops(_ []float32, _ int, _ *Near) { panic("avx: not on this architecture") }

// BentDots is unavailable on this architecture.
func (Set) BentDots(_ []float32, _, _ int, _, _, _ []float32, _ int, _ []uint32, _ int, _ float32) {
	panic("avx: not on this architecture")
}

// Bend is unavailable on this architecture.
func (Set) Bend(_, _, _, _, _ []float32, _ int, _ []uint32, _ []float32, _, _ int, _ float32, _ []uint32) {
	panic("avx: not on this architecture")
}

// EdgeMask is unavailable on this architecture.
func (Set) EdgeMask(_ *Draw, _ []float32, _ int, _, _ []uint32, _ int) {
	panic("avx: not on this architecture")
}

// Dots is unavailable on this architecture.
func (Set) Dots(_ []float32, _, _ int, _, _ []float32, _ int, _ []uint32, _ int) {
	panic("avx: not on this architecture")
}

// Weigh is unavailable on this architecture.
func (Set) Weigh(_, _ []float32, _ int, _ []uint32, _ []float32, _, _ int, _ []uint32) {
	panic("avx: not on this architecture")
}

// Scale is unavailable on this architecture.
func (Set) Scale(_ []float32, _ float32) { panic("avx: not on this architecture") }

// Less is unavailable on this architecture.
func (Set) Less(_, _ []uint32, _ uint32) { panic("avx: not on this architecture") }

// ELU is unavailable on this architecture.
func (Set) ELU(_, _, _ []float32) { panic("avx: not on this architecture") }

// ELUGradient is unavailable on this architecture.
func (Set) ELUGradient(_, _, _ []float32, _, _ float32) { panic("avx: not on this architecture") }

// MeanOf is unavailable on this architecture.
func (Set) MeanOf(_, _, _ []float32, _ int, _ float32) { panic("avx: not on this architecture") }

// Spread is unavailable on this architecture.
func (Set) Spread(_, _ []float32, _ int, _ float32) { panic("avx: not on this architecture") }

// Extent is unavailable on this architecture.
func (Set) Extent([]float32) (lo, hi float32, finite bool) { panic("avx: not on this architecture") }

// Codes is unavailable on this architecture.
func (Set) Codes(_ *Draw, _ []byte, _ []float32, _, _ float32, _ int, _ uint32) {
	panic("avx: not on this architecture")
}

// Values is unavailable on this architecture.
func (Set) Values(_ []float32, _ []byte, _, _ float32, _ int, _ bool) {
	panic("avx: not on this architecture")
}

// WidenAdd is unavailable on this architecture.
func (Set) WidenAdd([]float32, []uint16) int { panic("avx: not on this architecture") }

// Cost is unavailable on this architecture.
func (Set) Cost(_, _ int) int { panic("avx: not on this architecture") }

// MultiplySparse is unavailable on this architecture.
func (Set) MultiplySparse(Product, *Scratch) { panic("avx: not on this architecture") }

// Choose is unavailable on this architecture.
func (Set) Choose(_, _, _ []uint32) int { panic("avx: not on this architecture") }

// Below is unavailable on this architecture.
func (Set) Below(_, _ []uint32, _ uint32, _ *uint32) int { panic("avx: not on this architecture") }

// SignedWeights is unavailable on this architecture.
func (Set) SignedWeights(_ []float32, _ int, _ PerEdge, _, _, _ *Near) {
	panic("avx: not on this architecture")
}

// WeighSigned is unavailable on this architecture.
func (Set) WeighSigned(_, _, _ []float32, _ int, _ []uint32, _ []float32, _, _ int, _ []uint32) {
	panic("avx: not on this architecture")
}
