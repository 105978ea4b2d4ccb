package simulate

import (
	"math"

	"siafu/ranks/schedule"
)

// Counts are the sizes that determine a rank's work and messages.
type Counts struct{ Vertices, Edges, Ghosts float64 }

func (c Counts) times(x float64) Counts { return Counts{x * c.Vertices, x * c.Edges, x * c.Ghosts} }

// Shares returns the counts of n ranks without a partition. They repeat the recorded ranks.
// Vertices and edges are divided by the number of ranks, ghosts by its power: with 1 ghosts
// decrease like vertices, with 0 their number per rank is constant.
func Shares(recorded []Counts, n int, power float64) []Counts {
	fewer := float64(len(recorded)) / float64(n)
	list := make([]Counts, n)
	for r := range list {
		c := recorded[r%len(recorded)]
		list[r] = Counts{fewer * c.Vertices, fewer * c.Edges, math.Pow(fewer, power) * c.Ghosts}
	}
	return list
}

// Factors multiply the times of tasks that are proportional to vertices, edges or ghosts.
type Factors Counts

// Scaled returns ranks with other counts. They repeat the recorded ranks. The time of each task
// is proportional to its vertices, edges or ghosts. Steps of weights and losses take the recorded
// time.
func (r *Recording) Scaled(recorded, counts []Counts) []*Rank {
	for _, k := range r.Ranks {
		k.tracks() // shared by the scaled ranks
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

// factor returns the factor on the time of a stage's tasks.
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
