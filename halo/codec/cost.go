package codec

import "time"

// Cost is what a codec costs on rows of one kind. That of rows which travel as
// they are is Cost{Size: 1}.
type Cost struct {
	Encode float64 // seconds for a byte of rows as float32, with all of a rank's threads at work
	Decode float64 // the same
	Size   float64 // bytes that travel for such a byte
}

// Work is the seconds that a rank takes to encode the bytes of rows that it sends
// in an exchange, and to decode those that come. Bytes are counted as float32.
func (c Cost) Work(out, in float64) float64 { return c.Encode*out + c.Decode*in }

// Exposed is the part of the seconds that rows are under way which other work,
// of so many seconds, does not hide.
func Exposed(travel, work float64) float64 { return max(travel-work, 0) }

// Workers run bodies side by side; kernels.Team is one.
type Workers interface {
	Workers() int
	Run(n, grain int, body func(lo, hi int))
}

// Codecs are timed several times, for about timing, and twice at least: buffers
// grow in the first one.
const (
	timings = 6
	timing  = time.Millisecond
)

// Measure times c on rows, of which every worker encodes and decodes a block of
// its own at the same time. add decodes as gradients are, which are added.
func Measure(team Workers, c Codec, rows Rows, add bool) Cost {
	raw := float64(4 * rows.Len * rows.Cols)
	if raw == 0 || c.ID() == (ID{}) {
		return Cost{Size: 1}
	}
	n := team.Workers()
	blocks, into := make([][]byte, n), make([]Rows, n)
	for w := range into {
		into[w] = Rows{X: make([]float32, rows.Len*rows.Cols), Cols: rows.Cols, Len: rows.Len}
	}
	cost := Cost{
		Encode: fastest(team, func(w int) { blocks[w] = EncodeBlock(blocks[w][:0], c, rows, 0, Key{}, nil) }) / raw,
		Decode: fastest(team, func(w int) {
			b, err := Open(blocks[w], c)
			if err != nil || b.Decode(c, into[w], add) != nil {
				panic("codec: a codec does not decode what it has encoded")
			}
		}) / raw,
	}
	cost.Size = float64(len(blocks[0])-BlockHeader) / raw
	return cost
}

// fastest is the least seconds in which every worker does it once, divided by
// their number.
func fastest(team Workers, do func(worker int)) float64 {
	n, best := team.Workers(), time.Hour
	for i, start := 0, time.Now(); i < 2 || i < timings && time.Since(start) < timing; i++ {
		began := time.Now()
		team.Run(n, 1, func(lo, hi int) {
			for w := lo; w < hi; w++ {
				do(w)
			}
		})
		best = min(best, time.Since(began))
	}
	return best.Seconds() / float64(n)
}
