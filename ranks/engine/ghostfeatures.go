package engine

import (
	"fmt"
	"slices"
	"time"
	"unsafe"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
	"siafu/ranks/schedule"
	"siafu/ranks/world"
)

// Features and dropout masks depend only on the vertex. A rank with the features of its ghosts
// samples their masks as their owners do, and computes their output of the first layer itself.
// It also computes their contribution to the gradient of the weights, which ranks sum anyway.
// So the first layer exchanges nothing in an epoch, in either direction: the features are
// fetched once, before the first epoch.

// cachedGhosts are ghosts with cached features; nil without them.
type cachedGhosts struct {
	store     *model.Store  // of the ghosts' output
	lists     kernels.Lists // their output, if features are gathered as lists
	emits     []model.Do    // stages that compute it
	intervals []*interval
}

// GhostFeatures is the purpose of the memory for cached features of ghosts.
const GhostFeatures = "features of ghosts, kept"

// cacheGhosts allocates the output of ghosts with cached features, else returns nil. All
// memory comes from a.
func (s *lockstep) cacheGhosts(e *Engine, a *mapped.Arena) *cachedGhosts {
	if !s.store.Network.Spec.KnownGhosts || e.Peers.Size() == 1 {
		return nil
	}
	ops, sh := s.adder, e.Shard
	in := model.Place(ops, a.For(GhostFeatures), e.ghostFeatures, sh.Ghosts, nil)
	k := &cachedGhosts{store: model.NewStore(s.store.Network, in, model.Emission, ops, a.For(Activations))}
	k.emits, k.lists = k.store.Do(0, model.Emit), k.store.Lists(a.For(graphwork.Lists))
	bounds, weights := ghostPieces(sh.NumGhosts()), kernels.Mat{}
	if len(s.intervals) > 0 {
		weights = s.intervals[0].frame.Weights
	} else { // in a sketch, where one piece counts for all vertices
		weights = kernels.NewMat(ops, mapped.NewSketch(), e.Network.NumWeights(), 1)
		bounds = append(make([]int, len(bounds)-1), sh.NumGhosts())
	}
	for at, lo := range bounds[:len(bounds)-1] {
		i := &interval{index: at, lo: lo, hi: bounds[at+1]}
		i.frame = k.store.Frame(i.lo, i.hi, ops, weights)
		k.intervals = append(k.intervals, i)
	}
	return k
}

// covers reports whether layer l exchanges nothing.
func (k *cachedGhosts) covers(l int) bool { return k != nil && l == 0 }

// pieces returns the number of tasks that compute their output.
func (k *cachedGhosts) pieces() int {
	if k == nil {
		return 0
	}
	return len(k.intervals)
}

// begin prepares a pass along their edges.
func (k *cachedGhosts) begin(g *graphwork.Work, p model.Pass) {
	if k == nil {
		return
	}
	l := g.Layer(0)
	if l.Listed() {
		l.SetGhostLists(k.lists)
		return
	}
	l.Ghosts = k.store.Emitted(0, p)
	g.Enter(l, p, k.intervals[0].frame.Weights)
}

// emit computes the output of a piece of the ghosts.
func (k *cachedGhosts) emit(o kernels.Ops, s *lockstep, l *graphwork.Layer, t schedule.Task) {
	i := k.intervals[t.Interval]
	if l.Listed() {
		l.ListGhosts(o, i.frame, s.pass)
		return
	}
	for _, d := range k.emits {
		i.frame.Run(d, s.pass, o)
	}
	s.graph.PublishGhosts(o, l, i.lo, i.hi-i.lo)
}

// grads computes the gradients of the output of a piece of the ghosts, and emitBackward their
// contribution to the weights' gradient.
func (k *cachedGhosts) grads(o kernels.Ops, s *lockstep, l *graphwork.Layer, piece int) {
	i := k.intervals[piece]
	s.graph.GhostGrads(o, l, i.lo, i.part(k.store.Backward(0, model.EmittedGrad)))
}

func (k *cachedGhosts) emitBackward(o kernels.Ops, piece int, p model.Pass) {
	k.intervals[piece].frame.Run(model.Do{Layer: 0, Stage: model.EmitBackward}, p, o)
}

// gradIntervals returns the intervals of ghosts that contribute to the gradient of a layer's
// weights.
func (k *cachedGhosts) gradIntervals(layer int) []*interval {
	if !k.covers(layer) || !k.store.Network.GathersBackward(0) {
		return nil
	}
	return k.intervals
}

// cachesGhosts reports whether the features of ghosts are cached.
func (e *Engine) cachesGhosts() bool { return e.Network.KnownGhosts && e.Peers.Size() > 1 }

// fetchGhostFeatures fetches the features of ghosts, if they are cached. Memory comes from a.
// Collective over the graph ranks.
func (e *Engine) fetchGhostFeatures(a *mapped.Arena) (err error) {
	if !e.cachesGhosts() {
		return nil
	}
	began, scratch := time.Now(), mapped.NewArena()
	defer scratch.Free()
	if e.Shard.Features.Sparse != nil {
		e.ghostFeatures, err = e.fetchSparse(a.For(GhostFeatures), scratch)
	} else {
		e.ghostFeatures, err = e.fetchDense(a.For(GhostFeatures), scratch)
	}
	if err != nil {
		return err
	}
	rows := []int64{int64(e.ghostFeatures.Rows)}
	if err := world.SumInt64s(e.Peers, rows); err != nil {
		return err
	}
	e.Reporter.Note(fmt.Sprintf("ghost_features rows=%d columns=%d seconds=%.3f\n", rows[0], e.ghostFeatures.Dim, time.Since(began).Seconds()))
	return nil
}

