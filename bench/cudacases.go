package bench

import (
	"fmt"
	"math"
	"unsafe"

	"siafu/bench/yardstick"
	"siafu/cuda"
	"siafu/cuda/device"
	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// gpuGraph is a graph on the device, in the formats of siafu and cuSPARSE.
type gpuGraph struct {
	rows, edges  int
	name         string
	degree       func(row int) int
	in, out      kernels.Edges // without scales
	row, col     kernels.Vector[float32]
	offsets      kernels.Vector[int32]
	values, ones device.Ptr // of each edge: its scales, and 1 in BF16
}

// gathers returns the lines of gathers on a dataset, which it places in the arena.
func (r *gpuRig) gathers(a *mapped.Arena, d *graph.Dataset) (cases []gpuCase) {
	g := r.place(a, d)
	for _, half := range []bool{false, true} {
		for _, width := range []int{classWidth, hiddenWidth, 256} {
			cases = append(cases, r.gatherCase(g, width, half))
		}
	}
	for _, heads := range []kernels.Attention{{Heads: 1, Width: classWidth}, {Heads: 8, Width: 8}, {Heads: 4, Width: 32}} {
		heads.Slope = 0.2
		cases = append(cases, r.attentionCases(g, heads)...)
	}
	return cases
}

func (r *gpuRig) place(a *mapped.Arena, d *graph.Dataset) *gpuGraph {
	g := &gpuGraph{rows: d.In.Rows(), edges: int(d.In.Offsets[d.In.Rows()]), name: d.Meta.Name}
	g.degree = func(row int) int { return int(d.In.Offsets[row+1] - d.In.Offsets[row]) }
	edges := func(m graph.CSR) kernels.Edges {
		bounds := kernels.Place(r.own, a, m.Offsets)
		return kernels.Edges{Begin: bounds.Part(0, g.rows), End: bounds.Part(1, g.rows+1), Cols: kernels.Place(r.own, a, m.Cols)}
	}
	g.in = edges(d.In)
	if g.out = g.in; d.Meta.Directed {
		g.out = edges(d.Out)
	}
	row, col := positives(g.rows, 1), positives(g.rows, 2)
	g.row, g.col = kernels.Place(r.own, a, row), kernels.Place(r.own, a, col)
	switch {
	case r.sparse == nil:
	case g.edges > math.MaxInt32:
		r.miss("cuSPARSE", fmt.Errorf("%d edges, where its indices of 4 bytes count to %d", g.edges, math.MaxInt32))
	default:
		r.placeValues(a, d, g, row, col)
	}
	return g
}

// placeValues makes the additional arrays of cuSPARSE: a value per edge, and offsets of 4
// bytes.
func (r *gpuRig) placeValues(a *mapped.Arena, d *graph.Dataset, g *gpuGraph, row, col []float32) {
	offsets, values, ones := make([]int32, g.rows+1), make([]float32, g.edges), make([]uint16, g.edges)
	for v := range g.rows {
		for e := d.In.Offsets[v]; e < d.In.Offsets[v+1]; e++ {
			values[e], ones[e] = row[v]*col[d.In.Cols[e]], 0x3f80
		}
		offsets[v+1] = int32(d.In.Offsets[v+1])
	}
	g.offsets = kernels.Place(r.own, a, offsets)
	g.values = gpuAddress(kernels.Place(r.own, a, values).Address())
	g.ones = gpuAddress(kernels.Place(r.own, a, ones).Address())
}

// gpuAddress returns p as a device address.
func gpuAddress(p unsafe.Pointer) device.Ptr { return device.Ptr(uintptr(p)) }

// gatherCase returns a gather of rows of the given width: float32 with both scales, like
// GCN's, or BF16 without, because Narrow applies them to the rows.
func (r *gpuRig) gatherCase(g *gpuGraph, width int, half bool) gpuCase {
	n, e, w := float64(g.rows), float64(g.edges), float64(width)
	c := gpuCase{work: work{kernel: "SpMM", shape: fmt.Sprintf("%s %d", g.name, width), edges: e, flops: 2 * e * w,
		bytes: e*(8+4*w) + n*(24+4*w)}}
	if half {
		c.kernel, c.bytes = "SpMM bf16", e*(4+2*w)+n*(20+4*w)
	}
	c.prepare = func(a *mapped.Arena) (gpuWork, error) {
		edges, x := g.in, r.positive(a, g.rows, width, 3)
		if half {
			rows := kernels.NewHalf(r.own, a, g.rows, width, kernels.HalfSlack)
			r.own.Narrow(rows, x, kernels.Vector[float32]{})
			x = rows
		} else {
			edges.RowScale, edges.ColScale = g.row, g.col
		}
		dst := kernels.NewMat(r.own, a, g.rows, width)
		work := gpuWork{
			sides:   []gpuSide{{"siafu", r.own.Stream(), func() error { r.own.SpMM(dst, edges, x, false); return nil }}},
			results: []kernels.Mat{dst}, terms: g.degree,
		}
		return work, r.addSparse(a, &work, g, x, half)
	}
	return c
}

// addSparse adds cuSPARSE to a gather, with each supported algorithm. Descriptors and
// workspaces are reused.
func (r *gpuRig) addSparse(a *mapped.Arena, work *gpuWork, g *gpuGraph, x kernels.Mat, half bool) error {
	if r.sparse == nil || g.offsets.Len() == 0 || g.edges == 0 {
		return nil
	}
	m := device.CSR{
		Rows: g.rows, Cols: g.rows, Edges: g.edges, Half: half,
		Offsets: gpuAddress(g.offsets.Address()), Index: gpuAddress(g.in.Cols.Address()), Values: g.values,
	}
	if half {
		m.Values = g.ones
	}
	var kept []device.SpMM
	work.close = func() {
		for _, p := range kept {
			_ = p.Close() // a device that fails here fails the next call too
		}
	}
	for _, algorithm := range []device.Algorithm{device.DefaultAlgorithm, device.RowMajor, device.Deterministic} {
		name := "cuSPARSE " + algorithm.String()
		c := kernels.NewMat(r.own, a, g.rows, x.Cols)
		if err := r.device.Synchronize(); err != nil {
			return err
		}
		p, err := r.sparse.SpMM(m, device.Dense{Rows: g.rows, Cols: x.Cols, At: gpuAddress(x.Address()), Half: half},
			device.Dense{Rows: g.rows, Cols: x.Cols, At: gpuAddress(c.Address())}, algorithm)
		if err != nil { // this version lacks the algorithm or the type, or memory is short
			r.miss(fmt.Sprintf("%s of %d columns, bf16: %t", name, x.Cols, half), err)
			continue
		}
		kept = append(kept, p)
		work.sides = append(work.sides, gpuSide{name, r.own.Stream(), p.Run})
		work.results = append(work.results, c)
	}
	return nil
}

// attentionCases returns a GAT layer's gathers along edges, forward and backward.
func (r *gpuRig) attentionCases(g *gpuGraph, at kernels.Attention) []gpuCase {
	n, e := float64(g.rows), float64(g.edges)
	h, w := float64(at.Heads), float64(at.Width)
	shape := fmt.Sprintf("%s %d heads of %d", g.name, at.Heads, at.Width)
	line := func(kernel string, bytes, flops float64, call func(o attentionOperands)) gpuCase {
		return gpuCase{work: work{kernel, shape, e, flops, bytes}, prepare: func(a *mapped.Arena) (gpuWork, error) {
			o := r.attention(a, g, at)
			return gpuWork{sides: []gpuSide{{"siafu", r.own.Stream(), func() error { call(o); return nil }}}}, nil
		}}
	}
	return []gpuCase{
		line("AttentionGather", e*(4+4*h*(w+1))+8*n*h*w, 2*e*h*w+25*e*h, func(o attentionOperands) {
			r.own.AttentionGather(at, o.out, kernels.Mat{}, o.stats, g.in, o.emitted, o.back.R, false)
		}),
		line("AttentionGradDst", e*(4+4*h*(w+1))+4*n*h*w, 2*e*h*w+25*e*h, func(o attentionOperands) {
			r.own.AttentionGradDst(at, o.grad, kernels.Mat{}, g.in, o.emitted, o.back, false)
		}),
		line("AttentionGradSrc", e*(4+4*h*(w+3))+8*n*h*w, 4*e*h*w+25*e*h, func(o attentionOperands) {
			r.own.AttentionGradSrc(at, o.source, g.out, 0, g.rows, o.emitted.X, o.back)
		}),
	}
}

// attentionOperands has the operands of all three gathers.
type attentionOperands struct {
	emitted                  kernels.Emitted
	back                     kernels.Attended
	out, stats, grad, source kernels.Mat
}

func (r *gpuRig) attention(a *mapped.Arena, g *gpuGraph, at kernels.Attention) attentionOperands {
	each := func(seed uint64) kernels.Mat { return r.positive(a, g.rows, at.Heads, seed) }
	room := func(cols int) kernels.Mat { return kernels.NewMat(r.own, a, g.rows, cols) }
	return attentionOperands{
		emitted: kernels.Emitted{X: r.positive(a, g.rows, at.Emitted(), 1)},
		back:    kernels.Attended{R: each(2), LSE: each(3), Grad: r.positive(a, g.rows, at.Columns(), 4), Dots: each(5)},
		out:     room(at.Columns()), stats: room(2 * at.Heads), grad: room(at.Heads), source: room(at.Emitted()),
	}
}

// products returns the dense products of layers on the given number of vertices, siafu's and
// cuBLAS's.
func (r *gpuRig) products(rows int) []gpuCase {
	var cases []gpuCase
	for _, c := range productCases(rows) {
		cases = append(cases, gpuCase{work: c.work, prepare: func(a *mapped.Arena) (gpuWork, error) {
			return r.product(a, c.product), nil
		}})
	}
	return cases
}

func (r *gpuRig) product(a *mapped.Arena, p product) gpuWork {
	m, n, k := p.m, p.n, p.k
	x, y := r.positive(a, m, k, 1), r.positive(a, k, n, 2)
	switch p.form {
	case yardstick.TransA:
		x = x.Reshape(k, m)
	case yardstick.TransB:
		y = y.Reshape(n, k)
	}
	work := gpuWork{terms: func(int) int { return k }}
	for _, side := range []struct {
		name string
		ops  *cuda.Ops
	}{{"siafu", r.own}, {"cuBLAS", r.blas}} {
		if side.ops == nil {
			continue
		}
		dst := kernels.NewMat(r.own, a, m, n)
		call := map[yardstick.Form]func(dst, a, b kernels.Mat, add bool){
			yardstick.Plain: side.ops.MatMul, yardstick.TransB: side.ops.MatMulTransB, yardstick.TransA: side.ops.MatMulTransA,
		}[p.form]
		work.sides = append(work.sides, gpuSide{side.name, side.ops.Stream(), func() error { call(dst, x, y, false); return nil }})
		work.results = append(work.results, dst)
	}
	return work
}
