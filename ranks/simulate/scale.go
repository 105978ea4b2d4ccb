package simulate

import (
	"math"

	"siafu/ranks/schedule"
)

// Counts are the sizes that a rank's work and messages are proportional to.
type Counts struct{ Vertices, Edges, Ghosts float64 }

func (c Counts) times(x float64) Counts { return Counts{x * c.Vertices, x * c.Edges, x * c.Ghosts} }

// Shares returns the counts of n ranks where no partition is given: those of the recorded
// ranks interleaved, with work divided by the number of ranks, and ghosts by that number
// to a power: 1 where they become fewer as vertices do, 0 where each rank keeps as many.
func Shares(recorded []Counts, n int, power float64) []Counts {
	fewer := float64(len(recorded)) / float64(n)
	list := make([]Counts, n)
	for r := range list {
		c := recorded[r%len(recorded)]
		list[r] = Counts{fewer * c.Vertices, fewer * c.Edges, math.Pow(fewer, power) * c.Ghosts}
	}
	return list
}

// Factors are what the times of a rank's tasks are multiplied by: those of tasks that are
// in proportion to its vertices, edges or ghosts.
type Factors Counts

// Scaled returns the ranks of a recording as they would be with other counts: the outline
// of the recorded ranks interleaved, each task's time in proportion to the vertices, edges
// or ghosts that it works on. Steps of weights and losses take as long as recorded.
func (r *Recording) Scaled(recorded, counts []Counts) []*Rank {
	for _, k := range r.Ranks {
		k.tracks() // of all that are like it
		k.asyncTimes()
	}
	var list []*Rank
	for n, c := range counts {
		of, was := r.Ranks[n%len(r.Ranks)], recorded[n%len(r.Ranks)]
		other := *of
		other.scale = &Factors{ratio(c.Vertices, was.Vertices), ratio(c.Edges, was.Edges), ratio(c.Ghosts, was.Ghosts)}
		list = append(list, &other)
	}
	return list
}

// factor is what the time of a stage's tasks is multiplied by.
func (k *Rank) factor(s schedule.Stage) float64 {
	if k.scale == nil {
		return 1
	}
	switch s.Kind() {
	case schedule.Update.Kind():
		return 1
	case schedule.GatherOwn.Kind(), schedule.GatherBackward.Kind():
		return k.scale.Edges
	case schedule.Send.Kind(), schedule.SendBackward.Kind():
		return k.scale.Ghosts
	}
	return k.scale.Vertices
}

func ratio(is, was float64) float64 {
	if was == 0 {
		return 1
	}
	return is / was
}
