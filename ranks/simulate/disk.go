package simulate

import (
	"cmp"
	"fmt"

	"siafu/internal/fault"
	"siafu/ranks/engine"
	"siafu/ranks/plan"
)

// Fetch is the read of the parts of files that an interval needs for its next tasks.
type Fetch struct{ Bytes, Seconds float64 }

// fetches returns the fetches of a rank in the order in which it reads ahead, nil if there are none. The
// fetches of an interval keep the order of their begin.
func (s *epochLog) fetches(r *Rank, epoch int) (list []Fetch, err error) {
	if s.reads != nil && s.split() != r.Split { // a pass ends elsewhere, because of an evaluation
		return r.Epochs[0].Fetches, nil
	}
	reads := map[[2]int][]Fetch{} // by layer and interval
	for _, e := range s.reads {
		at := [2]int{e.Layer, e.Interval}
		reads[at] = append(reads[at], Fetch{float64(e.Read), e.Dur.Seconds()})
	}
	want := 0
	for _, g := range r.Graphs() {
		for _, t := range g.Fetches() {
			want++
			if of := reads[[2]int{t.Layer, t.Interval}]; len(of) > 0 {
				list = append(list, of[0])
				reads[[2]int{t.Layer, t.Interval}] = of[1:]
			}
		}
	}
	if n := len(s.reads); n > 0 && (n != want || n != len(list)) {
		return nil, fmt.Errorf("epoch %d has %d fetches of files, and not %d", epoch, n, want)
	}
	return list, nil
}

// reader reads files ahead of the tasks of a walk, as a rank does: fetch after fetch, while fewer
// than engine.FetchAhead bytes wait for their tasks. A task that comes before its fetch reads itself.
type reader struct {
	engine.PassGraph
	s      *simulation
	use    *Use
	list   []Fetch
	states []fetchState
	next   int     // fetch that is read ahead
	ahead  float64 // bytes of fetches that have ended and whose tasks have not begun
	busy   bool    // it reads ahead
	until  float64 // end of the disk's last read, if its rate is given
}

// fetchState is the state of a fetch.
type fetchState struct {
	begun, ended, used bool
	waiting            []func() // tasks
}

// newReader begins to read for a pass of an epoch. It returns nil if the pass reads no files, and in
// conversions to functions, whose ranks do not read ahead.
func (w *workerPool) newReader(pass *track, e *Epoch) *reader {
	if e.Fetches == nil || w.remote != nil {
		return nil
	}
	r := &reader{PassGraph: pass.PassGraph, s: w.s, use: &w.use}
	for n, t := range pass.Fetches() {
		f, x := e.Fetches[pass.fetches+n], w.rank.factor(t.Stage)
		r.list = append(r.list, Fetch{x * f.Bytes, x * f.Seconds})
	}
	r.states = make([]fetchState, len(r.list))
	r.readAhead()
	return r
}

// readAhead begins the next fetch if it may.
func (r *reader) readAhead() {
	for !r.busy && r.next < len(r.list) && r.states[r.next].begun {
		r.next++
	}
	if !r.busy && r.next < len(r.list) && r.ahead < engine.FetchAhead {
		r.busy = true
		r.read(r.next)
	}
}

// read reads a fetch: for the recorded time, or after the disk's other reads at its rate.
func (r *reader) read(k int) {
	f, at, end := r.list[k], &r.states[k], r.s.now+r.list[k].Seconds
	if r.s.Disk > 0 {
		r.until = max(r.s.now, r.until) + f.Bytes/r.s.Disk
		end = r.until
	}
	at.begun = true
	r.s.at(end, func() {
		at.ended = true
		r.busy = r.busy && k != r.next
		if !at.used {
			r.ahead += f.Bytes
		}
		r.readAhead()
		for _, do := range at.waiting {
			do()
		}
	})
}

// await calls then when a fetch has ended. The caller's worker waits.
func (r *reader) await(k int, then func()) {
	at := &r.states[k]
	if at.ended && !at.used {
		r.ahead -= r.list[k].Bytes
	}
	at.used = true
	if !at.begun {
		r.read(k)
	}
	r.readAhead()
	if at.ended {
		then()
		return
	}
	began := r.s.now
	at.waiting = append(at.waiting, func() {
		r.use.Disk += (r.s.now - began) / float64(r.s.Workers)
		then()
	})
}

// setDisk applies --disk-rate.
func (o *Options) setDisk(p *recordedRun, c *Cluster) error {
	if o.DiskRate == "" {
		return nil
	}
	rate, ok := plan.DiskRate(o.DiskRate)
	switch {
	case !ok:
		return fault.New(fault.Usage, op, "", "--disk-rate %q", o.DiskRate).Then("write bytes a second with MB or GB, such as 1GB")
	case c.Staleness >= 0 || cmp.Or(o.Tensor, p.tensor) == lambda || o.Intervals > 0:
		return fault.New(fault.Usage, op, "", "--disk-rate with bounded asynchrony, functions or other intervals").Then("omit --disk-rate")
	case p.Ranks[0].Epochs[0].Fetches == nil:
		return fault.New(fault.Config, op, o.Run, "--disk-rate for a run whose timeline has no bytes of fetches").
			Then("record a run with --memory and --trace again")
	}
	c.Disk = rate
	return nil
}
