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
	Deviation int64 `json:"deviation_bytes"` // standard deviation of Sent between epochs
}

// PairTraffic returns the traffic of an epoch of link prediction on these parts, nil for other
// tasks.
func (f *Forecast) PairTraffic(parts []partition.RankReport) *PairTraffic {
	if f.Links == nil {
		return nil
	}
	t, spread := new(PairTraffic), 0.0
	for _, d := range f.pairSamples(parts) {
		t.Sent = size.Sum(t.Sent, floats(int64(math.Round(d.rows)), f.sampledColumns()))
		spread += d.spread
	}
	for _, p := range parts {
		if f.Triples {
			break
		}
		t.Sent = size.Sum(t.Sent, floats(p.Ghosts, f.pairWidth()))
		if f.Directed { // otherwise each end's rank has both rows and computes its own gradient
			t.Sent = size.Sum(t.Sent, floats(p.Ghosts, f.pairWidth()))
		}
	}
	t.Deviation = int64(math.Round(float64(floats(f.sampledColumns())) * math.Sqrt(spread)))
	return t
}

// pairWidth returns the width of embeddings.
func (f *Forecast) pairWidth() int64 { return int64(f.Net.Dims[f.Net.Layers()]) }

// sampledColumns returns the numbers that are sent for a sampled end: its id, its row and its
// gradient.
func (f *Forecast) sampledColumns() int64 { return 1 + 2*f.pairWidth() }

// pairSample has a part's sampled pairs of an epoch. The pairs are sampled in chunks. Each chunk
// fetches the distinct rows that it needs from other parts. rows is the mean of their number, and
// spread its variance.
type pairSample struct {
	chunks       int64
	rows, spread float64
}

// pairSamples returns the samples of all parts. An epoch samples one pair per training edge, and
// vertices have equal shares (kernels.Share). Of triples, a chunk also fetches the other ends of edges, at most all
// ghosts, and samples ends of the triples of a part.
//
// Design note: rounding gives some vertices a pair more or less, depending on their ids. The
// effect on the sum over parts is below the standard deviation.
func (f *Forecast) pairSamples(parts []partition.RankReport) []pairSample {
	list, edges, n := make([]pairSample, len(parts)), int64(0), f.Vertices
	for _, p := range parts {
		edges = size.Sum(edges, p.Edges)
	}
	all := edges
	if !f.Directed {
		edges /= 2
	}
	if n < 2 {
		return list
	}
	at, fetched := engine.MaxChunkPairs(f.Net), int64(0)
	for k, p := range parts {
		pairs := int64(math.Round(float64(edges) * float64(p.Vertices) / float64(n)))
		if f.Triples {
			negatives := max(f.Config.LinkNegatives, 1)
			at, fetched = int64(negatives*engine.ChunkTriples(negatives)), p.Ghosts
			pairs = int64(negatives) * int64(math.Round(float64(f.Links.Train)*float64(p.Edges)/float64(max(all, 1))))
		}
		full, rest := pairs/at, pairs%at
		rows, spread := distinct(at, n, n-p.Vertices-fetched)
		last, more := distinct(rest, n, n-p.Vertices-fetched)
		rows += float64(fetched)
		if rest > 0 {
			last += float64(fetched)
		}
		list[k] = pairSample{full, float64(full)*rows + last, float64(full)*spread + more}
		if rest > 0 {
			list[k].chunks++
		}
	}
	return list
}

// distinct returns mean and variance of the number of distinct vertices, of the given ones, that a
// number of draws reaches. Each draw starts at a vertex of a part and reaches each of the n-1
// others with the same probability.
func distinct(draws, n, of int64) (mean, variance float64) {
	if draws <= 0 || of <= 0 {
		return 0, 0
	}
	k, some := float64(draws), float64(of)
	missed := math.Exp(k * math.Log1p(-1/float64(n-1)))
	mean, variance = some*(1-missed), some*missed*(1-missed)
	if of > 1 { // negative correlation: a draw misses two vertices with probability 1-2/(n-1)
		variance += some * (some - 1) * missed * missed * math.Expm1(k*math.Log1p(-1/float64(n-2)/float64(n-2)))
	}
	return mean, max(variance, 0)
}

// pairSeconds returns the seconds of an epoch for the rows of pairs. No work hides them, because
// they are sent between the last layer and its gradients.
func (f *Forecast) pairSeconds(parts []partition.RankReport, l Link) float64 {
	if f.Links == nil || len(parts) < 2 {
		return 0
	}
	if f.Triples {
		return f.sampleSeconds(parts, l)
	}
	return f.edgeSeconds(parts, l) + f.sampleSeconds(parts, l)
}

// edgeSeconds returns the seconds for the ends of the graph's edges.
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

// sampleSeconds returns the seconds for the ends of sampled pairs. For each chunk, ranks exchange
// the number of requested rows, their ids, the rows and the gradients. The bytes of a part are
// assumed to be equal in all its chunks.
func (f *Forecast) sampleSeconds(parts []partition.RankReport, l Link) (seconds float64) {
	list, chunks := f.pairSamples(parts), int64(0)
	for _, d := range list {
		chunks = max(chunks, d.chunks)
	}
	for _, turn := range []struct {
		columns  int64
		back     bool // from the requested part to the requesting one
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
