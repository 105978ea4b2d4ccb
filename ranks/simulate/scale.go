package simulate

import (
	"math"

	"siafu/ranks/engine"
	"siafu/ranks/schedule"
)

// Counts has the sizes to which a rank's work and messages are proportional.
type Counts struct{ Vertices, Edges, Ghosts float64 }

func (c Counts) times(x float64) Counts { return Counts{x * c.Vertices, x * c.Edges, x * c.Ghosts} }

// Shares estimates the counts of n ranks without a partition. It repeats the recorded ranks in
// turn. Work is divided by the ratio of the numbers of ranks, and ghosts by this ratio to a
// power: with 1 they decrease like vertices, with 0 each rank keeps its number of ghosts.
func Shares(recorded []Counts, n int, power float64) []Counts {
	fewer := float64(len(recorded)) / float64(n)
	list := make([]Counts, n)
	for r := range list {
		c := recorded[r%len(recorded)]
		list[r] = Counts{fewer * c.Vertices, fewer * c.Edges, math.Pow(fewer, power) * c.Ghosts}
	}
	return list
}

// Factors has the factors of task times, for tasks whose time is proportional to vertices,
// edges or ghosts.
type Factors Counts

// Scaled models ranks with other counts. It repeats the outlines of the recorded ranks in turn
// and scales each task's time by its vertices, edges or ghosts. Steps of weights and losses
// take as long as recorded.
func (r *Recording) Scaled(recorded, counts []Counts) []*Rank {
	for _, k := range r.Ranks {
		k.tracks() // computed once for all copies
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

// factor returns the factor of the time of a stage's tasks.
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

// recut returns the rank with other tasks. With fused, stages without a gather between them are
// one task (Dorylus, §6). The rank has the given number of intervals; each takes its fraction of
// the recorded intervals that it overlaps. It fetches no files.
func (k *Rank) recut(fused bool, intervals int) *Rank {
	other := *k
	other.Outline.Fused, other.Outline.Intervals = fused || k.Outline.Fused, intervals
	other.made, other.pace, other.Epochs = nil, nil, nil
	for n, e := range k.Epochs {
		e.Fetches = nil
		if len(e.Tasks) == 0 { // bounded asynchrony: stages are fused at run time
			other.pace = append(other.pace, k.divided(k.pace[n], intervals))
		} else {
			e.Tasks = other.tasks(k.divided(k.stages(&e), intervals))
		}
		other.Epochs = append(other.Epochs, e)
	}
	return &other
}

// stages returns the work of an epoch's tasks.
func (k *Rank) stages(e *Epoch) map[taskKey]Work {
	times := map[taskKey]Work{}
	for _, track := range k.tracks() {
		for _, t := range track.Tasks() {
			times[keyIn(t)] = e.Tasks[track.place[t.Ref]]
		}
	}
	return times
}

// divided returns the times for another number of intervals. Times of whole ranks are unchanged.
func (k *Rank) divided(times map[taskKey]Work, intervals int) map[taskKey]Work {
	was := k.Outline.Intervals
	if intervals == was {
		return times
	}
	list := map[taskKey]Work{}
	for at, takes := range times {
		if at.interval == schedule.Whole || engine.OfGhosts(at.stage) {
			list[at] = takes
			continue
		}
		for i := range intervals {
			lo, hi := float64(i)/float64(intervals), float64(i+1)/float64(intervals)
			common := min(hi, float64(at.interval+1)/float64(was)) - max(lo, float64(at.interval)/float64(was))
			if common > 0 {
				part := taskKey{at.stage, at.layer, i}
				list[part] = list[part].plus(takes.times(common * float64(was)))
			}
		}
	}
	return list
}

// tasks returns the work of an epoch's tasks, from the work of their stages.
func (k *Rank) tasks(times map[taskKey]Work) (list []Work) {
	for _, track := range k.tracks() {
		for _, t := range track.Tasks() {
			var sum Work
			for _, t := range track.Stages(t) {
				sum = sum.plus(times[keyIn(t)])
			}
			list = append(list, sum)
		}
	}
	return list
}
