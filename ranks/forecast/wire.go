package forecast

import (
	"math"

	"siafu/graph/partition"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/internal/size"
)

// framed reports whether rows are encoded in blocks. The codec none sends rows as they are.
func framed(c codec.Codec) bool { return c.ID() != codec.ID{} }

// codable is the largest size in bytes for which a codec reports its output. Larger rows exceed
// any memory.
const codable = size.Most >> 16

// payload returns the bytes of rows x cols floats sent to one rank, whether this is exact or an
// upper bound, and the number of messages.
func payload(c codec.Codec, rows, cols int64) (bytes int64, exact bool, messages int64) {
	raw := floats(rows, cols)
	if rows == 0 || !framed(c) {
		return raw, true, 1
	}
	if raw > codable {
		return raw, false, 1
	}
	exact = true
	for chunk := int64(halo.ChunkRows(c, int(cols))); rows > 0; rows -= chunk {
		n, fixed := c.Size(int(min(rows, chunk)), int(cols))
		bytes += codec.BlockHeader + int64(n)
		exact = exact && fixed
		messages++
	}
	return bytes, exact, messages
}

// Traffic has the bytes that ranks exchange in a training epoch.
type Traffic struct {
	Raw      int64 `json:"raw_bytes"`  // ghost rows as float32, sum over ranks
	Sent     int64 `json:"sent_bytes"` // encoded ghost rows
	Exact    bool  `json:"exact"`      // otherwise Sent is an upper bound, or a mean if the policy sends some of the rows
	Messages int64 `json:"messages"`
}

// Traffic returns the ghost-row traffic of an epoch as a mean over the run. Separate evaluations
// are not counted.
func (f *Forecast) Traffic(parts []partition.RankReport) Traffic {
	t := f.traffic(f.Exchanges(), parts)
	share, exact := f.Config.Ghosts().Share(f.Config.Epochs)
	if share < 1 {
		t.scale(share)
	}
	t.Exact = t.Exact && exact
	if share := f.corrections(); share > 0 {
		c := f.traffic(f.exchanges(true), parts)
		c.scale(share)
		t.Raw, t.Sent, t.Messages = size.Sum(t.Raw, c.Raw), size.Sum(t.Sent, c.Sent), size.Sum(t.Messages, c.Messages)
		t.Exact = t.Exact && c.Exact
	}
	return t
}

// traffic returns the traffic of a list of exchanges.
func (f *Forecast) traffic(list []Exchange, parts []partition.RankReport) Traffic {
	t := Traffic{Exact: true}
	for _, e := range list {
		f.eachMessage(e, parts, func(_, _ int, rows int64) {
			bytes, exact, messages := payload(f.Codecs[0], rows, int64(e.Width))
			t.Raw = size.Sum(t.Raw, floats(rows, int64(e.Width)))
			t.Sent = size.Sum(t.Sent, bytes)
			t.Exact = t.Exact && exact
			t.Messages += messages
		})
	}
	return t
}

// scale multiplies the traffic by share.
func (t *Traffic) scale(share float64) {
	for _, n := range []*int64{&t.Raw, &t.Sent, &t.Messages} {
		*n = int64(math.Round(share * float64(*n)))
	}
}

// eachMessage visits the messages of an exchange.
func (f *Forecast) eachMessage(e Exchange, parts []partition.RankReport, visit func(from, to int, rows int64)) {
	for p, part := range parts {
		for q, rows := range part.SendTo {
			rows = e.Sent(rows)
			switch {
			case rows == 0:
			case e.Backward:
				visit(q, p, rows)
			default:
				visit(p, q, rows)
			}
		}
	}
}
