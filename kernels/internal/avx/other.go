//go:build !amd64

package avx

// none is the panic message of routines on an architecture without assembly, where Best returns
// None and nothing calls them.
const none = "avx: not on this architecture"

// Compiled is the best instruction set of this build.
const Compiled = None

// detected returns None: there is no assembly for this architecture.
func detected() Set { return None }

func (Set) Gather([]float32, *Rows[float32], int, int, bool)                       { panic(none) }
func (Set) GatherHalf([]float32, *Rows[uint16], int, int, bool)                    { panic(none) }
func (Set) Maxima([]float32, []uint32, []float32, []uint32, []uint32, uint32, int) { panic(none) }
func (Set) MaximaGrad([]float32, []uint32, []float32, []uint32, uint32, int)       { panic(none) }
func (Set) GatherLists([]float32, *Rows[uint64], []float32, int, int, bool)        { panic(none) }

// MostPacked returns 0: no row is packed.
func (Set) MostPacked() int { return 0 }

func (Set) Pack([]float32, []uint64, []float32, int) int                          { panic(none) }
func (Set) GatherPacked([]float32, *Rows[float32], []uint64, int, int, int, bool) { panic(none) }
func (Set) Widen([]float32, []uint16, bool) int                                   { panic(none) }
func (Set) Narrow([]uint16, []float32, float32) int                               { panic(none) }

// PackSize is 0: there is no assembly that needs scratch memory.
const PackSize = 0

func (Set) Multiply(Product)                                     { panic(none) }
func (Set) Activate(_, _, _ []float32, _ bool)                   { panic(none) }
func (Set) Gradient(_, _, _ []float32, _ float32)                { panic(none) }
func (Set) Tanh(_, _ []float32, _, _, _ float32)                 { panic(none) }
func (Set) AddRow(_, _ []float32)                                { panic(none) }
func (Set) AddRows(_, _ []float32)                               { panic(none) }
func (Set) Largest(_ *Softmax, _ []float32, _ int)               { panic(none) }
func (Set) Softmax(_ *Softmax, _, _ []float32, _ int, _ float64) { panic(none) }
func (Set) Dropout(_ *Draw, _, _ []float32, _ uint32)            { panic(none) }
func (Set) DropoutPair(_ *Draw, _, _ []float32, _, _ uint32)     { panic(none) }
func (Set) Sift(_ *Draw, _ []uint32, _ []float32, _ []uint64, _, _, _ []uint32, _ []float32) {
	panic(none)
}
func (Set) SGD(_ *SGD, _, _, _ []float32)      { panic(none) }
func (Set) Adam(_ *Adam, _, _, _, _ []float32) { panic(none) }
func (Set) Scores(_ []float32, _, _ int, _ *Near, _ []float32, _ int, _ []uint32, _ float32, _ *Near) {
	panic(none)
}
func (Set) Weights(_ []float32, _ int, _ PerEdge, _, _, _ *Near) { panic(none) }
func (Set) Ends(_, _, _ []float32, _, _ int, _ *Near, _ []float32, _ []uint32, _ float32) {
	panic(none)
}
func (Set) Repeat(_ *Near, _ []float32, _ int)                                { panic(none) }
func (Set) Lookup(_, _, _ []uint32)                                           { panic(none) }
func (Set) Slopes(_, _ []float32, _ int, _, _, _ PerEdge, _ float32, _ *Near) { panic(none) }
func (Set) SlopesOfEdges(_, _ []float32, _ int, _, _, _ PerEdge, _ float32)   { panic(none) }
func (Set) Tops(_ []float32, _ int, _ *Near)                                  { panic(none) }
func (Set) LeakyDots(_ []float32, _, _ int, _, _, _ []float32, _ int, _ []uint32, _ int, _ float32) {
	panic(none)
}
func (Set) LeakyGradient(_, _, _, _, _ []float32, _ int, _ []uint32, _ []float32, _, _ int, _ float32, _ []uint32) {
	panic(none)
}
func (Set) EdgeMask(_ *Draw, _ []float32, _ int, _, _ []uint32, _ int)           { panic(none) }
func (Set) Dots(_ []float32, _, _ int, _, _ []float32, _ int, _ []uint32, _ int) { panic(none) }
func (Set) Weigh(_, _, _ []float32, _ int, _ []uint32, _ []float32, _, _ int, _ []uint32) {
	panic(none)
}
func (Set) Scale(_ []float32, _ float32)                                        { panic(none) }
func (Set) Rebase(_, _ []uint32, _ uint32)                                      { panic(none) }
func (Set) ELU(_, _, _ []float32)                                               { panic(none) }
func (Set) ELUGradient(_, _, _ []float32, _, _ float32)                         { panic(none) }
func (Set) MeanOf(_, _, _ []float32, _ int, _ float32)                          { panic(none) }
func (Set) Spread(_, _ []float32, _ int, _ float32)                             { panic(none) }
func (Set) Extent([]float32) (lo, hi float32, finite bool)                      { panic(none) }
func (Set) Codes(_ *Draw, _ []byte, _ []float32, _, _ float32, _ int, _ uint32) { panic(none) }
func (Set) Values(_ []float32, _ []byte, _, _ float32, _ int, _ bool)           { panic(none) }
func (Set) Cost(_, _ int) int                                                   { panic(none) }
func (Set) HasPairs() bool                                                      { return false }
func (Set) PairColumns(_ []float32, _ int, _ []float32, _, _, _ int)            { panic(none) }
func (Set) Round(_, _ []float32) int                                            { panic(none) }
func (Set) MultiplySparse(Product, *Scratch)                                    { panic(none) }
func (Set) Choose(_, _, _ []uint32) int                                         { panic(none) }
func (Set) ChooseAt(_, _ []uint32, _ []uint8, _ int64) int                      { panic(none) }
func (Set) Below(_, _ []uint32, _ uint32, _ *uint32) int                        { panic(none) }
func (Set) DecodeRows(_ []uint32, _ []byte, _, _ []int64, _ int, _ uint32) int  { panic(none) }
func (Set) DecodeBelow(_ []uint32, _ []byte, _ *uint32, _, _ int, _ uint32, _ *byte) (count, used int) {
	panic(none)
}