// fetchDense fetches rows of dense features.
func (e *Engine) fetchDense(a, scratch *mapped.Arena) (graph.Features, error) {
	sh, dim := e.Shard, e.Shard.FeatureDim
	out := mapped.Make[float32](scratch, len(sh.SendRows)*dim)
	for k, r := range sh.SendRows {
		copy(out[k*dim:], sh.Features.Dense[int(r)*dim:(int(r)+1)*dim])
	}
	in := mapped.Make[float32](a, sh.NumGhosts()*dim)
	times := func(q []int64) []int64 { return scaleOffsets(q, dim) }
	err := alltoall(e.Peers, out, times(sh.SendStart), in, times(sh.GhostStart))
	return graph.Features{Rows: sh.NumGhosts(), Dim: dim, Dense: in}, err
}

// fetchSparse fetches rows of sparse features.
func (e *Engine) fetchSparse(a, scratch *mapped.Arena) (graph.Features, error) {
	sh, x := e.Shard, e.Shard.Features.Sparse
	sent, total := mapped.Make[uint32](scratch, len(sh.SendRows)), int64(0)
	for k, r := range sh.SendRows {
		sent[k] = uint32(x.Offsets[r+1] - x.Offsets[r])
		total += int64(sent[k])
	}
	cols, vals := mapped.Make[uint32](scratch, int(total))[:0], mapped.Make[float32](scratch, int(total))[:0]
	for _, r := range sh.SendRows {
		from, to := x.Offsets[r], x.Offsets[r+1]
		cols, vals = append(cols, x.Cols[from:to]...), append(vals, x.Vals[from:to]...)
	}
	come := mapped.Make[uint32](scratch, sh.NumGhosts())
	if err := alltoall(e.Peers, sent, sh.SendStart, come, sh.GhostStart); err != nil {
		return graph.Features{}, err
	}
	rows := graph.SparseRows{Offsets: mapped.Make[int64](a, len(come)+1)}
	for g, n := range come {
		if int(n) > sh.FeatureDim {
			return graph.Features{}, fault.New(fault.Runtime, "exchange", "", "vertex %d has %d features on another rank, want %d", sh.Ghosts[g], n, sh.FeatureDim)
		}
		rows.Offsets[g+1] = rows.Offsets[g] + int64(n)
	}
	n := int(rows.Offsets[len(come)])
	rows.Cols, rows.Vals = mapped.Make[uint32](a, n), mapped.Make[float32](a, n)
	outStart, inStart := nonZerosBefore(sent, sh.SendStart), nonZerosBefore(come, sh.GhostStart)
	err := alltoall(e.Peers, cols, outStart, rows.Cols, inStart)
	if err == nil {
		err = alltoall(e.Peers, vals, outStart, rows.Vals, inStart)
	}
	return graph.Features{Rows: len(come), Dim: sh.FeatureDim, Sparse: &rows}, err
}

// sketchGhostFeatures allocates the memory of fetchGhostFeatures. It assumes the same number
// of non-zeros per ghost as per own vertex.
func (e *Engine) sketchGhostFeatures(a, scratch *mapped.Arena) {
	if !e.cachesGhosts() {
		return
	}
	a, e.ghostFeatures = a.For(GhostFeatures), graph.Features{Rows: e.Shard.NumGhosts(), Dim: e.Shard.FeatureDim}
	x, sent := e.Shard.Features.Sparse, len(e.Shard.SendRows)
	if x == nil {
		e.ghostFeatures.Dense = mapped.Make[float32](a, e.ghostFeatures.Rows*e.ghostFeatures.Dim)
		mapped.Make[float32](scratch, sent*e.ghostFeatures.Dim)
		return
	}
	each := float64(len(x.Cols)) / float64(max(e.Shard.NumOwn(), 1))
	mapped.Make[uint32](scratch, sent+e.ghostFeatures.Rows+int(2*each*float64(sent)))
	n := int(each * float64(e.ghostFeatures.Rows))
	e.ghostFeatures.Sparse = &graph.SparseRows{Offsets: mapped.Make[int64](a, e.ghostFeatures.Rows+1), Cols: mapped.Make[uint32](a, n), Vals: mapped.Make[float32](a, n)}
}

// scaleOffsets converts positions of rows to positions of numbers, width per row.
func scaleOffsets(rows []int64, width int) []int64 {
	list := slices.Clone(rows)
	for q := range list {
		list[q] *= int64(width)
	}
	return list
}

// nonZerosBefore returns, for each row in start, the number of non-zeros before it; counts has
// the non-zeros of each row.
func nonZerosBefore(counts []uint32, start []int64) []int64 {
	list, sum, row := slices.Clone(start), int64(0), int64(0)
	for q, first := range start {
		for ; row < first; row++ {
			sum += int64(counts[row])
		}
		list[q] = sum
	}
	return list
}

// alltoall sends out[outStart[q]:outStart[q+1]] to each rank q, and receives
// in[inStart[q]:inStart[q+1]] from it. Collective.
func alltoall[T mapped.Elem](c world.Comm, out []T, outStart []int64, in []T, inStart []int64) error {
	bytes := func(start []int64) (list []int) {
		for q := range start[1:] {
			list = append(list, int(start[q+1]-start[q])*int(unsafe.Sizeof(*new(T))))
		}
		return list
	}
	r, err := c.Ialltoallv(mapped.Bytes(out), bytes(outStart), mapped.Bytes(in), bytes(inStart))
	if err != nil {
		return err
	}
	return r.Wait()
}
