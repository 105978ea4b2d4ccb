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
	// Owners are stored twice, and once per rank.
	m.add("directory of vertices", Heap, floats(2, n), floats(p.Vertices, int64(f.Graph)), floats(3, p.Ghosts+p.SendRows))
	share := func(pairs int64) int64 { return int64(float64(pairs) * float64(p.Vertices) / float64(n)) }
	train := share(held.Train)
	if f.Triples {
		m.add("triples", Heap, floats(3, train), size.Product(64, held.Val+held.Test), floats(p.Vertices),
			engine.QuestionBytes(f.Vertices, width))
		train = size.Product(train, 2*(1+int64(f.Config.LinkNegatives))) // both ends
	}
	scored := max(train, share(most), share(size.Product(held.Test, held.Ranked)))
	at := min(scored, engine.PairsPerChunk)
	wanted, given := meanDistinct(at, n, n-p.Vertices), int64(f.Graph-1)*meanDistinct(at, n, p.Vertices)
	rows := max(wanted, p.Ghosts)
	m.add("rows of pairs", Heap, floats(2, rows, width), floats(4, p.SendRows, width), floats(4, given, width),
		size.Product(16, at), floats(6, wanted+given))
	if !f.Predicts { // gradients of a chunk's pairs
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
		scores = size.Sum(scores, size.Product(32, most)) // received scores of all ranks, merged and sorted
	}
	m.add("scores of pairs", Heap, scores, size.Product(12, min(share(size.Product(held.Test, held.Ranked)), scored)))
}

// meanDistinct returns the mean number of distinct vertices, among some of n, that a number of draws
// reaches.
func meanDistinct(draws, n, of int64) int64 {
	mean, _ := distinct(draws, n, of)
	return int64(mean)
}
