package forecast

import (
	"siafu/graph"
	"siafu/graph/partition"
	"siafu/internal/size"
	"siafu/ranks/engine"
)

// pairs appends the memory of link prediction on a rank in addition to its network: gradients
// of embeddings, and heap memory. The heap has the directory of vertices, rows of other ranks
// (ghosts, or ends of sampled pairs), and scores of held-out edges, which rank 0 gathers.
// Samples are estimated by their mean. Memory that each chunk of pairs allocates again counts
// twice, because the collector lets the heap double.
func (f *Forecast) pairs(m *Memory, rank int, p partition.RankReport, held graph.LinkCounts) {
	width, n := f.pairWidth(), max(f.Vertices, 1)
	most := max(held.Val, held.Test, held.NotVal, held.NotTest)
	m.add("held edges", Mapped, floats(2, held.Val+held.Test+held.NotVal+held.NotTest), floats(held.Val+held.Test, held.Ranked))
	if !f.Predicts {
		m.add(engine.PairGradients, Array, floats(p.Vertices, width))
	}
	if f.Config.GPUsGather() {
		m.add("embeddings here", Heap, floats(p.Vertices, width))
	}
	// What is owned is told twice over, and to each rank.
	m.add("directory of vertices", Heap, floats(2, n), floats(p.Vertices, int64(f.Graph)), floats(3, p.Ghosts+p.SendRows))
	share := func(pairs int64) int64 { return int64(float64(pairs) * float64(p.Vertices) / float64(n)) }
	scored := max(share(held.Train), share(most), share(size.Product(held.Test, held.Ranked)))
	at := min(scored, engine.PairsPerChunk)
	wanted, given := metOf(at, n, n-p.Vertices), int64(f.Graph-1)*metOf(at, n, p.Vertices)
	rows := max(wanted, p.Ghosts)
	m.add("rows of pairs", Heap, floats(2, rows, width), floats(4, p.SendRows, width), floats(4, given, width), size.Product(16, at), floats(6, wanted+given))
	if !f.Predicts { // gradients of chunks of pairs, where each has rows of its own
		m.add("gradients of single pairs", Heap, floats(2, min(size.Product(at, width), engine.FloatsPerChunk)))
	}
	if n := engine.HeadFloats(f.Net); n > 0 {
		m.add("perceptron of pairs", Heap, floats(n))
	}
	if f.Net.ScoreDropout > 0 && !f.Predicts {
		m.add("ids of pairs", Heap, floats(2, at))
	}
	scores := size.Product(16, share(most)) // places, rows and scores
	if rank == 0 {
		scores = size.Sum(scores, size.Product(32, most)) // of all ranks, as they come, together and sorted
	}
	m.add("scores of pairs", Heap, scores, size.Product(12, min(share(size.Product(held.Test, held.Ranked)), scored)))
}

// metOf returns the mean of how many of some vertices, among n, so many draws meet.
func metOf(draws, n, of int64) int64 {
	mean, _ := met(draws, n, of)
	return int64(mean)
}
