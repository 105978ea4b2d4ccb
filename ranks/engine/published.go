package engine

import (
	"slices"

	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
	"siafu/ranks/params"
	"siafu/ranks/schedule"
)

// published is what the vertices of a layer show each other in bounded
// asynchrony: of which epochs the newest rows and gradients are, and which tasks
// read and write them.
//
//	rowsFrom[q][first]  is the epoch of the newest rows of rank q that begin at
//	                    place first of the list that q and this rank share
//	rowsMissing         is the number of ghosts of whom no row has ever come:
//	                    0 <= rowsMissing <= Plan.Ghosts
//	gradsFrom[q]        is the epoch of the newest gradients from rank q, 0: none
//	gradsMissing        is the number of ranks that have rows of this rank as
//	                    ghosts and have never sent a gradient of them
//	ready[epoch]        is how many of this rank's intervals have published their
//	                    gradients, less than all of them
type published struct {
	*graphwork.Layer

	rowsFrom                  []map[int]int
	gradsFrom                 []int
	rowsMissing, gradsMissing int
	ready                     map[int]int

	// Of Rows and Ghosts, of Grads and Returned, and of the memory for gradients
	// of ghosts.
	rows, grads, ghosts lock
	ghostGrads          kernels.Mat // [ghosts x Width]
	host                hostRows
}

// hostRows is what codecs read and write of a layer: its matrices themselves where
// they lie in the host's memory, else copies.
type hostRows struct {
	rows, ghosts, ghostGrads []float32
	returned                 [][]float32 // by rank
}

// lock keeps tasks that write something apart from those that read it. Many may
// read at once. A writer that waits is let in before readers that come later in
// the queue.
//
//	writing  implies readers is 0
//	claimed  holds during one search of the queue: a writer waits further ahead
type lock struct {
	readers          int
	writing, claimed bool
}

// access is what a task does with the rows of its layer, with the gradients, and
// with the memory for those of ghosts.
type access struct{ rows, grads, ghosts lockMode }

type lockMode uint8

const (
	none lockMode = iota
	read
	write
)

// accessOf is what tasks of a stage do.
func accessOf(s schedule.Stage) access {
	switch s {
	case schedule.Send, schedule.Receive:
		return access{rows: write}
	case schedule.GatherGhosts:
		return access{rows: read}
	case schedule.SendBackward, schedule.ReceiveBackward:
		return access{grads: write}
	case schedule.GatherBackward:
		return access{rows: read, grads: read}
	case schedule.GhostGrads:
		return access{rows: read, grads: read, ghosts: write}
	}
	return access{}
}

// free tells whether a task may have the lock.
func (l *lock) free(m lockMode) bool {
	switch m {
	case read:
		return !l.writing && !l.claimed
	case write:
		return !l.writing && !l.claimed && l.readers == 0
	}
	return true
}

// claim is for a task that may not run yet: if it is going to write and cannot,
// tasks behind it in the queue do not get the lock either.
func (l *lock) claim(m lockMode) {
	if m == write && !l.free(m) {
		l.claimed = true
	}
}

func (l *lock) acquire(m lockMode) {
	switch m {
	case read:
		l.readers++
	case write:
		l.writing = true
	}
}

func (l *lock) release(m lockMode) {
	switch m {
	case read:
		l.readers--
	case write:
		l.writing = false
	}
}

// unclaim begins a search of the queue. A layer that does not gather, nil, has
// nothing to search for.
func (p *published) unclaim() {
	if p != nil {
		p.rows.claimed, p.grads.claimed, p.ghosts.claimed = false, false, false
	}
}

// claim is for a job that may not run yet.
func (p *published) claim(a access) {
	if p != nil {
		p.rows.claim(a.rows)
		p.grads.claim(a.grads)
		p.ghosts.claim(a.ghosts)
	}
}

// mayRun tells whether everything is there that a queued task needs.
func (f *async) mayRun(j *job) bool {
	p := f.layers[j.Layer]
	switch {
	case j.access == access{}:
		return true
	case j.Stage == schedule.GatherGhosts && p.rowsMissing > 0,
		j.Stage == schedule.GatherBackward && p.gradsMissing > 0:
		return false
	}
	return p.rows.free(j.access.rows) && p.grads.free(j.access.grads) && p.ghosts.free(j.access.ghosts)
}

// begin acquires the locks of a job that runs now.
func (f *async) begin(j job) schedule.Task {
	if p := f.layers[j.Layer]; p != nil {
		p.rows.acquire(j.access.rows)
		p.grads.acquire(j.access.grads)
		p.ghosts.acquire(j.access.ghosts)
	}
	k := slices.IndexFunc(f.active, func(a job) bool { return !a.runs })
	j.Ref, j.runs = int32(k), true
	f.active[k] = j
	return j.Task
}

// end releases the locks of a job that has run.
func (f *async) end(t schedule.Task) job {
	j := f.active[t.Ref]
	f.active[t.Ref] = job{}
	if p := f.layers[j.Layer]; p != nil {
		p.rows.release(j.access.rows)
		p.grads.release(j.access.grads)
		p.ghosts.release(j.access.ghosts)
	}
	return j
}

