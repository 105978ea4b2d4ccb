package avx

// A block of edges of one row, the near one; their other ends are far rows,
// which ids number from 0. What a block has of each edge lies step floats
// apart, step being the heads rounded up to a power of two, at most Heads.
const (
	Heads = 8 // lanes of a near value
	Ahead = 8 // how many ids after those of a block are prefetched by
	// ScoresAhead is the same of scores, which are short: what lies there is any id.
	ScoresAhead = 24

	Slack = 16 // floats after the last of a block that may be read and written
)

// Near is a value for each flat place of a block, modulo eight: heads repeat.
type Near [Heads]float32

// PerEdge is a value for each edge and head, or with Step 0 a Near.
type PerEdge struct {
	Vals []float32
	Step int // 0 or Heads: from one vector to the next
}

// At is the value at flat place i of a block.
func (p PerEdge) At(i int) float32 { return p.Vals[i/Heads*p.Step+i%Heads] }
