package objective

import (
	"math"
	"slices"
)

// mostFactors is how many numbers of 1 to 2 are multiplied: far fewer than a float64 has
// powers of two for.
const mostFactors = 256

// PairLosses returns the sum of the binary cross entropies of scores of pairs, which are the logits
// of edges: -log σ(s) of an edge and -log σ(-s) of none (Kipf & Welling, "Variational graph
// auto-encoders", 2016, section 2). It replaces the scores by its derivatives times scale.
//
// With s turned round for edges, a pair has max(s, 0) + log(1 + e^-|s|); the logarithms are
// added as those of products, each of which is off by no more than 2^-52 a factor.
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

// Histogram counts scores, of pairs without an edge and of edges, in classes of numbers that
// differ by a 32nd at most. Ranks add up theirs.
type Histogram [2 * classes]int64

// classes of scores: sign, exponent and five bits more.
const classes = 1 << 14

// ordered returns a number that grows with the score.
func ordered(score float32) uint32 {
	bits := math.Float32bits(score)
	if bits>>31 == 1 {
		return ^bits
	}
	return bits | 1<<31
}

// Count counts scores of one kind.
func (h *Histogram) Count(scores []float32, edges bool) {
	of := h[int(number(edges))*classes:][:classes]
	for _, score := range scores {
		of[ordered(score)>>18]++
	}
}

// AUC is ROCAUC of what was counted, where scores of one class are equal: off by no more
// than half of the pairs of an edge and none in one class. 0 where one kind is missing.
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

// Reciprocal is one over the rank of an edge's score among it and others, in the middle of
// those that are equal, as OGB's evaluator of ogbl-citation2 has it.
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

// hitsAt are the K of Hits@K.
var hitsAt = [...]int{10, 20, 50, 100}

// Links returns the metrics of edges by their scores, beside pairs without an edge: AUC as
// ROCAUC; average precision as scikit-learn's average_precision_score; Hits@K as OGB's
// evaluators of ogbl-collab, ogbl-ddi and ogbl-ppa, the share of edges with a higher score
// than the K-th highest without, and 1 where there are fewer than K. It sorts both lists.
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

// above is how many of scores, which descend, are above one.
func above(scores []float32, one float32) int {
	at, _ := slices.BinarySearchFunc(scores, one, func(s, one float32) int {
		if s > one {
			return -1
		}
		return 1
	})
	return at
}

// areas are those under the curves of true over false positives, and of precision over
// recall, of scores that descend.
func areas(edges, without []float32) (auc, precision float64) {
	lost := 0.0 // pairs of an edge and none with a higher score, equal ones half
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
