package engine

import (
	"slices"

	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
	"siafu/ranks/params"
	"siafu/ranks/schedule"
)

// published is what is known in bounded asynchrony of what the vertices of a
// layer show each other: of which epochs the newest rows and gradients are, and
// which tasks have hold of them.
type published struct {
	*graphwork.Layer

	// The epochs of the newest rows from each interval of each rank, by the rank
	// and by the place of its first row; and of gradients, by rank.
	rowsFrom  []map[int]int
	gradsFrom []int
	// How many ghosts, and ranks with gradients, have never been heard of.
	rowsMissing, gradsMissing int
	// By epoch, how many intervals have published gradients.
	ready map[int]int

	rows, grads, ghosts latch // ghosts: memory for their gradients
	out                 kernels.Mat
	host                hostRows
}

// hostRows is what codecs read and write of a layer: its matrices themselves where
// they lie in the host's memory, else copies.
type hostRows struct {
	rows, ghosts, out []float32
	returned          [][]float32 // by rank
}

// latch keeps tasks that write something apart from those that use it. Many
// may read at once. A writer that waits is let in before readers that come
// later.
type latch struct {
	readers          int
	written, claimed bool
}

// grip is what a task does with the rows of its layer, with the gradients, and
// with the memory for those of ghosts.
type grip struct{ rows, grads, ghosts hold }

type hold uint8

const (
	leaves hold = iota
	reads
	writes
)

// grip is that of a task.
func (f *async) grip(t schedule.Task) grip {
	switch t.Stage {
	case schedule.Spread, schedule.Receive:
		return grip{rows: writes}
	case schedule.GatherGhosts:
		return grip{rows: reads}
	case schedule.SpreadBack, schedule.ReceiveBack:
		return grip{grads: writes}
	case schedule.GatherBack:
		return grip{rows: reads, grads: reads}
	case schedule.GhostGrads:
		return grip{rows: reads, grads: reads, ghosts: writes}
	}
	return grip{}
}

// free tells whether a task may take hold; if not, and it would write, those
// behind it in the queue may not either.
func (l *latch) free(h hold) bool {
	switch h {
	case reads:
		return !l.written && !l.claimed
	case writes:
		if l.written || l.claimed || l.readers > 0 {
			l.claimed = true
			return false
		}
	}
	return true
}

func (l *latch) take(h hold) {
	switch h {
	case reads:
		l.readers++
	case writes:
		l.written = true
	}
}

func (l *latch) drop(h hold) {
	switch h {
	case reads:
		l.readers--
	case writes:
		l.written = false
	}
}

// unclaim begins a search of the queue.
func (p *published) unclaim() {
	if p != nil {
		p.rows.claimed, p.grads.claimed, p.ghosts.claimed = false, false, false
	}
}

// mayRun tells whether everything is there that a queued task needs.
func (f *async) mayRun(j *job) bool {
	p := f.layers[j.Layer]
	switch {
	case j.grip == grip{}:
		return true
	case j.Stage == schedule.GatherGhosts && p.rowsMissing > 0,
		j.Stage == schedule.GatherBack && p.gradsMissing > 0:
		return false
	}
	rows, grads, ghosts := p.rows.free(j.grip.rows), p.grads.free(j.grip.grads), p.ghosts.free(j.grip.ghosts)
	return rows && grads && ghosts
}

// enlist takes hold for a job that runs now.
func (f *async) enlist(j job) schedule.Task {
	if p := f.layers[j.Layer]; p != nil {
		p.rows.take(j.grip.rows)
		p.grads.take(j.grip.grads)
		p.ghosts.take(j.grip.ghosts)
	}
	k := slices.IndexFunc(f.active, func(a job) bool { return !a.runs })
	j.Ref, j.runs = int32(k), true
	f.active[k] = j
	return j.Task
}

// release is for a job that has run.
func (f *async) release(t schedule.Task) job {
	j := f.active[t.Ref]
	f.active[t.Ref] = job{}
	if p := f.layers[j.Layer]; p != nil {
		p.rows.drop(j.grip.rows)
		p.grads.drop(j.grip.grads)
		p.ghosts.drop(j.grip.ghosts)
	}
	return j
}

