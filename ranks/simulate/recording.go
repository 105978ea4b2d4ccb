package simulate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"siafu/internal/fault"
	"siafu/kernels/model"
	"siafu/ranks/engine"
	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

const op = "bench simulate"

// Recording has the epochs of a run, read from its timeline.
type Recording struct {
	Info    map[string]string
	Ranks   []*Rank // graph ranks
	Epochs  []int   // complete on all ranks, ascending
	First   bool    // the first epoch is omitted
	Servers int
	Server  float64 // seconds of a server's work in an epoch
	Divided bool    // tasks have kernels with several chunks
	Arrival float64 // seconds from the last send of rows to the continuation of a waiting rank
}

// Rank is a graph rank: its tasks and their durations.
type Rank struct {
	Outline engine.Outline
	Split   bool    // the backward pass begins after the sum of losses over ranks
	Workers int     // as recorded
	Epochs  []Epoch // in the order of Recording.Epochs
	Use     Use     // as recorded, of an epoch

	gap   float64  // median seconds from the end of a task to the begin of the next
	scale *Factors // nil: as recorded
	made  []*track // one for each of Graphs
	pace  []map[taskKey]Work
}

// Epoch has the seconds of one epoch's tasks without their waits.
type Epoch struct {
	Pull, Score, Flush float64 // receiving weights, summing losses, summing gradients
	Tasks              []Work  // tasks of Graphs, in the order of PassGraph.Tasks
	Fetches            []Fetch // of all Graphs, in the order of PassGraph.Fetches; nil: none
	Gap, Left          float64 // mean time from the end of a task to the begin of the next; total time before the steps above
}

// Use divides a rank's time by use, in seconds per epoch: means over epochs.
type Use struct {
	Span float64
	Busy float64 // in tasks, the mean over workers
	Rows float64 // idle while waiting for rows of other ranks, the mean over workers
	Sums float64 // waiting for weights, losses and gradients of other ranks, between the tasks of layers
	Disk float64 // waiting for files, the mean over workers
}

// Idle returns the fraction of an epoch in which a worker had no task.
func (u Use) Idle() float64 {
	if u.Span <= 0 {
		return 0
	}
	return max(0, 1-u.Busy/u.Span)
}

// Graphs returns the passes of an epoch in execution order.
func (r *Rank) Graphs() []engine.PassGraph {
	if r.Split {
		return []engine.PassGraph{r.Outline.Forward(), r.Outline.Backward()}
	}
	return []engine.PassGraph{r.Outline.Epoch()}
}

// exchanges returns the layers whose rows, or their gradients, are sent in an epoch, once for each
// exchange. Ghost rows that a rank computes are not sent.
func (r *Rank) exchanges(paced bool) (layers []int) {
	if paced {
		for l, of := range r.Outline.Layers {
			if of.Gathers && r.Outline.Ghosts {
				layers = append(layers, l)
			}
			if of.GathersBackward && r.Outline.Ghosts {
				layers = append(layers, l)
			}
		}
		return layers
	}
	for _, track := range r.tracks() {
		for _, t := range track.Tasks() {
			if t.Stage == schedule.Send || t.Stage == schedule.SendBackward {
				layers = append(layers, t.Layer)
			}
		}
	}
	return layers
}

// track is a pass with the places of its tasks' times.
type track struct {
	engine.PassGraph
	place   map[int32]int // by Ref: in Epoch.Tasks
	fetches int           // place of the first one in Epoch.Fetches
}

// tracks returns a track for each of Graphs. Copies of the rank share them.
func (r *Rank) tracks() []*track {
	if r.made != nil {
		return r.made
	}
	n, fetches := 0, 0
	for _, g := range r.Graphs() {
		t := &track{g, map[int32]int{}, fetches}
		fetches += len(g.Fetches())
		for _, task := range g.Tasks() {
			t.place[task.Ref] = n
			n++
		}
		r.made = append(r.made, t)
	}
	return r.made
}

// key identifies a task in a timeline. Tasks with the same key keep the order of
// PassGraph.Tasks.
type key struct {
	kind            string
	layer, interval int
}

