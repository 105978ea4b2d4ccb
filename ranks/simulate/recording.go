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
	Epochs  []int   // recorded completely on all ranks, ascending
	First   bool    // the first epoch is excluded
	Fused   bool    // tensor tasks comprise several stages
	Servers int
	Server  float64 // work of a server per epoch
	Arrival float64 // median seconds from the last send of rows to the continuation of a waiting rank
}

// Rank has the tasks of a graph rank and their durations.
type Rank struct {
	Outline engine.Outline
	Split   bool    // the backward pass begins after the sum of losses over ranks
	Workers int     // number of recorded workers
	Epochs  []Epoch // by index in Recording.Epochs
	Use     Use     // as recorded, per epoch

	gap          float64  // median seconds between a worker's tasks
	scale        *Factors // nil: as recorded
	made         []*track // by Graphs
	asyncSeconds []map[taskKey]float64
}

// Epoch has the seconds of one epoch's tasks without waits.
type Epoch struct {
	Pull, Score, Flush float64   // receive weights, sum losses, sum gradients
	Tasks              []float64 // by the outline's graphs, in order of creation
	Gap, Left          float64   // mean seconds between tasks, and total seconds before the steps above
}

// Use divides the seconds of a rank's epoch by their use, as means over epochs.
type Use struct {
	Span float64
	Busy float64 // in tasks, mean over workers
	Rows float64 // idle while rows of other ranks were awaited, mean over workers
	Sums float64 // waiting for weights, losses and gradients of others, between the tasks of layers
}

// Idle returns the fraction of an epoch in which a worker had no task.
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

// track is a pass and the positions of its tasks' times.
type track struct {
	engine.PassGraph
	place map[int32]int // by Ref: index in Epoch.Tasks
}

// tracks returns the passes of Graphs. Ranks that are scaled from this one share them.
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

// key identifies tasks in a timeline. Tasks with equal keys are in order of creation.
type key struct {
	kind            string
	layer, interval int
}

func keyOf(e *trace.Event) key { return key{e.Task, e.Layer, e.Interval} }

// Record reads the tasks of a timeline. fused: its tensor tasks comprised several stages. path
// names the timeline in faults. Faults have kind Config for an unsupported mode, and Data if no
// epoch is complete or tasks are missing.
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
	if r.isAsync() {
		read = r.asyncRank
	} else {
		r.Arrival = arrival(graph, r.Epochs)
	}
	for n, list := range graph {
		rank, err := read(list)
		if err != nil {
			return nil, fault.New(fault.Data, op, path, "rank %d: %v", n, err).Then(remedy)
		}
		rank.Outline.Ghosts = rank.Outline.Ghosts || r.isAsync() && len(graph) > 1
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

// isAsync reports whether the run had bounded asynchrony.
func (r *Recording) isAsync() bool { return r.Info["mode"] == async }

// eventsOf returns the events of each rank, sorted by begin. If older events were dropped, the
// first remaining epoch is incomplete and is excluded.
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

// choose selects the epochs that all ranks recorded completely. The first epoch touches memory
// for the first time and is excluded if there are others.
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

// rank derives a Rank from its sorted events.
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

// seconds returns the work of a task, without its wait.
func seconds(e *trace.Event) float64 { return (e.Dur - e.Wait).Seconds() }

// onlyWaits reports whether an event is only a wait.
func onlyWaits(e *trace.Event) bool { return e.Wait > 0 && e.Wait == e.Dur }