// publish gives layer l room that every interval writes and reads by itself.
func (f *async) publish(l *graphwork.Layer, own int, a *mapped.Arena) *published {
	plan := f.graph.Plan
	p := &published{
		Layer: l, rowsFrom: make([]map[int]int, plan.Parts), gradsFrom: make([]int, plan.Parts),
		rowsMissing: plan.Ghosts, ready: map[int]int{},
	}
	place := func(rows, width int) ([]float32, kernels.Mat) {
		x := mapped.Make[float32](a, rows*width)
		return x, kernels.PlaceMat(f.workers.teams[0], a, rows, width, x)
	}
	h := &p.host
	h.returned = make([][]float32, plan.Parts)
	h.rows, l.Rows = place(own, l.Width)
	_, l.Grads = place(own, l.GradWidth)
	h.ghosts, l.Ghosts = place(plan.Ghosts, l.Width)
	for q := range plan.Parts {
		p.rowsFrom[q] = map[int]int{}
		if sends := int(plan.SendStart[q+1] - plan.SendStart[q]); sends > 0 {
			h.returned[q], l.Returned[q] = place(sends, l.Width)
			p.gradsMissing++
		}
	}
	return p
}

// spread publishes an interval's rows, and sends those of its boundary to those
// who hold them as ghosts.
func (f *async) spread(i *interval, l int) error {
	p, plan := f.layers[l], f.graph.Plan
	i.work.Ops.Copy(i.part(p.Rows), i.work.Rows)
	kernels.Read(i.work.Ops, i.rowsOf(p.host.rows, p.Width), i.part(p.Rows))
	f.graph.Publish(p.Layer, i.at(l), i.work.Rows)
	for q := range plan.Parts {
		at := int(plan.SendStart[q])
		list := plan.SendRows[at:plan.SendStart[q+1]]
		from, to := graphwork.Boundary(list, i.lo, i.hi)
		rows := codec.Rows{X: p.host.rows, Cols: p.Width, Len: to - from, Index: list[from:to], IDs: f.sendIDs[at+from : at+to]}
		if err := f.sendRows(q, wire{kind: wireRows, layer: l, epoch: i.epoch, first: from}, rows); err != nil {
			return err
		}
	}
	return nil
}

// sendRows sends rows, if there are any, through the codec.
func (f *async) sendRows(to int, m wire, rows codec.Rows) error {
	if rows.Len == 0 {
		return nil
	}
	m.count = rows.Len
	key := codec.Key{Seed: f.cfg.Seed, Epoch: m.epoch, Layer: m.layer, Backward: m.kind == wireGrads}
	b, err := f.outbox.Buffer()
	if err != nil {
		return err
	}
	b = codec.EncodeBlock(m.header(b), f.codec, rows, m.first, key, nil)
	f.tallies.raw.Add(4 * int64(rows.Len*rows.Cols))
	f.tallies.sent.Add(int64(len(b)))
	return f.outbox.Post(b, to, params.TagAsync)
}

// gather is the interval's rows of Â times what is there.
func (f *async) gather(i *interval, l int) error {
	if err := f.bounded(i, l); err != nil {
		return err
	}
	at := i.at(l)
	f.graph.GatherOwn(f.layers[l].Layer, at, i.pass())
	i.work.Rows = f.graph.GatherGhosts(f.layers[l].Layer, at, i.pass())
	return nil
}

// bounded checks what the staleness bound promises: no row of a ghost is of an
// epoch before that which everybody had finished when the interval started,
// and none is ahead by more than the bound.
func (f *async) bounded(i *interval, l int) error {
	s := f.setting.Staleness
	for q, from := range f.layers[l].rowsFrom {
		for first, epoch := range from {
			if epoch < i.epoch-1-s || epoch > i.epoch+1+s {
				return fault.New(fault.Runtime, "train", "", "an interval of rank %d in epoch %d would gather rows of rank %d, from row %d on, of epoch %d, which staleness %d does not allow",
					f.world.Rank(), i.epoch, q, first, epoch, s)
			}
		}
	}
	return nil
}

// spreadBack publishes an interval's gradient of what it gathered.
func (f *async) spreadBack(i *interval, l int) {
	p := f.layers[l]
	i.work.Ops.Copy(i.part(p.Grads), i.work.Rows)
	f.graph.PublishGrads(p.Layer, i.at(l), i.work.Rows, i.pass())
}

// spreadedBack counts an interval whose gradient is published. With the rank's
// last one of that epoch, the gradients of ghosts are due to their owners.
func (f *async) spreadedBack(i *interval, l int) {
	p := f.layers[l]
	if p.ready[i.epoch]++; p.ready[i.epoch] < len(f.intervals) {
		return
	}
	delete(p.ready, i.epoch)
	if f.graph.Plan.Ghosts > 0 {
		f.enqueue(schedule.Task{Stage: schedule.GhostGrads, Epoch: i.epoch, Layer: l, Interval: schedule.Whole})
	}
}

