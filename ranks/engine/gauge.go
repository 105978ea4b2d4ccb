package engine

import (
	"time"

	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/ranks/tune"
)

// gauge times codecs on all threads of a rank at once, each with a block of its
// own.
type gauge struct {
	team   *kernels.Team
	blocks [][]byte
	rows   [][]float32
}

func newGauge(team *kernels.Team) *gauge {
	return &gauge{team, make([][]byte, team.Workers()), make([][]float32, team.Workers())}
}

// cost is what a codec costs on rows of an exchange; nothing without rows.
func (g *gauge) cost(c codec.Codec, sample []float32, e tune.Exchange) tune.Cost {
	if len(sample) == 0 {
		return tune.Cost{}
	}
	rows := codec.Rows{X: sample, Cols: e.Width, Len: len(sample) / e.Width}
	raw := float64(4 * len(sample))
	encode := g.time(func(w int) {
		g.blocks[w] = codec.EncodeBlock(g.blocks[w][:0], c, rows, 0, codec.Key{}, nil)
	})
	decode := g.time(func(w int) { g.decode(w, c, rows, e.Backward) })
	cost := tune.Cost{Encode: encode / raw, Decode: decode / raw, Size: float64(len(g.blocks[0])-codec.BlockHeader) / raw}
	if c.ID() == (codec.ID{}) { // such rows leave, or arrive, where they are
		if e.Backward {
			cost.Encode = 0
		} else {
			cost.Decode = 0
		}
	}
	return cost
}

func (g *gauge) decode(w int, c codec.Codec, like codec.Rows, add bool) {
	if len(g.rows[w]) < len(like.X) {
		g.rows[w] = make([]float32, len(like.X))
	}
	to := codec.Rows{X: g.rows[w][:len(like.X)], Cols: like.Cols, Len: like.Len}
	b, err := codec.Open(g.blocks[w], c)
	if err != nil || b.Decode(c, to, add) != nil {
		panic("engine: a codec does not decode what it has encoded")
	}
}

// Something is timed several times, until it has taken gaugeTime, and twice at
// least: buffers grow in the first one.
const (
	gaugeRuns = 6
	gaugeTime = time.Millisecond
)

// time is the seconds a thread takes for what each does, if all do it at the same
// time, divided by their number.
func (g *gauge) time(do func(worker int)) float64 {
	best := time.Hour
	for i, start := 0, time.Now(); i < 2 || i < gaugeRuns && time.Since(start) < gaugeTime; i++ {
		began := time.Now()
		g.team.Run(g.team.Workers(), 1, func(lo, hi int) {
			for w := lo; w < hi; w++ {
				do(w)
			}
		})
		best = min(best, time.Since(began))
	}
	return best.Seconds() / float64(g.team.Workers())
}