func keyOf(e *trace.Event) key { return key{e.Task, e.Layer, e.Interval} }

// Record reads the tasks of a timeline. Faults have kind Config if the mode of the run is not
// supported. They have kind Data if no epoch is
// complete, or if tasks of an epoch are missing. path names the timeline in faults.
func Record(f *trace.File, path string) (*Recording, error) {
	const remedy = "record a run with --mode pipe, nopipe or async, --refresh always and --batch full, one part a rank, --tensor cpu or " +
		"lambda, and --norm off or layer"
	mode, parts := f.Info["mode"], ""
	if f.Info["ranks"] != "" {
		parts = ", and its ranks carry several parts"
	}
	if parts != "" || !slices.Contains([]string{"pipe", "nopipe", async}, mode) {
		return nil, fault.New(fault.Config, op, path, "it is the timeline of --mode %s%s", mode, parts).Then(remedy)
	}
	r := &Recording{Info: f.Info, Divided: slices.ContainsFunc(f.Events, func(e trace.Event) bool { return e.Kernels != nil })}
	ranks, servers := EventsOf(f)
	if r.Epochs, r.First = CompleteEpochs(ranks); len(r.Epochs) == 0 {
		return nil, fault.New(fault.Data, op, path, "no epoch is complete on every graph rank").
			Then("record 2 epochs or more")
	}
	var graph [][]trace.Event
	for _, e := range ranks {
		graph = append(graph, e.uncut())
	}
	if !r.paced() {
		r.Arrival = arrival(graph, r.Epochs)
	}
	for n, list := range graph {
		rank, err := r.rank(ranks[n], list)
		if err != nil {
			return nil, fault.New(fault.Data, op, path, "rank %d: %v", n, err).Then(remedy)
		}
		r.Ranks = append(r.Ranks, rank)
	}
	r.Servers = len(servers)
	for _, server := range servers {
		for _, e := range server.uncut() {
			if slices.Contains(r.Epochs, e.Epoch) {
				r.Server += seconds(&e) / float64(len(r.Epochs)*r.Servers)
			}
		}
	}
	return r, nil
}

// paced reports whether the run used bounded asynchrony.
func (r *Recording) paced() bool { return r.Info["mode"] == async }

// Events has the events of a process in the order of their begin.
type Events struct {
	trace.Process
	List    []trace.Event // tasks of a schedule
	Fetches []trace.Event // of files; nil if their bytes were not recorded
}

// EventsOf returns the events of each graph rank and of each server.
func EventsOf(f *trace.File) (graph, servers []*Events) {
	byRank := map[int]*Events{}
	for _, p := range f.Processes {
		e := &Events{Process: p}
		byRank[p.Rank] = e
		if p.Role == "graph" {
			graph = append(graph, e)
		} else {
			servers = append(servers, e)
		}
	}
	for _, e := range f.Events {
		of := byRank[e.Rank]
		if e.Task == trace.Fetch {
			of.Fetches = append(of.Fetches, e)
		} else {
			of.List = append(of.List, e)
		}
	}
	for _, e := range byRank {
		slices.SortStableFunc(e.List, byStart)
		slices.SortStableFunc(e.Fetches, byStart)
		if !slices.ContainsFunc(e.Fetches, func(f trace.Event) bool { return f.Read != trace.None }) {
			e.Fetches = nil
		}
	}
	return graph, servers
}

func byStart(x, y trace.Event) int { return cmp.Compare(x.Start, y.Start) }

// cut returns the last epoch that lacks events because older ones were dropped; -1: none.
func (e *Events) cut() int {
	if e.Dropped == 0 || len(e.List) == 0 {
		return -1
	}
	cut := e.List[0].Epoch
	if k := slices.IndexFunc(e.Fetches, func(f trace.Event) bool { return !onlyWaits(&f) }); k >= 0 {
		cut = max(cut, e.Fetches[k].Epoch)
	}
	return cut
}

// uncut returns the tasks of a process without the epochs that lack events.
func (e *Events) uncut() []trace.Event {
	if e.cut() < 0 {
		return e.List
	}
	cut := e.cut()
	return slices.DeleteFunc(slices.Clone(e.List), func(one trace.Event) bool { return one.Epoch <= cut })
}

