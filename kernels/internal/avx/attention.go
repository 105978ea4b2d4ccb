package avx

// A block has edges of one row, the near row. The other ends of the edges are the far rows, which
// ids number from 0. The values of two edges of a block are step floats apart. step is the number
// of heads rounded up to a power of two, at most Heads.
const (
	Heads = 8 // lanes of a near value
	Ahead = 8 // number of ids after those of a block that are read for prefetching
	// ScoresAhead is the same for scores, whose rows are short. Those ids may be arbitrary.
	ScoresAhead = 24

	Slack = 16 // floats after the last one of a block that may be read and written
)

// Near has a value for each position of a block, modulo eight, because heads repeat.
type Near [Heads]float32

// PerEdge has a value for each edge and head, or with Step 0 a Near.
type PerEdge struct {
	Vals []float32
	Step int // 0 or Heads: from one vector to the next
}

// At returns the value at position i of a block.
func (p PerEdge) At(i int) float32 { return p.Vals[i/Heads*p.Step+i%Heads] }
