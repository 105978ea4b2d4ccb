package objective

// MostRanked is the largest K of Hits@K in Ranks.
const MostRanked = 10

// Ranks sums up the ranks of true vertices among candidates, one or two for each edge.
type Ranks struct {
	Count, Reciprocals float64
	Hits               [3]float64 // number of ranks of at most 1, 3 and 10
}

// Add adds the rank of a vertex with the given numbers of candidates of a higher and of an equal score. Among equal
// scores, the vertex has the mean rank.
func (r *Ranks) Add(above, equal int64) {
	rank := 1 + float64(above) + float64(equal)/2
	r.Count++
	r.Reciprocals += 1 / rank
	for i, k := range [...]float64{1, 3, MostRanked} {
		if rank <= k {
			r.Hits[i]++
		}
	}
}

// Set sets MRR and Hits@1, 3 and 10 of m: the mean reciprocal rank, and the fractions of ranks of at most K (Bordes
// et al. 2013, "Translating embeddings for modeling multi-relational data", section 4).
func (r *Ranks) Set(m *Metrics) {
	mean := func(sum float64) *float64 {
		x := sum / r.Count
		return &x
	}
	m.MRR, m.Hits1, m.Hits3, m.Hits10 = mean(r.Reciprocals), mean(r.Hits[0]), mean(r.Hits[1]), mean(r.Hits[2])
}
