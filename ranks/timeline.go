package ranks

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"siafu/internal/mapped"
	"siafu/ranks/params/protocol"
	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

// timeline is a rank's recording for --trace; the zero value without --trace.
type timeline struct {
	recorders []*trace.Recorder // of the workers
	origin    int64             // on rank 0's clock
	offset    trace.Offset      // of this rank's clock, at the beginning
}

// record starts the recording of this rank's tasks and waits.
func (r *joined) record() {
	if r.cfg.Trace != "" {
		workers := r.threads
		if r.isServer() {
			workers = 1
		}
		for w := range workers {
			r.timeline.recorders = append(r.timeline.recorders, trace.NewRecorder(w, trace.Capacity))
		}
		if !r.isServer() && r.cfg.FetchesFiles() {
			r.timeline.recorders = append(r.timeline.recorders, trace.NewFetchRecorder(workers, trace.Capacity))
		}
		r.world = trace.Watch(r.world, r.timeline.recorders[0])
	}
}

// beginTimeline compares clocks, and shares the start of the timeline. Collective over the
// world.
func (r *joined) beginTimeline() error {
	if r.timeline.recorders == nil {
		return nil
	}
	var err error
	if r.timeline.offset, err = trace.Measure(r.world, r.timeline.recorders[0].Now); err != nil {
		return err
	}
	origin := []int64{r.timeline.recorders[0].Now()}
	err = r.world.Bcast(mapped.Bytes(origin), 0)
	r.timeline.origin = origin[0]
	return err
}

// saveTimeline gathers all ranks' recordings and writes the file. The run folder is complete
// before that. Collective over the world.
func (r *prepared) saveTimeline() error {
	if r.timeline.recorders == nil {
		return nil
	}
	host := r.world.Hosts()[r.rank]
	info := map[string]string{
		"program": "siafu " + Version, "dataset": r.meta.Name, "world": r.kind,
		"mode": r.cfg.Mode, "threads": strconv.Itoa(r.rankThreads),
	}
	if !r.view.Flat() { // the file shows each part of the graph as a process
		info["ranks"] = strconv.Itoa(r.view.Started())
	}
	var outline []byte
	if !r.isServer() {
		outline, _ = json.Marshal(r.engine.Usage().Outline)
	}
	err := trace.Save(r.world, r.cfg.Trace, trace.Timeline{
		Info: info,
		Process: trace.Process{
			Rank: r.rank, Name: fmt.Sprintf("%s %s on %s", r.view.Name(r.rank), r.name(), host),
			Role: r.name(), Host: host, Outline: outline,
		},
		Workers: r.timeline.recorders, Counts: r.counts(), Origin: r.timeline.origin, First: r.timeline.offset,
	})
	if err := agree(r.world, err); err != nil {
		return err
	}
	if r.reporter != nil {
		r.reporter.say("wrote trace=%s", r.cfg.Trace)
	}
	return nil
}

// counts returns two series over time: how many tasks wait for a CPU, and how many concurrent
// invocations are allowed.
func (r *prepared) counts() (list []trace.Count) {
	t := r.tensor.Tuning()
	if t == nil {
		return nil
	}
	for _, c := range t.Checks {
		list = append(list, trace.Count{Name: "tasks that wait", At: c.At, N: c.Queue},
			trace.Count{Name: "invocations at once", At: c.At, N: c.Number})
	}
	return list
}

// timedUpdater records the updates of a server.
type timedUpdater struct {
	protocol.Updater
	recorder *trace.Recorder
}

// Update implements protocol.Updater.
func (u timedUpdater) Update(step, layer int, weights, grad []float32) {
	u.recorder.Begin()
	began := time.Now()
	u.Updater.Update(step, layer, weights, grad)
	at := trace.Place{Epoch: int32(step), Layer: int32(layer), Interval: trace.None}
	u.recorder.Add(schedule.Update.Kind(), at, began, time.Now())
}
