package runfolder

import (
	"cmp"
	"slices"

	"siafu/graph"
	"siafu/kernels/objective"
)

// MostClasses is the maximal number of classes in Scores.
const MostClasses = 200

// Scores has the metrics of each split; null for an empty split.
type Scores struct {
	// Classes are the names of the classes or labels in each PerClass, in the same order: all
	// classes, or the MostClasses with the most vertices.
	Classes []string `json:"classes,omitempty"`
	// OfClasses is the number of all classes, 0 if Classes has all.
	OfClasses int `json:"of_classes,omitempty"`

	Train *objective.Metrics `json:"train"`
	Val   *objective.Metrics `json:"val"`
	Test  *objective.Metrics `json:"test"`
}

// NewScores returns the scores for metrics indexed by split value, or nil without metrics. name
// returns the name of a class.
func NewScores(of []objective.Metrics, name func(class int64) string) *Scores {
	if of == nil {
		return nil
	}
	s := &Scores{}
	for split, to := range map[int]**objective.Metrics{graph.SplitTrain: &s.Train, graph.SplitVal: &s.Val, graph.SplitTest: &s.Test} {
		if m := of[split]; m.Vertices+m.Links > 0 {
			*to = &m
		}
	}
	shown := s.largest()
	for _, c := range shown {
		s.Classes = append(s.Classes, name(int64(c)))
	}
	for _, m := range s.Splits() {
		if m.PerClass != nil && len(m.PerClass.F1) > len(shown) {
			s.OfClasses = len(m.PerClass.F1)
			m.PerClass = m.PerClass.Of(shown)
		}
	}
	return s
}

// Split is a split with its metrics.
type Split struct {
	Name string
	*objective.Metrics
}

// Splits returns the non-empty splits: train, val and test, in this order.
func (s *Scores) Splits() []Split {
	if s == nil {
		return nil
	}
	return slices.DeleteFunc([]Split{{"train", s.Train}, {"val", s.Val}, {"test", s.Test}}, func(s Split) bool { return s.Metrics == nil })
}

// isConsistent reports whether each split has metrics for exactly the classes in Classes. A summary
// file may violate this.
func (s *Scores) isConsistent() bool {
	for _, m := range s.Splits() {
		p, n := m.PerClass, len(s.Classes)
		if p == nil {
			continue
		}
		matrix := len(p.Confusion) == 0 || len(p.Confusion) == n
		if !matrix || len(p.Precision) != n || len(p.Recall) != n || len(p.F1) != n || len(p.Support) != n || len(p.Predicted) != n {
			return false
		}
	}
	return true
}

// largest returns the classes with the most vertices in all splits, at most MostClasses, in
// ascending order.
func (s *Scores) largest() []int {
	var support []int64
	for _, m := range s.Splits() {
		if m.PerClass == nil {
			continue
		}
		support = append(support, make([]int64, len(m.PerClass.Support)-len(support))...)
		for c, n := range m.PerClass.Support {
			support[c] += n
		}
	}
	return mostFrequent(support, MostClasses)
}

// mostFrequent returns the indices of the most largest counts, in ascending order.
func mostFrequent(counts []int64, most int) []int {
	places := make([]int, len(counts))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
	places = places[:min(most, len(places))]
	slices.Sort(places)
	return places
}