// CompleteEpochs returns the epochs that are complete on every graph rank, ascending. It omits
// the first epoch, in which memory is touched for the first time, if there are others. Only a
// complete epoch has received gradients; an evaluation has none.
func CompleteEpochs(graph []*Events) (epochs []int, first bool) {
	count := map[int]int{}
	for _, r := range graph {
		seen, cut := map[int]bool{}, max(r.cut(), 0)
		for _, e := range r.List {
			if e.Task == schedule.EmitBackward.Kind() && e.Epoch > cut && !seen[e.Epoch] {
				seen[e.Epoch] = true
				count[e.Epoch]++
			}
		}
	}
	for epoch, n := range count {
		if n == len(graph) {
			epochs = append(epochs, epoch)
		}
	}
	slices.Sort(epochs)
	if len(epochs) > 1 && epochs[0] == 1 {
		return epochs[1:], true
	}
	return epochs, false
}

// rank derives a Rank from its events and its ordered tasks.
func (r *Recording) rank(e *Events, list []trace.Event) (*Rank, error) {
	k, workers := &Rank{}, map[int]bool{}
	if err := k.readOutline(e); err != nil {
		return nil, err
	}
	for _, e := range list {
		workers[e.Worker] = true
	}
	k.Workers, k.gap = len(workers), medianGap(list)
	all := slices.Concat(list, e.Fetches)
	slices.SortStableFunc(all, byStart)
	for n, epoch := range r.Epochs {
		s := newEpochLog(all, epoch)
		if r.paced() {
			times, err := s.asyncTimes(k.Outline, epoch)
			if err != nil {
				return nil, err
			}
			k.Epochs, k.pace = append(k.Epochs, Epoch{Gap: k.gap}), append(k.pace, times)
			k.Use.Busy += s.busy.Seconds() / float64(k.Workers*len(r.Epochs))
			continue
		}
		if n == 0 {
			k.Split = s.split()
		}
		times, err := s.times(k, epoch)
		if err != nil {
			return nil, err
		}
		k.Epochs = append(k.Epochs, times)
		k.Use.add(s.use(k.Workers), 1/float64(len(r.Epochs)))
	}
	if r.paced() {
		k.Use.Span = (endOf(list, r.Epochs[len(r.Epochs)-1]) - endOf(list, r.Epochs[0]-1)).Seconds() / float64(len(r.Epochs))
	}
	return k, nil
}

// readOutline reads the outline of a rank's epochs. No number in it exceeds the number of tasks.
func (k *Rank) readOutline(e *Events) error {
	o := &k.Outline
	if e.Outline == nil {
		return errors.New("the timeline does not have the outline of its epochs")
	}
	if err := json.Unmarshal(e.Outline, o); err != nil {
		return fmt.Errorf("outline: %w", err)
	}
	for _, n := range append(slices.Clone(o.GhostTasks), len(o.Layers), o.Intervals, o.Sums, o.Pieces, o.Mixed) {
		if n < 0 || n > len(e.List) {
			return fmt.Errorf("outline: %d of %d tasks", n, len(e.List))
		}
	}
	for l, of := range o.Layers {
		if of.Sums || of.Slices < 0 || of.Slices > len(e.List) {
			return fmt.Errorf("layer %d is normalised over all ranks, or has %d slices", l, of.Slices)
		}
	}
	if o.Pairs || o.Section != (model.Section{}) && o.Section != (model.Section{End: len(o.Layers)}) {
		return errors.New("its loss is over pairs, or it trains a stage of a pipeline")
	}
	return nil
}

func (u *Use) add(v Use, share float64) {
	u.Span += share * v.Span
	u.Busy += share * v.Busy
	u.Rows += share * v.Rows
	u.Sums += share * v.Sums
	u.Disk += share * v.Disk
}

// seconds returns the duration of a task without its waits.
func seconds(e *trace.Event) float64 { return (e.Dur - e.Wait).Seconds() }

// onlyWaits reports whether an event is a wait and not a task.
func onlyWaits(e *trace.Event) bool { return e.Wait > 0 && e.Wait == e.Dur }
