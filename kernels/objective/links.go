package objective

import (
	"math"
	"slices"
)

// mostFactors is the number of factors, each from 1 to 2, in one product. The product stays far
// below the largest float64.
const mostFactors = 256

// PairLosses returns the sum of the binary cross entropies of pairs. Scores are the logits of
// edges: the loss is -log σ(s) for an edge and -log σ(-s) for a pair without an edge (Kipf &
// Welling, "Variational graph auto-encoders", 2016, section 2). It replaces each score by its
// derivative times scale.
//
// With s negated for edges, a pair costs max(s, 0) + log(1 + e^-|s|). Logarithms are added as
// the logarithm of a product; each factor adds a relative error of at most 2^-52.
func PairLosses(scores []float32, edge bool, scale float64) (loss float64) {
	sign := 1.0
	if edge {
		sign = -1
	}
	product, factors := 1.0, 0
	for i, score := range scores {
		s := sign * float64(score)
		e := math.Exp(-math.Abs(s))
		slope := 1 / (1 + e)
		if s < 0 {
			slope *= e
		}
		loss += max(s, 0)
		product *= 1 + e
		if factors++; factors == mostFactors {
			loss, product, factors = loss+math.Log(product), 1, 0
		}
		scores[i] = float32(scale * sign * slope)
	}
	return loss + math.Log(product)
}

// Histogram counts scores of pairs without an edge and of edges, in classes at most 1/32 wide
// relative to the score. Ranks add their histograms.
type Histogram [2 * classes]int64

// classes of scores: sign, exponent and five bits more.
const classes = 1 << 14

// ordered returns an integer that increases with the score.
func ordered(score float32) uint32 {
	bits := math.Float32bits(score)
	if bits>>31 == 1 {
		return ^bits
	}
	return bits | 1<<31
}

// Count counts scores of edges, or of pairs without an edge.
func (h *Histogram) Count(scores []float32, edges bool) {
	of := h[int(number(edges))*classes:][:classes]
	for _, score := range scores {
		of[ordered(score)>>18]++
	}
}

// AUC returns ROCAUC of the counted scores, with scores of one class equal. The error is at most
// half the fraction of pairs (edge, no edge) within one class. It returns 0 if either kind has
// no scores.
func (h *Histogram) AUC() float64 {
	var without, edges int64
	wins := 0.0
	for c := range classes {
		not, is := h[c], h[classes+c]
		wins += float64(is) * (float64(without) + float64(not)/2)
		without, edges = without+not, edges+is
	}
	return wins / max(float64(without)*float64(edges), 1)
}

// Reciprocal returns one over the rank of an edge's score among others, in the middle of equal
// scores, as OGB's evaluator of ogbl-citation2.
func Reciprocal(score float32, others []float32) float64 {
	above, equal := 0, 0
	for _, s := range others {
		switch {
		case s > score:
			above++
		case s == score:
			equal++
		}
	}
	return 1 / (1 + float64(above) + float64(equal)/2)
}

// hitsAt contains the K of Hits@K.
var hitsAt = [...]int{10, 20, 50, 100}

// Links returns the metrics of edge scores against scores of pairs without an edge. AUC is
// ROCAUC; average precision is scikit-learn's average_precision_score. Hits@K follows OGB's
// evaluators of ogbl-collab, ogbl-ddi and ogbl-ppa: the fraction of edges that score higher than
// the K-th highest pair without an edge, 1 if there are fewer than K such pairs. It sorts both
// lists.
func Links(edges, without []float32) (m Metrics) {
	if len(edges) == 0 {
		return m
	}
	sortDown(edges)
	sortDown(without)
	m.Links = int64(len(edges))
	auc, precision := areas(edges, without)
	m.ROCAUC, m.AP = &auc, &precision
	for i, to := range []**float64{&m.Hits10, &m.Hits20, &m.Hits50, &m.Hits100} {
		share := 1.0
		if k := hitsAt[i]; k <= len(without) {
			share = float64(above(edges, without[k-1])) / float64(len(edges))
		}
		*to = &share
	}
	return m
}

// above returns the number of scores above one. scores must descend.
func above(scores []float32, one float32) int {
	at, _ := slices.BinarySearchFunc(scores, one, func(s, one float32) int {
		if s > one {
			return -1
		}
		return 1
	})
	return at
}

// areas returns the areas under the ROC and the precision-recall curve of descending scores.
func areas(edges, without []float32) (auc, precision float64) {
	lost := 0.0 // pairs with a higher score without an edge; equal scores count half
	for lo, hi := 0, 0; lo < len(edges); lo = hi {
		s := edges[lo]
		for hi < len(edges) && !(edges[hi] < s) {
			hi++
		}
		higher := above(without, s)
		equal := 0
		for higher+equal < len(without) && without[higher+equal] == s {
			equal++
		}
		lost += float64(hi-lo) * (float64(higher) + float64(equal)/2)
		precision += float64(hi-lo) * float64(hi) / float64(hi+higher+equal)
	}
	all := float64(len(edges))
	return 1 - lost/all/float64(max(len(without), 1)), precision / all
}
