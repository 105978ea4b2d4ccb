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
	"siafu/ranks/world"
)

// fetchRows sets dst [ghosts x width] to rows of own [own x width] of their owners. Collective
// over the graph ranks.
func fetchRows[T mapped.Elem](e *Engine, h *localHalo, dst, own []T, width int) error {
	first, scratch := 0, mapped.NewArena()
	defer scratch.Free()
	for k, p := range h.plans {
		out := mapped.Make[T](scratch, len(p.SendRows)*width)
		for i, r := range p.SendRows {
			copy(out[i*width:(i+1)*width], own[int(r)*width:(int(r)+1)*width])
		}
		in := dst[first*width : h.ends[k]*width]
		if err := alltoall(e.Peers, out, scaleOffsets(p.SendStart, width), in, scaleOffsets(p.RecvStart, width)); err != nil {
			return err
		}
		first = h.ends[k]
	}
	return nil
}

// fetchGhostFeatures fetches the features of ghosts, if their rows are computed from them.
// Memory comes from a. Collective over the graph ranks.
func (e *Engine) fetchGhostFeatures(net *model.Network, a *mapped.Arena) (err error) {
	e.ghostFeatures = graph.Features{Rows: len(e.halo.ids), Dim: e.Shard.FeatureDim}
	if !e.computesGhosts() || !net.ReadsFeatures() {
		return nil
	}
	began := time.Now()
	own, to, values := e.Shard.Features, &e.ghostFeatures, e.ghostFeatures.Rows*e.ghostFeatures.Dim
	switch {
	case own.Sparse != nil:
		to.Sparse, err = e.fetchSparse(a.For(GhostFeatures))
	case own.Half != nil:
		to.Half = mapped.Make[graph.BF16](a.For(GhostFeatures), values)
		err = fetchRows(e, e.halo, to.Half, own.Half, to.Dim)
	default:
		to.Dense = mapped.Make[float32](a.For(GhostFeatures), values)
		err = fetchRows(e, e.halo, to.Dense, own.Dense, to.Dim)
	}
	if err != nil {
		return err
	}
	rows := []int64{int64(e.ghostFeatures.Rows)}
	if err := world.SumInt64s(e.Peers, rows); err != nil {
		return err
	}
	e.Reporter.Note(fmt.Sprintf("ghost_features rows=%d columns=%d seconds=%.3f\n", rows[0],
		e.ghostFeatures.Dim, time.Since(began).Seconds()))
	return nil
}

// fetchSparse fetches rows of sparse features.
func (e *Engine) fetchSparse(a *mapped.Arena) (*graph.SparseRows, error) {
	sh, x, h, scratch := e.Shard, e.Shard.Features.Sparse, e.halo, mapped.NewArena()
	defer scratch.Free()
	counts := make([]uint32, sh.NumOwn())
	for v := range counts {
		counts[v] = uint32(x.Offsets[v+1] - x.Offsets[v])
	}
	come := make([]uint32, len(h.ids))
	if err := fetchRows(e, h, come, counts, 1); err != nil {
		return nil, err
	}
	rows := &graph.SparseRows{Offsets: mapped.Make[int64](a, len(come)+1)}
	for g, n := range come {
		if int(n) > sh.FeatureDim {
			return nil, fault.New(fault.Runtime, "exchange", "",
				"vertex %d has %d features on another rank, want %d", h.ids[g], n, sh.FeatureDim)
		}
		rows.Offsets[g+1] = rows.Offsets[g] + int64(n)
	}
	n := int(rows.Offsets[len(come)])
	rows.Cols, rows.Vals = mapped.Make[uint32](a, n), mapped.Make[float32](a, n)
	first := 0
	for k, p := range h.plans {
		sent, total := mapped.Make[uint32](scratch, len(p.SendRows)), 0
		for i, r := range p.SendRows {
			sent[i] = counts[r]
			total += int(counts[r])
		}
		cols, vals := mapped.Make[uint32](scratch, total)[:0], mapped.Make[float32](scratch, total)[:0]
		for _, r := range p.SendRows {
			from, to := x.Offsets[r], x.Offsets[r+1]
			cols, vals = append(cols, x.Cols[from:to]...), append(vals, x.Vals[from:to]...)
		}
		outStart, inStart := nonZerosBefore(sent, p.SendStart), nonZerosBefore(come[first:h.ends[k]], p.RecvStart)
		lo, hi := rows.Offsets[first], rows.Offsets[h.ends[k]]
		if err := alltoall(e.Peers, cols, outStart, rows.Cols[lo:hi], inStart); err != nil {
			return nil, err
		}
		if err := alltoall(e.Peers, vals, outStart, rows.Vals[lo:hi], inStart); err != nil {
			return nil, err
		}
		first = h.ends[k]
	}
	return rows, nil
}

// ghostInputExchange fetches the ghosts' rows of cached inputs, some columns at a time. The zero value
// fetches none.
type ghostInputExchange struct {
	hops []*halo.Exchange
	ends []int
	ops  kernels.Ops
}

// newGhostInput allocates the cached ÂX of ghosts in a, if their rows are computed from it, and
// in scratch the means to fetch it.
func (e *Engine) newGhostInput(width int, a, scratch *mapped.Arena) (g ghostInputExchange) {
	if !e.computesGhosts() {
		return g
	}
	g = ghostInputExchange{ends: e.halo.ends, ops: e.workers.newOps()}
	e.ghostInput = model.NewInput(g.ops, len(e.halo.ids), e.Network.Dims[0], e.Config.Features == "bf16", a.For(GhostInput))
	for _, p := range e.halo.plans {
		g.hops = append(g.hops, halo.NewExchange(e.Peers, p, codec.Exact(e.Codecs[0]), e.packers, g.ops, scratch, width))
	}
	return g
}

// fetch receives columns [at, at+own.Cols) of the ghosts' dst from their owners, and sends the
// own ones [own x ·]. Collective over the graph ranks.
func (g ghostInputExchange) fetch(dst kernels.Mat, at int, own kernels.Mat) error {
	first := 0
	for k, x := range g.hops {
		if err := x.BeginForward(own, halo.Key{}); err != nil {
			return err
		}
		rows, err := x.EndForward()
		if err != nil {
			return err
		}
		g.ops.PutColumns(dst.Part(first, g.ends[k]), at, rows)
		first = g.ends[k]
	}
	return nil
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
