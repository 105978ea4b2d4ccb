package ranks

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"siafu/ranks/params/protocol"
	"siafu/ranks/trace"
)

// checkTimeline fails where the timeline could not be written in the end.
func (r *run) checkTimeline() error {
	if r.cfg.Trace == "" {
		return nil
	}
	return trace.Check(r.cfg.Trace)
}

// watch begins to record this rank's tasks and waits.
func (r *run) watch() {
	if r.cfg.Trace != "" {
		workers := r.threads
		if r.isServer() {
			workers = 1
		}
		for w := range workers {
			r.recorders = append(r.recorders, trace.NewRecorder(w, trace.Capacity))
		}
		r.world = trace.Watch(r.world, r.recorders[0])
	}
}

// beginTimeline compares clocks, and tells everybody when the timeline begins.
// Collective over the world.
func (r *run) beginTimeline() error {
	if r.recorders == nil {
		return nil
	}
	var err error
	if r.offset, err = trace.Measure(r.world, r.recorders[0].Now); err != nil {
		return err
	}
	var origin [8]byte
	binary.LittleEndian.PutUint64(origin[:], uint64(r.recorders[0].Now()))
	err = r.world.Bcast(origin[:], 0)
	r.origin = int64(binary.LittleEndian.Uint64(origin[:]))
	return err
}

// saveTimeline gathers what all ranks have recorded and writes the file. The
// run folder is whole before it begins. Collective over the world.
func (r *run) saveTimeline() error {
	if r.recorders == nil {
		return nil
	}
	host := r.world.Hosts()[r.rank]
	info := map[string]string{
		"program": "siafu " + Version, "dataset": r.meta.Name, "world": r.kind,
		"mode": r.cfg.Mode, "threads": strconv.Itoa(r.rankThreads),
	}
	if !r.view.Flat() { // processes of the timeline are parts
		info["ranks"] = strconv.Itoa(r.view.Started())
	}
	err := trace.Save(r.world, r.cfg.Trace, trace.Timeline{
		Info: info,
		Process: trace.Process{
			Rank: r.rank, Name: fmt.Sprintf("%s %s on %s", r.view.Name(r.rank), r.name(), host), Role: r.name(), Host: host,
		},
		Workers: r.recorders, Origin: r.origin, First: r.offset,
	})
	if err := agree(r.world, err); err != nil {
		return err
	}
	if r.voice != nil {
		r.voice.say("wrote trace=%s", r.cfg.Trace)
	}
	return nil
}

// timedUpdater records the updates of a server.
type timedUpdater struct {
	protocol.Updater
	clock *clock
}

// Update implements protocol.Updater.
func (u timedUpdater) Update(step, layer int, weights, grad []float32) {
	u.clock.epoch, u.clock.layer = step, layer
	u.clock.start()
	u.Updater.Update(step, layer, weights, grad)
	u.clock.lap("WU")
}
