package codec

import "time"

// Cost is the cost of a codec on rows of one kind. Rows without a codec have Cost{Size: 1}.
type Cost struct {
	Encode float64 // seconds per byte of float32 rows, with all threads of a rank
	Decode float64 // the same
	Size   float64 // encoded bytes per byte of float32 rows
}

// Work returns the seconds that a rank needs to encode the sent rows and to decode the
// received rows of an exchange. Bytes count rows as float32.
func (c Cost) Work(out, in float64) float64 { return float64(c.Encode*out) + float64(c.Decode*in) }

// Exposed returns the part of the transfer time in seconds that the given seconds of other
// work do not hide.
func Exposed(travel, work float64) float64 { return max(travel-work, 0) }

// Workers runs bodies in parallel; kernels.Team is one.
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

// Measure times c on rows. Every worker encodes and decodes its own block at the same time.
// With add it decodes as for gradients, which are added.
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

// fastest returns the shortest time in seconds in which every worker runs do once, divided by
// the number of workers.
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
