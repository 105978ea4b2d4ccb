package tune

import (
	"cmp"
	"slices"
)

// A trial is of mostContenders, each mostRounds epochs, and takes at most
// trialShare of the epochs that are left. Up to mostExtras others follow.
const (
	mostContenders = 3
	mostRounds     = 3
	trialShare     = 0.25
	mostExtras     = 3
)

// What is within alike of the fastest is as good, and then the most exact is
// taken; predictions may be wrong by doubt before they decide. Somebody more
// exact is tried who is that far behind; whoever is predicted to take hopeless
// times as long as the best is not.
const (
	alike    = 1.05
	doubt    = 1.10
	behind   = 1.25
	hopeless = 1.5
)

// trial is epochs with some of the candidates.
type trial struct {
	contenders []int // whose turns it is
	rounds     int
	extras     int         // that may follow
	measured   [][]float64 // by candidate: seconds of epochs
}

// begin prepares a trial; it is false where too few epochs are left for one.
func (t *trial) begin(contenders []int, candidates, left int) bool {
	affordable := int(trialShare * float64(left))
	*t = trial{contenders: contenders, rounds: min(mostRounds, affordable/len(contenders)), measured: make([][]float64, candidates)}
	if t.rounds == 0 {
		return false
	}
	t.extras = min(mostExtras, affordable/t.rounds-len(contenders))
	return len(contenders) > 1
}

// take counts an epoch of a contender and returns who is next; -1: all have had
// their turns.
func (t *trial) take(contender int, seconds float64) int {
	t.measured[contender] = append(t.measured[contender], seconds)
	next := t.contenders[(slices.Index(t.contenders, contender)+1)%len(t.contenders)]
	if len(t.measured[next]) == t.rounds {
		return -1
	}
	return next
}

// extend lets one more candidate have its turns, if there are any left. It returns
// the candidate, or -1.
func (t *trial) extend(candidate int) int {
	if candidate < 0 || t.extras == 0 {
		return -1
	}
	t.extras--
	t.contenders = []int{candidate}
	return candidate
}

// winner is the most exact of those that are as fast as the fastest.
func (t *trial) winner() int {
	fastest := -1
	for i, m := range t.measured {
		if len(m) > 0 && (fastest < 0 || typical(m) < typical(t.measured[fastest])) {
			fastest = i
		}
	}
	return slices.IndexFunc(t.measured, func(m []float64) bool {
		return len(m) > 0 && typical(m) <= alike*typical(t.measured[fastest])
	})
}

// typical is what epochs are compared by: between the median and the best, since
// a machine that does other things too only makes them longer.
func typical(m []float64) float64 { return (median(m) + slices.Min(m)) / 2 }

// mean is by how much epochs were longer than work, the mean of those tried.
func (t *trial) mean(work []float64) float64 {
	sum, n := 0.0, 0.0
	for i, m := range t.measured {
		if len(m) > 0 {
			sum, n = sum+typical(m)-work[i], n+1
		}
	}
	return sum / n
}

// squares is how far epochs were from base and work.
func (t *trial) squares(base float64, work []float64) float64 {
	sum := 0.0
	for i, m := range t.measured {
		if len(m) > 0 {
			d := typical(m) - base - work[i]
			sum += d * d
		}
	}
	return sum
}

// contend is who is tried: the most exact of those that may be as fast as the
// fastest; the fastest; the fastest of the more exact ones, if it is not far
// behind; and others as they are fast.
func contend(predicted []float64) []int {
	order := make([]int, len(predicted))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(predicted[i], predicted[j]) })
	least := predicted[order[0]]
	first := slices.IndexFunc(predicted, func(s float64) bool { return s <= doubt*least })
	list := []int{first}
	add := func(limit float64, from []int) {
		for _, i := range from {
			if len(list) < mostContenders && predicted[i] <= limit*least && !slices.Contains(list, i) {
				list = append(list, i)
			}
		}
	}
	add(1, order[:1])
	if i := slices.IndexFunc(order, func(i int) bool { return i < first }); i >= 0 {
		add(behind, order[i:i+1])
	}
	add(hopeless, order)
	return list
}
