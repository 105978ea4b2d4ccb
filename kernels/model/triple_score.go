package model

// TripleScore is a score of an edge from vertex s to vertex o of relation r, given the rows h of the vertices and
// the row w of the relation. Empty: the dot product of h_s and h_o for every relation.
//
//	distmult  Σ_j h_sj w_rj h_oj (Yang et al. 2015, "Embedding entities and relations for learning and inference")
//	complex   Re Σ_j h_sj w_rj conj(h_oj) (Trouillon et al. 2016, "Complex embeddings for simple link
//	          prediction"): the first half of the columns are real parts, the second half imaginary parts
type TripleScore string

// Scores of triples that have weights.
const (
	DistMult TripleScore = "distmult"
	ComplEx  TripleScore = "complex"
)

// Query sets dst to the row whose dot product with the row of the other end is the score. row is that of
// the source or, if ofDst is set, of the destination. It is also the score's derivative with respect
// to the row of the other end.
func (t TripleScore) Query(dst, row, w []float32, ofDst bool) {
	switch half := len(row) / 2; t {
	case DistMult:
		for j := range dst {
			dst[j] = row[j] * w[j]
		}
	case ComplEx: // the complex product of row and w, or of row and conj(w)
		sign := float32(1)
		if ofDst {
			sign = -1
		}
		re, im, wr, wi := row[:half], row[half:2*half], w[:half], w[half:2*half]
		for j := range half {
			b := sign * wi[j]
			dst[j] = float32(re[j]*wr[j]) - float32(im[j]*b)
			dst[half+j] = float32(re[j]*b) + float32(im[j]*wr[j])
		}
	default:
		copy(dst, row)
	}
}

// Columns returns the number of columns that AddGrad divides among callers.
func (t TripleScore) Columns(width int) int {
	if t == ComplEx {
		return width / 2
	}
	return width
}

// AddGrad adds slope times the score's derivative with respect to w to the columns [lo, hi) of Columns in grad.
// src and dst are the rows of the two ends.
func (t TripleScore) AddGrad(grad, src, dst []float32, slope float32, lo, hi int) {
	if t == DistMult {
		for j := lo; j < hi; j++ {
			grad[j] += float32(slope * float32(src[j]*dst[j]))
		}
		return
	}
	half := len(src) / 2
	for j := lo; j < hi; j++ {
		a, b, c, d := src[j], src[half+j], dst[j], dst[half+j]
		grad[j] += float32(slope * (float32(a*c) + float32(b*d)))
		grad[half+j] += float32(slope * (float32(a*d) - float32(b*c)))
	}
}
