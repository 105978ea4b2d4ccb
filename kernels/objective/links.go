package objective

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"siafu/internal/elementary"
)

// mostFactors is the maximum number of factors in one product. Each factor is at most 2, so the
// product is far below the largest float64.
const mostFactors = 256

// PairLosses returns the sum of the binary cross entropies of vertex pairs. A score s is the logit
// that the pair has an edge. The loss is -log σ(s) for a pair with an edge and -log σ(-s) for a pair
// without (Kipf & Welling, "Variational graph auto-encoders", 2016, section 2). PairLosses replaces
// each score by the derivative of the loss times scale.
//
// Let s be negated for pairs with an edge. The loss of a pair is then max(s, 0) + log(1 + e^-|s|).
// A sum of logarithms is computed as the logarithm of a product. Each factor adds a relative error
// of at most 2^-52.
func PairLosses(scores []float32, edge bool, scale float64) (loss float64) {
	sign := 1.0
	if edge {
		sign = -1
	}
	product, factors := 1.0, 0
	for i, score := range scores {
		s := sign * float64(score)
		e := elementary.Exp(-math.Abs(s))
		slope := 1 / (1 + e)
		if s < 0 {
			slope *= e
		}
		loss += max(s, 0)
		product *= 1 + e
		if factors++; factors == mostFactors {
			loss, product, factors = loss+elementary.Log(product), 1, 0
		}
		scores[i] = float32(scale * sign * slope)
	}
	return loss + elementary.Log(product)
}

// Histogram counts the scores of pairs without an edge, and then the scores of edges. Scores in the
// same class differ by at most 1/32 of their value. Ranks add their histograms.
type Histogram [2 * classes]int64

// classes is the number of classes of scores. The class of a score consists of its sign, its
// exponent and the five highest bits of its fraction.
const classes = 1 << 14

// ordered returns an integer that increases with the score.
func ordered(score float32) uint32 {
	bits := math.Float32bits(score)
	if bits>>31 == 1 {
		return ^bits
	}
	return bits | 1<<31
}

// Count adds scores to the histogram: scores of edges, or of pairs without an edge.
func (h *Histogram) Count(scores []float32, edges bool) {
	of := h[int(number(edges))*classes:][:classes]
	for _, score := range scores {
		of[ordered(score)>>18]++
	}
}

// AUC returns the ROC AUC of the counted scores. Scores in the same class count as equal. Consider
// all combinations of an edge and a pair without an edge. The error is at most half of the fraction
// of combinations with both scores in one class. AUC returns 0 if there are no scores of edges, or
// none of pairs without an edge.
func (h *Histogram) AUC() float64 {
	var without, edges int64
	wins := 0.0
	for c := range classes {
		not, is := h[c], h[classes+c]
		wins += float64(float64(is) * (float64(without) + float64(not)/2))
		without, edges = without+not, edges+is
	}
	return wins / max(float64(without)*float64(edges), 1)
}

// Reciprocal returns 1 divided by the rank of an edge's score among the scores in others. Among
// equal scores, the edge has the middle rank, as in OGB's evaluator of ogbl-citation2.
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

// HitsNeed returns the number of pairs without an edge that the metric of this name needs, 0 if it is not
// Hits@K.
func HitsNeed(metric string) int64 {
	k, _ := strconv.ParseInt(strings.TrimPrefix(metric, "hits@"), 10, 64)
	return k
}

// hitsAt contains the K of Hits@K.
var hitsAt = [...]int{10, 20, 50, 100}

// Links returns the metrics of link prediction. edges are the scores of edges, without the scores of
// pairs without an edge. Links sorts both lists. ROC AUC is defined as in ROCAUC, and average
// precision as in scikit-learn's average_precision_score. Hits@K follows OGB's evaluators of
// ogbl-collab, ogbl-ddi and ogbl-ppa: the fraction of edges with a higher score than the K-th highest
// score in without. It is undefined if without has fewer than K scores.
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
		if k := hitsAt[i]; k <= len(without) {
			share := float64(above(edges, without[k-1])) / float64(len(edges))
			*to = &share
		}
	}
	return m
}

// above returns the number of scores that are higher than one. scores must be descending.
func above(scores []float32, one float32) int {
	at, _ := slices.BinarySearchFunc(scores, one, func(s, one float32) int {
		if s > one {
			return -1
		}
		return 1
	})
	return at
}

// areas returns the area under the ROC curve and the area under the precision-recall curve. Both
// lists of scores must be descending.
func areas(edges, without []float32) (auc, precision float64) {
	// lost is the number of combinations of an edge and a pair without an edge in which the pair has
	// the higher score. Equal scores count half.
	lost := 0.0
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
		lost += float64(float64(hi-lo) * (float64(higher) + float64(equal)/2))
		precision += float64(hi-lo) * float64(hi) / float64(hi+higher+equal)
	}
	all := float64(len(edges))
	return 1 - lost/all/float64(max(len(without), 1)), precision / all
}
