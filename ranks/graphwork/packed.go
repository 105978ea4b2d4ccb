package graphwork

import (
	"sync/atomic"
	"time"

	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// packed is the form of a matrix that gathers of own rows read without its zeros. The rows are packed in
// memory that is idle during the gather, or in place if no other rank reads the rows. Whether packing
// is faster depends on the number of zeros and on the caches. Therefore some passes are timed with
// and without packing alternately, and the next passes use the faster way. The results are bitwise
// equal.
type packed struct {
	plain
	rows      kernels.Packed
	own       int          // number of own vertices
	alone     bool         // whether the rows are packed in place
	train     bool         // whether the current pass trains
	packs     bool         // whether the current pass packs
	pass      int          // number of training passes that have gathered
	ready     atomic.Int64 // number of packed rows
	values    atomic.Int64 // number of values in them
	spent     atomic.Int64 // nanoseconds of all workers in this pass, including packing
	bestTimes [2]int64     // minimum of passes without and with packed rows, 0 if unknown
}

// Packing needs packedDegree edges per vertex, so that it is cheap compared with the gather, and
// packedBytes of rows, more than fit in the caches of a core.
var (
	packedDegree = 8
	packedBytes  = 4 << 20
)

// Every searchPasses passes, both ways are timed searchTurns times in alternation, beginning with
// packed rows. The first pass of a run is cold and not timed.
const (
	searchPasses = 64
	firstSearch  = 1
	searchTurns  = 2
)

// newPacked returns the form of the rows that a stage of layer l publishes: packed if there is idle memory
// and packing may be faster.
func (w *Work) newPacked(l int, stage model.Stage, o Options) form {
	if o.Asynchronous || w.own.Weights.Len() > 0 {
		return plain{}
	}
	idle, s, alone := w.store.IdleRows(l, stage), w.shard, false
	whole := stage == model.Emit && w.store.Network.Spec.Whole(l) // other ranks read the rows before their dropout
	if idle.IsNil() && (whole || w.noGhostReaders() && !o.OneWay) {
		idle, alone = w.store.GatherOnly(l, stage), true
	}
	if idle.IsNil() || !w.ops.Packs(idle.Cols) || idle.Bytes() < packedBytes || len(s.In.Cols) < packedDegree*s.NumOwn() {
		return plain{}
	}
	bits := mapped.Make[uint64](w.arena.For(PackedRows), kernels.PackedWords*idle.Rows)
	return &packed{rows: kernels.NewPacked(idle, bits), own: s.NumOwn(), alone: alone}
}

// noGhostReaders reports whether no other rank reads this rank's rows or their sums.
func (w *Work) noGhostReaders() bool {
	p := w.Plan
	return p.Ghosts == 0 && p.Sums == 0 && len(p.SendRows) == 0
}

func (k *packed) begin(p model.Pass) {
	if spent := k.spent.Swap(0); spent > 0 && k.train {
		k.recordTime(spent)
	}
	k.ready.Store(0)
	k.values.Store(0)
	k.train, k.packs = p.Train, p.Train && k.shouldPack()
}

// recordTime records the time of a training pass that has gathered.
func (k *packed) recordTime(spent int64) {
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

// shouldPack reports whether the next pass packs.
func (k *packed) shouldPack() bool {
	if turn := k.pass%searchPasses - firstSearch; turn >= 0 && turn < 2*searchTurns {
		return turn%2 == 0
	}
	return k.bestTimes[1] > 0 && k.bestTimes[1] < k.bestTimes[0]
}

// complete reports whether all rows are packed.
func (k *packed) complete() bool { return k.ready.Load() == int64(k.own) }

func (k *packed) publish(i Interval, rows kernels.Mat) {
	if !k.packs {
		return
	}
	began := time.Now()
	k.values.Add(int64(i.Ops.Pack(k.rows, i.Lo, rows)))
	k.ready.Add(int64(rows.Rows))
	k.spent.Add(int64(time.Since(began)))
}

func (k *packed) gatherOwn(i Interval, dst kernels.Mat, m kernels.Edges, x kernels.Mat) {
	began := time.Now()
	switch {
	case k.packs && k.complete():
		i.Ops.SpMMPacked(dst, m, k.rows, k.values.Load(), false)
	case k.packs && k.alone:
		panic("graphwork: only some intervals are packed in place")
	default:
		i.Ops.SpMM(dst, m, x, false)
	}
	k.spent.Add(int64(time.Since(began)))
}
