package simulate

import (
	"math"

	"siafu/ranks/schedule"
)

// Counts are what a rank's work and messages are in proportion to.
type Counts struct{ Vertices, Edges, Ghosts float64 }

// Shares are the counts of n ranks where no partition is given: those of the recorded
// ranks in turns, with work divided by the number of ranks, and ghosts by that number
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

// Spread is how many rows each rank sends each other, where it is known only how many
// ghosts a rank has: they have as many owners each as any.
func Spread(counts []Counts) [][]float64 {
	list := make([][]float64, len(counts))
	for from := range list {
		list[from] = make([]float64, len(counts))
		for to, c := range counts {
			if to != from {
				list[from][to] = c.Ghosts / float64(len(counts)-1)
			}
		}
	}
	return list
}

// Scaled are the ranks of a recording as they would be with other counts: the outline
// of the recorded ranks in turns, each task's time in proportion to the vertices, edges
// or ghosts that it works on. Steps of weights and losses take as long as recorded.
func (r *Recording) Scaled(recorded, counts []Counts) []*Rank {
	var list []*Rank
	for n, c := range counts {
		of := n % len(r.Ranks)
		list = append(list, r.Ranks[of].scaled(recorded[of], c))
	}
	return list
}

func (k *Rank) scaled(was, is Counts) *Rank {
	by := k.factors(was, is)
	other := *k
	other.Epochs = nil
	for _, e := range k.Epochs {
		tasks := make([]float64, len(e.Tasks))
		for i, t := range e.Tasks {
			tasks[i] = t * by[i]
		}
		e.Tasks = tasks
		other.Epochs = append(other.Epochs, e)
	}
	return &other
}

// factors are what each task's time is multiplied by.
func (k *Rank) factors(was, is Counts) (list []float64) {
	for _, g := range k.Graphs() {
		for _, t := range g.Tasks() {
			switch t.Stage.Kind() {
			case schedule.Update.Kind():
				list = append(list, 1)
			case schedule.GatherOwn.Kind(), schedule.GatherBackward.Kind():
				list = append(list, ratio(is.Edges, was.Edges))
			case schedule.Send.Kind(), schedule.SendBackward.Kind():
				list = append(list, ratio(is.Ghosts, was.Ghosts))
			default:
				list = append(list, ratio(is.Vertices, was.Vertices))
			}
		}
	}
	return list
}

func ratio(is, was float64) float64 {
	if was == 0 {
		return 1
	}
	return is / was
}