// Published is the purpose of rows and gradients that intervals show each other.
const Published = "published rows"

// publish gives layer l room that every interval writes and reads by itself.
func (f *async) publish(l *graphwork.Layer, own int, a *mapped.Arena) *published {
	plan := f.graph.Plan
	p := &published{
		Layer: l, rowsFrom: make([]map[int]int, plan.Parts), gradsFrom: make([]int, plan.Parts),
		rowsMissing: plan.Ghosts, ready: map[int]int{},
	}
	place := func(purpose string, rows, width int) ([]float32, kernels.Mat) {
		x := mapped.Make[float32](a.For(purpose), rows*width)
		return x, kernels.PlaceMat(f.workers.teams[0], a.For(purpose), rows, width, x)
	}
	h := &p.host
	h.returned = make([][]float32, plan.Parts)
	h.rows, l.Rows = place(Published, own, l.Width)
	l.Again = l.Rows
	_, l.Grads = place(Published, own, l.GradWidth)
	h.ghosts, l.Ghosts = place(halo.Ghosts, plan.Ghosts, l.Width)
	for q := range plan.Parts {
		p.rowsFrom[q] = map[int]int{}
		if sends := int(plan.SendStart[q+1] - plan.SendStart[q]); sends > 0 {
			h.returned[q], l.Returned[q] = place(halo.Buffers, sends, l.Width)
			p.gradsMissing++
		}
	}
	return p
}

// sendForward publishes an interval's rows, and sends those of its boundary to
// the ranks that have them as ghosts.
func (f *async) sendForward(i *interval, l int) error {
	p, plan := f.layers[l], f.graph.Plan
	i.ops.Copy(i.part(p.Rows), i.frame.At(model.Do{Layer: l, Stage: model.Emit}, model.Emitted))
	kernels.Read(i.ops, i.rowsOf(p.host.rows, p.Width), i.part(p.Rows))
	f.graph.Publish(p.Layer, i.at(l), i.part(p.Rows))
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

// gather makes the interval's rows of Â times the rows that are there.
func (f *async) gather(i *interval, l int) error {
	if err := f.bounded(i, l); err != nil {
		return err
	}
	at := i.at(l)
	f.graph.GatherOwn(f.layers[l].Layer, at, i.pass())
	f.graph.GatherGhosts(f.layers[l].Layer, at, i.pass())
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

// sendBackward publishes an interval's gradient of what it gathered.
func (f *async) sendBackward(i *interval, l int) {
	p := f.layers[l]
	i.ops.Copy(i.part(p.Grads), i.frame.At(model.Do{Layer: l, Stage: model.ApplyBackward}, model.GatheredGrad))
	f.graph.PublishGrads(p.Layer, i.at(l), i.part(p.Grads))
}

// countGrads counts an interval whose gradient is published. With the rank's
// last one of that epoch, the gradients of ghosts are due to their owners.
func (f *async) countGrads(i *interval, l int) {
	p := f.layers[l]
	if p.ready[i.epoch]++; p.ready[i.epoch] < len(f.intervals) {
		return
	}
	delete(p.ready, i.epoch)
	if f.graph.Plan.Ghosts > 0 {
		f.enqueue(schedule.Task{Stage: schedule.GhostGrads, Epoch: i.epoch, Layer: l, Interval: schedule.Whole})
	}
}

// gatherBackward makes the interval's rows of Âᵀ times the gradients that are
// there.
func (f *async) gatherBackward(i *interval, l int) {
	p := f.layers[l].Layer
	f.graph.GatherBackward(p, i.at(l), i.pass())
	f.graph.AddBackward(p, i.at(l))
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
	case schedule.ReceiveBackward:
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
	ops, out := f.workers.teams[worker], &p.host.ghostGrads
	if p.ghostGrads.IsNil() {
		*out = make([]float32, plan.Ghosts*p.Width)
		p.ghostGrads = kernels.PlaceMat(ops, f.arena, plan.Ghosts, p.Width, *out)
	}
	f.graph.Enter(p.Layer, model.Pass{Epoch: j.Epoch, Train: true})
	f.graph.GhostGrads(ops, p.Layer, 0, p.ghostGrads)
	kernels.Read(ops, *out, p.ghostGrads)
	for q := range plan.Parts {
		from, to := int(plan.RecvStart[q]), int(plan.RecvStart[q+1])
		rows := codec.Rows{X: p.host.ghostGrads[from*p.Width : to*p.Width], Cols: p.Width, Len: to - from, IDs: plan.GhostIDs[from:to]}
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
		stage, all = schedule.ReceiveBackward, int(plan.SendStart[from+1]-plan.SendStart[from])
		if m.count != all {
			return damaged(m, from)
		}
	}
	if m.count < 1 || m.first < 0 || m.first+m.count > all {
		return damaged(m, from)
	}
	t := schedule.Task{Stage: stage, Epoch: m.epoch, Layer: m.layer, Interval: schedule.Whole}
	f.queue = slices.Insert(f.queue, f.received, job{Task: t, access: accessOf(t.Stage), wire: m, from: from})
	f.received++
	return nil
}

// note takes down what a received message has brought.
func (p *published) note(j job) {
	if j.Stage == schedule.ReceiveBackward {
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
