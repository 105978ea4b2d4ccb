package forecast

import (
	"math"

	"siafu/graph/partition"
	"siafu/internal/size"
	"siafu/ranks/engine"
)

// PairTraffic has the bytes that ranks exchange in a training epoch for the ends of pairs,
// in addition to ghost rows: embeddings as float32 for any codec, their gradients, and for
// sampled pairs the requested row numbers. Values that depend on random samples are means.
type PairTraffic struct {
	Sent      int64 `json:"sent_bytes"`
	Deviation int64 `json:"deviation_bytes"` // of Sent from epoch to epoch, the standard deviation
}

// PairTraffic of an epoch of link prediction on these parts, nil of another task.
func (f *Forecast) PairTraffic(parts []partition.RankReport) *PairTraffic {
	if f.Links == nil {
		return nil
	}
	t, spread := new(PairTraffic), 0.0
	for _, d := range f.draws(parts) {
		t.Sent = size.Sum(t.Sent, floats(int64(math.Round(d.rows)), f.drawnColumns()))
		spread += d.spread
	}
	for _, p := range parts {
		t.Sent = size.Sum(t.Sent, floats(p.Ghosts, f.pairWidth()))
		if f.Directed { // else each end's rank has the other end's row, and finds its own gradient
			t.Sent = size.Sum(t.Sent, floats(p.Ghosts, f.pairWidth()))
		}
	}
	t.Deviation = int64(math.Round(float64(floats(f.drawnColumns())) * math.Sqrt(spread)))
	return t
}

// pairWidth is that of embeddings.
func (f *Forecast) pairWidth() int64 { return int64(f.Net.Dims[f.Net.Layers()]) }

// drawnColumns returns the numbers that travel for a row of an end that is drawn: what it is asked
// for by, the row and its gradient.
func (f *Forecast) drawnColumns() int64 { return 1 + 2*f.pairWidth() }

// draw is what a part draws for an epoch: so many chunks of pairs, each of which fetches the rows
// on other parts that it meets. rows is the mean of their sum, and spread its variance.
type draw struct {
	chunks       int64
	rows, spread float64
}

// draws are those of all parts. As many pairs are drawn as there are to train on, and dealt out
// to vertices alike (kernels.Share).
//
// Design note: a part has a pair more or less for some of its vertices, as their ids have it.
// What that moves is nearly made up for by the other parts, and is less than draws move.
func (f *Forecast) draws(parts []partition.RankReport) []draw {
	list, edges, n := make([]draw, len(parts)), int64(0), f.Vertices
	for _, p := range parts {
		edges = size.Sum(edges, p.Edges)
	}
	if !f.Directed {
		edges /= 2
	}
	if n < 2 {
		return list
	}
	at := engine.MaxChunkPairs(f.Net)
	for k, p := range parts {
		pairs := int64(math.Round(float64(edges) * float64(p.Vertices) / float64(n)))
		full, rest := pairs/at, pairs%at
		rows, spread := met(at, n, n-p.Vertices)
		last, more := met(rest, n, n-p.Vertices)
		list[k] = draw{full, float64(full)*rows + last, float64(full)*spread + more}
		if rest > 0 {
			list[k].chunks++
		}
	}
	return list
}

// met is how many of some vertices so many draws meet, the mean and the variance: each draw is of
// one vertex of a part, and any of the n-1 others is as likely to be met.
func met(draws, n, of int64) (mean, variance float64) {
	if draws <= 0 || of <= 0 {
		return 0, 0
	}
	k, some := float64(draws), float64(of)
	missed := math.Exp(k * math.Log1p(-1/float64(n-1)))
	mean, variance = some*(1-missed), some*missed*(1-missed)
	if of > 1 { // that one is met makes another less likely: neither is by (1-2/(n-1))^k
		variance += some * (some - 1) * missed * missed * math.Expm1(k*math.Log1p(-1/float64(n-2)/float64(n-2)))
	}
	return mean, max(variance, 0)
}

// pairSeconds is how long the rows of pairs take in an epoch: nothing hides them, because there is
// nothing else to do between the last layer's rows and their gradients.
func (f *Forecast) pairSeconds(parts []partition.RankReport, l Link) float64 {
	if f.Links == nil || len(parts) < 2 {
		return 0
	}
	return f.edgeSeconds(parts, l) + f.drawSeconds(parts, l)
}

// edgeSeconds are those of the graph's edges.
func (f *Forecast) edgeSeconds(parts []partition.RankReport, l Link) (seconds float64) {
	for _, back := range []bool{false, true} {
		if back && !f.Directed {
			break
		}
		move := newFlow(l, f.Graph+f.Servers)
		f.eachMessage(Exchange{Backward: back}, parts, func(p, q int, rows int64) { move.add(p, q, floats(rows, f.pairWidth())) })
		seconds += move.seconds()
	}
	return seconds
}

// drawSeconds are those of pairs that are drawn: chunk by chunk ranks tell each other how many
// rows they want, and which, and get them, and return gradients. A part's bytes are taken for
// alike in all its chunks.
func (f *Forecast) drawSeconds(parts []partition.RankReport, l Link) (seconds float64) {
	list, chunks := f.draws(parts), int64(0)
	for _, d := range list {
		chunks = max(chunks, d.chunks)
	}
	for _, turn := range []struct {
		columns  int64
		back     bool // from who is asked to who asks
		announce int64
	}{{announce: 8}, {columns: 1}, {columns: f.pairWidth(), back: true}, {columns: f.pairWidth()}} {
		move := newFlow(l, f.Graph+f.Servers)
		for p, d := range list {
			for q := range parts {
				if p == q {
					continue
				}
				rows := d.rows * float64(parts[q].Vertices) / float64(max(f.Vertices-parts[p].Vertices, 1))
				bytes := size.Sum(int64(rows*float64(floats(turn.columns))), size.Product(chunks, turn.announce))
				if turn.back {
					move.add(q, p, bytes)
				} else {
					move.add(p, q, bytes)
				}
			}
		}
		for p := range move.messages {
			move.messages[p] *= chunks
		}
		seconds += move.seconds()
	}
	return seconds
}
