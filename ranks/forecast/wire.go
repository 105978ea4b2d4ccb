package forecast

import (
	"siafu/graph/partition"
	"siafu/halo"
)

// blockFrame is what a block of encoded rows carries beside its payload.
const blockFrame = 24

// sizer is a codec that knows how long a payload will be: exactly where fixed,
// else at most.
type sizer interface {
	Size(rows, cols int) (bytes int, fixed bool)
}

// framed tells whether rows travel as blocks: not when they go as they are.
func framed(c halo.Codec) bool { return c.Name() != "none" }

// payload is the length of a message of rows x cols floats to one rank, and
// whether it is that exactly or at most.
func payload(c halo.Codec, rows, cols int64) (bytes int64, exact bool) {
	raw := 4 * rows * cols
	if rows == 0 || !framed(c) {
		return raw, true
	}
	if s, ok := c.(sizer); ok {
		n, fixed := s.Size(int(rows), int(cols))
		return blockFrame + int64(n), fixed
	}
	return blockFrame + 1 + raw, false // what does not get shorter is sent as it is
}

// Traffic is what ranks send each other in an epoch of training.
type Traffic struct {
	Raw      int64 `json:"raw_bytes"`  // ghost rows of all ranks, as float32
	Sent     int64 `json:"sent_bytes"` // and as they travel
	Exact    bool  `json:"exact"`      // else Sent is an upper bound
	Messages int64 `json:"messages"`
}

// Traffic of ghost rows in an epoch, evaluations apart from training not
// counted.
func (f *Forecast) Traffic(parts []partition.RankReport) Traffic {
	t := Traffic{Exact: true}
	for _, e := range f.Exchanges() {
		f.eachMessage(e, parts, func(_, _ int, rows int64) {
			bytes, exact := payload(f.Codec, rows, int64(e.Width))
			t.Raw += 4 * rows * int64(e.Width)
			t.Sent += bytes
			t.Exact = t.Exact && exact
			t.Messages++
		})
	}
	return t
}

// eachMessage visits the messages of an exchange: rows from one rank to
// another.
func (f *Forecast) eachMessage(e Exchange, parts []partition.RankReport, visit func(from, to int, rows int64)) {
	for p, part := range parts {
		for q, rows := range part.SendTo {
			switch {
			case rows == 0:
			case e.Back:
				visit(q, p, rows)
			default:
				visit(p, q, rows)
			}
		}
	}
}
