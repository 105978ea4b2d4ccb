package engine

import (
	"fmt"
	"slices"
	"time"
	"unsafe"

	"siafu/graph"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/graphwork"
	"siafu/ranks/schedule"
	"siafu/ranks/world"
)

// Until the first gather of an epoch, a vertex's rows depend only on its features, or on the
// cached ÂX of it, on the weights, and on dropout masks, which follow from the vertex id. A
// rank that has these inputs of its ghosts computes their rows itself, as their owners do, and
// also their contribution to the gradient of the weights, which ranks sum anyway. So the layer
// that gathers first exchanges nothing in an epoch, in either direction. The inputs are fetched
// once, before the first epoch. NeutronStar (Wang et al., SIGMOD'22, §4) calls this cached
// dependencies.

// localGhosts are the ghosts of a rank that computes their rows of model.Spec.GhostLayer; nil
// without them.
type localGhosts struct {
	layer             int           // GhostLayer
	store             *model.Store  // of the ghosts' values up to layer
	lists             kernels.Lists // their output, if features are gathered as lists
	forward, backward []model.Do    // stages of a piece
	intervals         []*interval   // pieces
}

// Purposes of the memory for ghosts' features and their cached ÂX.
const (
	GhostFeatures = "features of ghosts, kept"
	GhostInput    = "ÂX of ghosts, kept"
)

// newLocalGhosts allocates the values of ghosts whose rows are computed here, and returns nil
// if there are none. All memory comes from a.
func (s *lockstep) newLocalGhosts(e *Engine, a *mapped.Arena) *localGhosts {
	layer := s.store.Network.Spec.GhostLayer()
	if layer < 0 || e.Peers.Size() == 1 {
		return nil
	}
	ops, sh := s.adder, e.Shard
	in := model.Place(ops, a.For(GhostFeatures), e.ghostFeatures, sh.Ghosts, nil)
	k := &localGhosts{layer: layer, store: model.NewStore(s.store.Network, in, model.Emission, ops, a.For(Activations))}
	if !e.ghostInput.IsNil() {
		k.store.UseInput(e.ghostInput)
	}
	k.forward, k.backward = s.store.Network.EmissionStages()
	k.lists = k.store.Lists(a.For(graphwork.Lists))
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
func (k *localGhosts) covers(l int) bool { return k != nil && l == k.layer }

// pieces returns the number of tasks that compute the ghosts' rows.
func (k *localGhosts) pieces() int {
	if k == nil {
		return 0
	}
	return len(k.intervals)
}

// begin prepares a pass along the edges from ghosts.
func (k *localGhosts) begin(g *graphwork.Work, p model.Pass) {
	if k == nil {
		return
	}
	l := g.Layer(k.layer)
	if l.Listed() {
		l.SetGhostLists(k.lists)
		return
	}
	l.Ghosts = k.store.Emitted(k.layer, p)
	g.Enter(l, p, k.intervals[0].frame.Weights)
}

// emit computes the rows of a piece of the ghosts.
func (k *localGhosts) emit(o kernels.Ops, s *lockstep, l *graphwork.Layer, t schedule.Task) {
	i := k.intervals[t.Interval]
	if l.Listed() {
		l.ListGhosts(o, i.frame, s.pass)
		return
	}
	for _, d := range k.forward {
		i.frame.Run(d, s.pass, o)
	}
	s.graph.PublishGhosts(o, l, i.lo, i.hi-i.lo)
}

// grads computes the gradients of the rows of a piece of the ghosts, and emitBackward their
// contribution to the gradients of the weights.
func (k *localGhosts) grads(o kernels.Ops, s *lockstep, l *graphwork.Layer, piece int) {
	i := k.intervals[piece]
	s.graph.GhostGrads(o, l, i.lo, i.part(k.store.Backward(k.layer, model.EmittedGrad)))
}

func (k *localGhosts) emitBackward(o kernels.Ops, piece int, p model.Pass) {
	for _, d := range k.backward {
		k.intervals[piece].frame.Run(d, p, o)
	}
}

// gradIntervals returns the intervals of ghosts that contribute to the gradient of a layer's
// weights.
func (k *localGhosts) gradIntervals(layer int) []*interval {
	if k == nil || layer > k.layer || len(k.backward) == 0 {
		return nil
	}
	return k.intervals
}

// computesGhosts reports whether the ghosts' rows of the first gather are computed here.
func (e *Engine) computesGhosts() bool {
	return e.Network.GhostLayer() >= 0 && e.Peers.Size() > 1
}

// fetchGhostFeatures fetches the features of ghosts, if their rows are computed from them.
// Memory comes from a. Collective over the graph ranks.
func (e *Engine) fetchGhostFeatures(net *model.Network, a *mapped.Arena) (err error) {
	e.ghostFeatures = graph.Features{Rows: e.Shard.NumGhosts(), Dim: e.Shard.FeatureDim}
	if !e.computesGhosts() || !net.ReadsFeatures() {
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

// ghostInputExchange fetches the ghosts' rows of cached inputs, some columns at a time; nil if
// ranks need none.
type ghostInputExchange struct {
	*halo.Exchange
	ops kernels.Ops
}

// newGhostInput allocates the cached ÂX of ghosts in a, if their rows are computed from it, and
// in scratch the means to fetch it.
func (e *Engine) newGhostInput(width int, a, scratch *mapped.Arena) *ghostInputExchange {
	if !e.computesGhosts() {
		return nil
	}
	ops, n := e.workers.newOps(), e.Shard.NumGhosts()
	a = a.For(GhostInput)
	e.ghostInput = model.NewInput(ops, n, e.Network.Dims[0], e.Config.Features == "bf16", a)
	plan := halo.Plain(e.Shard).Plan
	return &ghostInputExchange{halo.NewExchange(e.Peers, plan, codec.Exact(e.Codecs[0]), e.packers, ops, scratch, width), ops}
}

// fetch receives columns [at, at+own.Cols) of the ghosts' dst from their owners, and sends the
// own ones [own x ·]. Collective over the graph ranks.
func (g *ghostInputExchange) fetch(dst kernels.Mat, at int, own kernels.Mat) error {
	if g == nil {
		return nil
	}
	if err := g.BeginForward(own, halo.Key{}); err != nil {
		return err
	}
	rows, err := g.EndForward()
	if err == nil {
		g.ops.PutColumns(dst, at, rows)
	}
	return err
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
func (e *Engine) sketchGhostFeatures(net *model.Network, a, scratch *mapped.Arena) {
	e.ghostFeatures = graph.Features{Rows: e.Shard.NumGhosts(), Dim: e.Shard.FeatureDim}
	if !e.computesGhosts() || !net.ReadsFeatures() {
		return
	}
	a = a.For(GhostFeatures)
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