// gatherBack is the interval's rows of Âᵀ times the gradients that are there.
func (f *async) gatherBack(i *interval, l int) {
	p := f.layers[l].Layer
	i.work.Rows = f.graph.GatherBack(p, i.at(l), i.pass())
	f.graph.AddBack(p, i.at(l))
}

// whole runs a task that no interval does for itself.
func (f *async) whole(worker int, t schedule.Task) error {
	j := &f.active[t.Ref]
	switch p := f.layers[j.Layer]; j.Stage {
	case schedule.Receive:
		first := int(f.graph.Plan.RecvStart[j.from]) + j.wire.first
		if err := f.takeRows(worker, j, p.host.ghosts[first*p.Width:], p.Ghosts.Part(first, first+j.wire.count)); err != nil {
			return err
		}
		f.graph.PublishGhosts(f.workers.teams[worker], p.Layer, first, j.wire.count)
	case schedule.ReceiveBack:
		return f.takeRows(worker, j, p.host.returned[j.from], p.Returned[j.from])
	case schedule.GhostGrads:
		return f.ghostGrads(worker, j)
	}
	return nil
}

// takeRows decodes the rows that a message has brought to room of the host's, and
// takes them to dst.
func (f *async) takeRows(worker int, j *job, room []float32, dst kernels.Mat) error {
	block, err := codec.Open(j.wire.block, f.codec)
	if err == nil {
		err = block.Decode(f.codec, codec.Rows{X: room, Cols: dst.Cols, Len: j.wire.count}, false)
	}
	if err != nil {
		return fault.New(fault.Runtime, "train", "", "rows of layer %d from rank %d are damaged: %v", j.Layer, j.from, err)
	}
	kernels.Write(f.workers.teams[worker], dst, room)
	return nil
}

// ghostGrads computes the gradients of ghosts and sends them to their owners.
func (f *async) ghostGrads(worker int, j *job) error {
	p, plan := f.layers[j.Layer], f.graph.Plan
	ops, out := f.workers.teams[worker], &p.host.out
	if p.out.IsNil() {
		*out = make([]float32, plan.Ghosts*p.Width)
		p.out = kernels.PlaceMat(ops, f.arena, plan.Ghosts, p.Width, *out)
	}
	p.Enter(model.Pass{Epoch: j.Epoch, Train: true})
	f.graph.GhostGrads(ops, p.Layer, 0, p.out)
	kernels.Read(ops, *out, p.out)
	for q := range plan.Parts {
		from, to := int(plan.RecvStart[q]), int(plan.RecvStart[q+1])
		rows := codec.Rows{X: p.host.out[from*p.Width : to*p.Width], Cols: p.Width, Len: to - from, IDs: plan.GhostIDs[from:to]}
		if err := f.sendRows(q, wire{kind: wireGrads, layer: j.Layer, epoch: j.Epoch}, rows); err != nil {
			return err
		}
	}
	return nil
}

// expect queues the task that puts rows or gradients which have arrived in
// their place.
func (f *async) expect(m wire, from int) error {
	if f.graph == nil || m.layer < 0 || m.layer >= len(f.layers) || f.layers[m.layer] == nil || from >= f.graph.Plan.Parts {
		return damaged(m, from)
	}
	plan := f.graph.Plan
	stage, all := schedule.Receive, int(plan.RecvStart[from+1]-plan.RecvStart[from])
	if m.kind == wireGrads {
		stage, all = schedule.ReceiveBack, int(plan.SendStart[from+1]-plan.SendStart[from])
		if m.count != all {
			return damaged(m, from)
		}
	}
	if m.count < 1 || m.first < 0 || m.first+m.count > all {
		return damaged(m, from)
	}
	t := schedule.Task{Stage: stage, Epoch: m.epoch, Layer: m.layer, Interval: schedule.Whole}
	f.queue = slices.Insert(f.queue, f.received, job{Task: t, grip: f.grip(t), wire: m, from: from})
	f.received++
	return nil
}

// note takes down what a received message has brought.
func (p *published) note(j job) {
	if j.Stage == schedule.ReceiveBack {
		if p.gradsFrom[j.from] == 0 {
			p.gradsMissing--
		}
		p.gradsFrom[j.from] = j.wire.epoch
		return
	}
	if p.rowsFrom[j.from][j.wire.first] == 0 {
		p.rowsMissing -= j.wire.count
	}
	p.rowsFrom[j.from][j.wire.first] = j.wire.epoch
}

func damaged(m wire, from int) error {
	return fault.New(fault.Runtime, "train", "", "rank %d sent %d values from row %d on of layer %d, which fit nowhere",
		from, m.count, m.first, m.layer).Then("partition the dataset again, and run the same siafu on all ranks")
}
