package graphwork

import (
	"sync/atomic"
	"time"

	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// packing gathers a layer's rows, or the gradients of what it has gathered, without their
// zeros: in room that nothing else uses meanwhile, or where they stand, if nobody else reads them.
// Whether that is faster depends on
// how many zeros there are and on how often the caches have a row; so some passes try
// both in turns, and what took less time is done in those that follow. The bits are the same
// either way.
type packing struct {
	rows      kernels.Packed // none: never
	own       int            // number of own vertices
	alone     bool           // packed rows are stored nowhere else
	train     bool           // the current pass trains
	packs     bool           // the current pass packs
	pass      int            // number of passes that have trained and gathered
	ready     atomic.Int64   // packed rows
	values    atomic.Int64   // values in them
	spent     atomic.Int64   // nanoseconds of all workers in the pass, packing included
	bestTimes [2]int64       // minimum of passes without and with packed rows, 0 if unknown
}

// Rows are packed where a vertex has so many edges that packing costs little beside the gather,
// and together are more than caches of their own hold.
var (
	packedDegree = 8
	packedBytes  = 4 << 20
)

// Both ways are timed again every searchPasses, beginning with packed rows, in so many turns. The
// first pass is cold, and is not timed.
const (
	searchPasses = 64
	firstSearch  = 1
	searchTurns  = 2
)

// allocPacking gives k room for the rows that a stage of layer l shows others, where there is any and
// packing may pay.
func (w *Work) allocPacking(k *packing, l int, stage model.Stage, o Options) {
	if w.half || w.own.Weights.Len() > 0 {
		return
	}
	room, s := w.store.Idle(l, stage), w.shard
	if room.IsNil() && w.noGhostReaders() && !o.OneWay {
		room, k.alone = w.store.Spent(l, stage), true
	}
	if room.IsNil() || !w.ops.Packs(room.Cols) || room.Bytes() < packedBytes || len(s.In.Cols) < packedDegree*s.NumOwn() {
		return
	}
	bits := mapped.Make[uint64](w.arena.For(PackedRows), kernels.PackedWords*room.Rows)
	k.rows, k.own = kernels.NewPacked(room, bits), s.NumOwn()
}

// noGhostReaders reports whether no other rank reads rows of this one, nor sums of them.
func (w *Work) noGhostReaders() bool {
	p := w.Plan
	return p.Ghosts == 0 && p.Sums == 0 && len(p.SendRows) == 0
}

// Begin begins a pass; nothing has been published.
func (w *Work) Begin(p model.Pass) {
	for _, l := range w.layers {
		if l != nil {
			l.lists.pass = p
			l.packed.rows.begin(p.Train)
			l.packed.grads.begin(p.Train)
		}
	}
}

func (k *packing) begin(train bool) {
	if k.rows.IsNil() {
		return
	}
	if spent := k.spent.Swap(0); spent > 0 && k.train {
		k.recordTime(spent)
	}
	k.ready.Store(0)
	k.values.Store(0)
	k.train, k.packs = train, train && k.shouldPack()
}

// recordTime takes note of the time of a pass that has gathered.
func (k *packing) recordTime(spent int64) {
	if k.pass%searchPasses == firstSearch {
		k.bestTimes = [2]int64{}
	}
	k.pass++
	took := &k.bestTimes[0]
	if k.packs && k.complete() {
		took = &k.bestTimes[1]
	}
	if *took == 0 || spent < *took {
		*took = spent
	}
}

// shouldPack reports whether the pass to come packs.
func (k *packing) shouldPack() bool {
	if turn := k.pass%searchPasses - firstSearch; turn >= 0 && turn < 2*searchTurns {
		return turn%2 == 0
	}
	return k.bestTimes[1] > 0 && k.bestTimes[1] < k.bestTimes[0]
}

// complete reports whether all rows are packed.
func (k *packing) complete() bool { return k.ready.Load() == int64(k.own) }

// publish packs the interval's rows.
func (k *packing) publish(i Interval, rows kernels.Mat) {
	if !k.packs {
		return
	}
	began := time.Now()
	k.values.Add(int64(i.Ops.Pack(k.rows, i.Lo, rows)))
	k.ready.Add(int64(rows.Rows))
	k.spent.Add(int64(time.Since(began)))
}

// gatherOwn gathers the rows of all own vertices.
func (k *packing) gatherOwn(o kernels.Ops, dst kernels.Mat, m kernels.Edges, rows, half kernels.Mat) {
	began := time.Now()
	switch {
	case k.packs && k.complete():
		o.SpMMPacked(dst, m, k.rows, k.values.Load(), false)
	case k.packs && k.alone:
		panic("graphwork: rows packed in place, of some intervals alone")
	default:
		spmm(o, dst, m, rows, half, false)
	}
	k.spent.Add(int64(time.Since(began)))
}
