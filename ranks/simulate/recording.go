package simulate

import (
	"cmp"
	"slices"

	"siafu/internal/fault"
	"siafu/ranks/engine"
	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

const op = "bench simulate"

// Recording has the epochs of a run, read from its timeline.
type Recording struct {
	Info    map[string]string
	Ranks   []*Rank // graph ranks
	Epochs  []int   // that all ranks have whole, ascending
	First   bool    // the first epoch is left out
	Fused   bool    // tensor tasks are of several stages
	Servers int
	Server  float64 // seconds that a server works for an epoch
	Arrival float64 // seconds from when rows had been sent to when those who waited went on
}

// Rank is a graph rank: its tasks, and how long they took.
type Rank struct {
	Outline engine.Outline
	Split   bool    // the backward pass begins when losses have been summed over ranks
	Workers int     // that were recorded
	Epochs  []Epoch // by place in Recording.Epochs
	Use     Use     // as recorded, of an epoch

	gap   float64  // seconds from a task's end to the next one's begin, the median
	scale *Factors // nil: as recorded
	made  []*track // by Graphs
	pace  []map[taskKey]float64
}

// Epoch is the seconds of one epoch's tasks, without what they waited.
type Epoch struct {
	Pull, Score, Flush float64   // weights come, losses are summed, gradients are
	Tasks              []float64 // those of the outline's graphs, in the order of their making
	Gap, Left          float64   // from a task's end to the next one's begin, the mean; and before the steps above, in all
}

// Use divides a rank's time by use, in seconds per epoch: means over epochs.
type Use struct {
	Span float64
	Busy float64 // in tasks, the mean over workers
	Rows float64 // without one, while rows of others were awaited, the mean over workers
	Sums float64 // waiting for weights, losses and gradients of others, between the tasks of layers
}

// Idle returns the share of an epoch in which a worker had no task.
func (u Use) Idle() float64 {
	if u.Span <= 0 {
		return 0
	}
	return max(0, 1-u.Busy/u.Span)
}

// Graphs returns the passes of tasks that the rank walks in an epoch, in their order.
func (r *Rank) Graphs() []engine.PassGraph {
	if r.Split {
		return []engine.PassGraph{r.Outline.Forward(), r.Outline.Backward()}
	}
	return []engine.PassGraph{r.Outline.Epoch()}
}

// track is a pass and where its tasks' times are.
type track struct {
	engine.PassGraph
	place map[int32]int // by Ref: in Epoch.Tasks
}

// tracks are those of Graphs, which ranks that are like this one share.
func (r *Rank) tracks() []*track {
	if r.made != nil {
		return r.made
	}
	n := 0
	for _, g := range r.Graphs() {
		t := &track{g, map[int32]int{}}
		for _, task := range g.Tasks() {
			t.place[task.Ref] = n
			n++
		}
		r.made = append(r.made, t)
	}
	return r.made
}

// key is what a timeline says of a task. Tasks with the same key are in the order of
// their making.
type key struct {
	kind            string
	layer, interval int
}

func keyOf(e *trace.Event) key { return key{e.Task, e.Layer, e.Interval} }

// Record takes the tasks of a timeline; fused says that its tensor tasks were of several
// stages. Faults have kind Config where it is of another mode, Data where it has no whole
// epoch or not the tasks of one; path names it.
func Record(f *trace.File, path string, fused bool) (*Recording, error) {
	const remedy = "record a run with --mode pipe, nopipe or async, --refresh always and --batch full, one part a rank, --tensor cpu or lambda, and --norm off or layer"
	mode := f.Info["mode"]
	if mode != "pipe" && mode != "nopipe" && mode != async || f.Info["ranks"] != "" {
		return nil, fault.New(fault.Config, op, path, "it is the timeline of --mode %s%s", mode, partsOf(f)).Then(remedy)
	}
	r := &Recording{Info: f.Info, Fused: fused}
	graph, servers := eventsOf(f)
	if r.choose(graph); len(r.Epochs) == 0 {
		return nil, fault.New(fault.Data, op, path, "no epoch is complete on every graph rank").
			Then("record 2 epochs or more")
	}
	read := r.rank
	if r.paced() {
		read = r.asyncRank
	} else {
		r.Arrival = arrival(graph, r.Epochs)
	}
	for n, list := range graph {
		rank, err := read(list)
		if err != nil {
			return nil, fault.New(fault.Data, op, path, "rank %d: %v", n, err).Then(remedy)
		}
		rank.Outline.Ghosts = rank.Outline.Ghosts || r.paced() && len(graph) > 1
		r.Ranks = append(r.Ranks, rank)
	}
	r.Servers = len(servers)
	for _, list := range servers {
		for _, e := range list {
			if slices.Contains(r.Epochs, e.Epoch) {
				r.Server += seconds(&e) / float64(len(r.Epochs)*r.Servers)
			}
		}
	}
	return r, nil
}

// paced reports whether the run was one of bounded asynchrony.
func (r *Recording) paced() bool { return r.Info["mode"] == async }

// eventsOf returns the events of each rank in the order of their begin. Where older ones
// were dropped, the first epoch that is left lacks some, and is left out.
func eventsOf(f *trace.File) (graph, servers [][]trace.Event) {
	byRank := map[int][]trace.Event{}
	for _, e := range f.Events {
		byRank[e.Rank] = append(byRank[e.Rank], e)
	}
	for _, p := range f.Processes {
		list := byRank[p.Rank]
		slices.SortStableFunc(list, func(x, y trace.Event) int { return cmp.Compare(x.Start, y.Start) })
		if p.Dropped > 0 && len(list) > 0 {
			first := list[0].Epoch
			list = slices.DeleteFunc(list, func(e trace.Event) bool { return e.Epoch == first })
		}
		if p.Role == "graph" {
			graph = append(graph, list)
		} else {
			servers = append(servers, list)
		}
	}
	return graph, servers
}

func partsOf(f *trace.File) string {
	if f.Info["ranks"] == "" {
		return ""
	}
	return ", and its ranks carry several parts"
}

// choose finds the epochs that were trained whole on all ranks, without the first,
// which touches memory for the first time, where there are others.
func (r *Recording) choose(graph [][]trace.Event) {
	count := map[int]int{}
	for _, list := range graph {
		seen := map[int]bool{}
		for _, e := range list {
			if e.Task == schedule.EmitBackward.Kind() && e.Epoch > 0 && !seen[e.Epoch] {
				seen[e.Epoch] = true
				count[e.Epoch]++
			}
		}
	}
	for epoch, n := range count {
		if n == len(graph) {
			r.Epochs = append(r.Epochs, epoch)
		}
	}
	slices.Sort(r.Epochs)
	if len(r.Epochs) > 1 && r.Epochs[0] == 1 {
		r.Epochs, r.First = r.Epochs[1:], true
	}
}

// rank takes what the events of a rank, in order, say of it.
func (r *Recording) rank(list []trace.Event) (*Rank, error) {
	k, workers := &Rank{}, map[int]bool{}
	for _, e := range list {
		workers[e.Worker] = true
	}
	k.Workers, k.gap = len(workers), medianGap(list)
	for n, epoch := range r.Epochs {
		s := newEpochLog(list, epoch)
		if n == 0 {
			k.Outline, k.Split = s.outline(r.Info["mode"] == "nopipe", r.Fused), s.split()
		}
		times, err := s.times(k, epoch)
		if err != nil {
			return nil, err
		}
		k.Epochs = append(k.Epochs, times)
		k.Use.add(s.use(k.Workers), 1/float64(len(r.Epochs)))
	}
	return k, nil
}

func (u *Use) add(v Use, share float64) {
	u.Span += share * v.Span
	u.Busy += share * v.Busy
	u.Rows += share * v.Rows
	u.Sums += share * v.Sums
}

// seconds is how long a task worked.
func seconds(e *trace.Event) float64 { return (e.Dur - e.Wait).Seconds() }

// onlyWaits reports whether an event is no task but a wait for one.
func onlyWaits(e *trace.Event) bool { return e.Wait > 0 && e.Wait == e.Dur }
