package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"siafu/bench/machine"
	"siafu/graph"
	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/ranks/config"
)

// counting returns an Ops that counts the work of its calls, and the work of all calls of a kernel.
func counting(t *testing.T) (*watchedOps, func(kernel string) *demand) {
	team := kernels.NewTeam(1)
	t.Cleanup(team.Close)
	w := newWatch(0, [machine.Levels]int{1 << 15, 1 << 17, 1 << 19})
	o := w.wrap(team).(*watchedOps)
	o.Begin("GA", 1)
	return o, func(kernel string) *demand {
		d := w.demands[kernelID{1, "GA", kernel}]
		if d == nil {
			t.Fatalf("no %s among %v", kernel, w.demands)
		}
		return d
	}
}

func mat(rows, cols int, x ...float32) kernels.Mat {
	return kernels.HostMat(rows, cols, append(x, make([]float32, rows*cols-len(x))...))
}

// A product [2 x 3] [3 x 4] with one zero: five elements are multiplied with four columns.
func TestWorkOfProducts(t *testing.T) {
	o, of := counting(t)
	a, b, dst := mat(2, 3, 1, 2, 0, 4, 5, 6), mat(3, 4), mat(2, 4)
	o.MatMul(dst, a, b, false)
	d := of("MatMul 3 x 4")
	if d.multiplyAdds != 5*4 || d.withZeros != 6*4 || d.columns != 4 || d.calls != 1 {
		t.Errorf("%+v", d)
	}
	if want := [machine.Levels]float64{3: 4 * (2*3 + 3*4 + 2*4)}; *d.reads(0) != want {
		t.Errorf("operands %v, want %v", d.reads(0), want)
	}
	o.MatMul(dst, a, b, false)
	if d.reads(0)[0] != d.reads(0)[3] {
		t.Errorf("operands of the second call come from %v, want the first cache", d.reads(0))
	}
	o.MatMulTransA(mat(3, 4), a, dst, false)
	o.MatMulTransB(mat(2, 3), dst, b, false) // dst [2 x 4] is 0
	if a, b := of("MatMulTransA 3 x 4"), of("MatMulTransB 4 x 3"); a.multiplyAdds != 5*4 || b.withZeros != 8*3 || b.multiplyAdds != 0 {
		t.Errorf("%+v, %+v", a, b)
	}
}

// Vertex 0 has edges from 1 and 2, vertex 1 from 2, vertex 2 from 0 and 1. With self loops three more rows are read,
// with a mask of vertex 0 only those into it.
func TestWorkOfGathers(t *testing.T) {
	g := kernels.Gather{Begin: []int64{0, 2, 3}, End: []int64{2, 3, 5}, Cols: []uint32{1, 2, 2, 0, 1}}
	for name, tc := range map[string]struct {
		change func(e *kernels.Edges)
		edges  float64
	}{
		"edges":      {func(*kernels.Edges) {}, 5},
		"self loops": {func(e *kernels.Edges) { e.SelfLoops = true }, 8},
		"rows":       {func(e *kernels.Edges) { e.RowMask = kernels.NewVertexMask(3, func(v int) bool { return v == 0 }) }, 2},
		"columns":    {func(e *kernels.Edges) { e.ColumnMask = kernels.NewVertexMask(3, func(v int) bool { return v == 2 }) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			o, of := counting(t)
			e := g.Edges()
			tc.change(&e)
			o.SpMM(mat(3, 100), e, mat(3, 100), false)
			d := of("SpMM x 100")
			_, rows, levels := d.traffic()
			if d.multiplyAdds != tc.edges*100 || rows != tc.edges*400 {
				t.Errorf("%v multiply-adds and %v bytes of rows, want %v edges", d.multiplyAdds, rows, tc.edges)
			}
			if distinct := 3.; name == "edges" && (levels[3] != distinct*400 || levels[0] != (5-distinct)*400) {
				t.Errorf("rows come from %v, want each of 3 rows once from memory and then from the first cache", levels)
			}
		})
	}
}

// Along each edge a head has an exponential, and its columns are multiplied once forward, and twice backward.
func TestWorkOfAttention(t *testing.T) {
	o, of := counting(t)
	g := kernels.Gather{Begin: []int64{0, 2, 3}, End: []int64{2, 3, 5}, Cols: []uint32{1, 2, 2, 0, 1}, SelfLoops: true}
	a := kernels.Attention{Heads: 2, Width: 5, Slope: 0.2}
	x, stats, r := mat(3, a.Emitted()), mat(3, 4), mat(3, 2)
	o.AttentionGather(a, mat(3, 10), kernels.Mat{}, stats, g.Edges(), kernels.Emitted{X: x}, r, false)
	own := kernels.Attended{R: r, LSE: mat(3, 2), Grad: mat(3, 10), Dots: mat(3, 2)}
	o.AttentionGradSrc(a, mat(3, a.Emitted()), g.Edges(), 0, 3, x, own)
	o.AttentionGradDst(a, mat(3, 2), kernels.Mat{}, g.Edges(), kernels.Emitted{X: x}, own, false)
	for kernel, times := range map[string]float64{"AttentionGather 2 x 5": 1, "AttentionGradDst 2 x 5": 1, "AttentionGradSrc 2 x 5": 2} {
		if d := of(kernel); d.exponentials != 8*2 || d.multiplyAdds != times*8*10 || d.bytes[40] == nil {
			t.Errorf("%s: %+v", kernel, d)
		}
	}
}

// Rows 0 and 2 have two and one non-zeros, which read rows of four columns. The rows [1, 3) have one. Dropout keeps
// half of the non-zeros.
func TestWorkOfSparseFeatures(t *testing.T) {
	o, of := counting(t)
	xs := kernels.PlaceSparse(o, mapped.NewArena(), graph.SparseRows{
		Offsets: []int64{0, 2, 2, 3}, Cols: []uint32{0, 4, 1}, Vals: []float32{1, 2, 3},
	})
	for _, tc := range []struct {
		xs                           kernels.Sparse
		drop                         *kernels.Dropout
		multiplyAdds, operands, rows float64 // so far
	}{
		{xs, nil, 3 * 4, 3*8 + 2*3*8 + 4*3*4, 3 * 16},
		{xs.Part(1, 3), nil, 4 * 4, 4*8 + 2*5*8 + 4*5*4, 4 * 16},
		{xs, &kernels.Dropout{P: 0.5}, 5.5 * 4, 7*8 + 2*8*8 + 4*8*4, 5 * 16},
	} {
		o.SparseMatMul(mat(tc.xs.Rows(), 4), tc.xs, mat(5, 4), tc.drop)
		d := of("SparseMatMul x 4")
		if operands, rows, _ := d.traffic(); d.multiplyAdds != tc.multiplyAdds || operands != tc.operands || rows != tc.rows {
			t.Errorf("%+v, %v bytes of operands, %v of rows, want %+v", d, operands, rows, tc)
		}
	}
	if d := of("SparseMatMul x 4"); d.random != 3 {
		t.Errorf("%v random numbers, want one for each non-zero", d.random)
	}
}

// Packed rows are read without their zeros: 33 of 48 values here, rounded down to lines.
func TestWorkOfPackedGathers(t *testing.T) {
	o, of := counting(t)
	if !o.Packs(48) {
		t.Skip("needs AVX-512")
	}
	g := kernels.Gather{Begin: []int64{0, 2, 3}, End: []int64{2, 3, 5}, Cols: []uint32{1, 2, 2, 0, 1}}
	x := mat(3, 48)
	for i := range x.Host() {
		x.Host()[i] = float32(max(i%48-14, 0))
	}
	p := kernels.NewPacked(x, make([]uint64, 3*kernels.PackedWords))
	kept := o.Pack(p, 0, x.Part(0, 2)) + o.Pack(p, 2, x.Part(2, 3))
	o.SpMMPacked(mat(3, 48), g.Edges(), p, int64(kept), false)
	d := of("SpMMPacked x 48")
	if _, rows, _ := d.traffic(); kept != 3*33 || d.multiplyAdds != 5*33 || rows != 5*128 {
		t.Errorf("%d values, %v multiply-adds, %v bytes of rows", kept, d.multiplyAdds, rows)
	}
}

// Maxima read a row for each edge. Gathers whose non-zeros are unknown have a time but no work.
func TestWorkOfOtherGathers(t *testing.T) {
	o, of := counting(t)
	g := kernels.Gather{Begin: []int64{0, 2, 3}, End: []int64{2, 3, 5}, Cols: []uint32{1, 2, 2, 0, 1}}
	x, arg, ids := mat(3, 100), mat(3, 100), kernels.HostVector([]uint32{0, 1, 2})
	o.MaxGather(mat(3, 100), arg, g.Edges(), x, ids, false)
	o.MaxGatherGrad(mat(3, 100), g.Edges(), arg, x, 0)
	for _, kernel := range []string{"MaxGather x 100", "MaxGatherGrad x 100"} {
		if _, rows, _ := of(kernel).traffic(); rows != 5*400 {
			t.Errorf("%s: %v bytes of rows", kernel, rows)
		}
	}
	o.SpMMLists(mat(3, 100), g.Edges(), kernels.NewLists(3, 100, make([]uint64, kernels.ListWords(3, 0))), false)
	r := roof{watch: o.worker.watch}
	d := of("SpMMLists x 100")
	if l := r.line("SpMMLists x 100", d, d); l.seconds <= 0 || l.limit != "" || l.reason != "not counted" {
		t.Errorf("%+v", l)
	}
}

// Only inputs below zero that dropout keeps need an exponential, but all need a random number.
func TestWorkOfELU(t *testing.T) {
	for drop, want := range map[float64][2]float64{0: {2, 0}, 0.5: {1, 4}} {
		o, of := counting(t)
		o.BiasELUDropout(mat(2, 2), mat(2, 2, 1, -1, -1, 3), mat(1, 2, 0.5, -2), &kernels.Dropout{P: drop})
		if d := of("BiasELUDropout x 2"); d.exponentials != want[0] || d.random != want[1] {
			t.Errorf("dropout %v: %+v, want %v", drop, d, want)
		}
	}
}

// The loss has an exponential for each class of a labelled row of the split.
func TestWorkOfTheLoss(t *testing.T) {
	o, of := counting(t)
	labels := kernels.HostVector([]int32{0, 1, graph.Unlabelled, 2})
	split := kernels.HostVector([]uint8{graph.SplitTrain, graph.SplitVal, graph.SplitTrain, graph.SplitTrain})
	logits := mat(4, 3)
	if _, count := o.SoftmaxCrossEntropy(logits, logits, labels, split, graph.SplitTrain, 1); count != 2 {
		t.Errorf("%d rows", count)
	}
	if d := of("SoftmaxCrossEntropy x 3"); d.doubles != 2*3 || d.exponentials != 0 {
		t.Errorf("%+v", d)
	}
}

// The least time is that of the slowest limit: a byte from memory passes the caches, too.
func TestLeastTime(t *testing.T) {
	l := machine.Limits{MultiplyAdds: 10, Exponentials: 5}
	for k, rate := range []float64{8, 4, 2, 1} {
		l.Levels[k] = machine.Level{Name: fmt.Sprint("level ", k), Reads: map[int]float64{0: rate, 4: rate / 2}}
	}
	type bytes = map[int]*[machine.Levels]float64
	for name, tc := range map[string]struct {
		d     demand
		want  float64
		limit string
	}{
		"products":     {demand{multiplyAdds: 50, bytes: bytes{0: {8, 4, 2, 1}}}, 5, "multiply-adds"},
		"exponentials": {demand{multiplyAdds: 50, exponentials: 50}, 10, "exponentials"},
		"float64":      {demand{exponentials: 10, doubles: 20, bytes: bytes{}}, 20, "exponentials"},
		"operands":     {demand{bytes: bytes{0: {80, 4, 2, 1}}}, 87. / 8, "level 0"},
		"rows":         {demand{bytes: bytes{4: {1, 1, 1, 3}}}, 6, "level 3"},
	} {
		if got, limit := tc.d.least(l); got != tc.want || limit != tc.limit {
			t.Errorf("%s: %v s by %s, want %v by %s", name, got, limit, tc.want, tc.limit)
		}
	}
}

// A least-recently-used set of rows drops the row that was used longest ago.
func TestRowCache(t *testing.T) {
	c := make(rowCache, cacheWays)
	for row := range uintptr(cacheWays) {
		if c.hit(row + 1) {
			t.Errorf("row %d is there before its use", row)
		}
	}
	if !c.hit(1) || c.hit(100) || !c.hit(1) || c.hit(2) {
		t.Error("the 17th row must replace row 2, not row 1")
	}
}

// A watched run trains the same weights, and its counts follow from the shapes: products of every layer forward
// and backward, and a row for each edge and self loop.
func TestWatchedRun(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if _, err := generate.Write(data, generate.Options{Vertices: 300, Edges: 2000, Features: 24, Classes: 5, Seed: 1}, false); err != nil {
		t.Fatal(err)
	}
	d, err := graph.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	vertices, edges := float64(d.Meta.Vertices), float64(len(d.In.Cols))
	c := config.Defaults()
	c.Ranks, c.Servers, c.Epochs, c.Hidden, c.Dropout, c.EvalEvery, c.Threads = 1, 0, 4, 16, 0, 0, 2
	w := newWatch(2, [machine.Levels]int{1 << 15, 1 << 20, 1 << 25})
	watched, err := watchedTrial(context.Background(), "test", data, c, w.wrap)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := trial(context.Background(), "test", data, c)
	if err != nil {
		t.Fatal(err)
	}
	for k, e := range plain.Epochs {
		if e.Loss != watched.Epochs[k].Loss {
			t.Errorf("epoch %d: loss %v, watched %v", k, e.Loss, watched.Epochs[k].Loss)
		}
	}
	for id, want := range map[kernelID]float64{
		{4, "AV", "MatMul 24 x 16"}:        vertices * 24 * 16,
		{4, "AV", "MatMul 16 x 5"}:         vertices * 16 * 5,
		{4, "∇AV", "MatMulTransA 24 x 16"}: vertices * 24 * 16,
		{4, "∇AV", "GradThrough 5 x 16"}:   vertices * 16 * 5,
	} {
		timed := w.demands[kernelID{2, id.stage, id.kernel}]
		if d := w.demands[id]; d == nil || d.withZeros != want || timed == nil || timed.seconds <= 0 || len(timed.bytes) > 0 {
			t.Errorf("%v: %+v, timed %+v, want %v multiply-adds with zeros", id, d, timed, want)
		}
	}
	gathers := w.demands[kernelID{4, "GA", "SpMM x 5"}]
	if gathers == nil || gathers.multiplyAdds > (edges+vertices)*5 || gathers.multiplyAdds < (edges+vertices)*5/4 {
		t.Errorf("GA: %+v, want up to %v multiply-adds", gathers, (edges+vertices)*5)
	}
	r := &roof{watch: w, epochs: watched.Epochs[1:2]}
	lines := r.lines("GA")
	if all := watched.Epochs[1].TaskSeconds["GA"]; lines[0].seconds != all || lines[1].seconds <= 0 || lines[1].seconds > all {
		t.Errorf("GA: %+v, want %v s, of which the first kernel takes a part", lines, all)
	}
}

// The table has every stage, and refuses what it cannot compare.
func TestRoof(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if _, err := generate.Write(data, generate.Options{Vertices: 200, Edges: 1000}, false); err != nil {
		t.Fatal(err)
	}
	o := EpochOptions{Data: data, Config: config.Defaults(), Roof: true}
	o.Config.Epochs, o.Config.Ranks, o.Config.Servers, o.Config.Model = 3, 1, 0, "gat"
	var out strings.Builder
	if err := epochRoof(context.Background(), o, time.Microsecond, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"AttentionGather", "AttentionGradSrc", "SoftmaxCrossEntropy", "∇AV", "idle", "memory", "not counted", "exponentials",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &out)
		}
	}
	o.Config.Ranks = 2
	if err := o.Run(context.Background(), &out); fault.KindOf(err) != fault.Usage {
		t.Errorf("two ranks: %v", err)
	}
}

// The loop in registers is at least as fast as the kernels' best product, interleaved with it. The slack of a tenth is
// for other load during the loops.
func TestMultiplyAddsAreALimit(t *testing.T) {
	if os.Getenv("SIAFU_BIG") == "" {
		t.Skip("its times need a quiet machine; set SIAFU_BIG=1")
	}
	for _, set := range kernels.Variants() {
		if set == "openblas" {
			continue
		}
		team := kernels.NewTeam(1)
		defer team.Close()
		if err := team.Use(set); err != nil {
			t.Fatal(err)
		}
		var l machine.Limits
		product := 0.
		ones := slices.Repeat([]float32{1}, 384*256) // products skip zeros
		a, b, dst := mat(384, 256, ones...), mat(256, 64, ones[:256*64]...), mat(384, 64)
		for range 10 {
			l.Measure(set, 1, [machine.Levels]int{1 << 15, 1 << 20, 1 << 25}, nil, time.Millisecond)
			product = max(product, 384*256*64/minSeconds(20*time.Millisecond, func() { team.MatMul(dst, a, b, false) }))
		}
		if t.Logf("%s: %.1f G multiply-adds/s, product %.1f", set, l.MultiplyAdds/1e9, product/1e9); l.MultiplyAdds < 0.9*product {
			t.Errorf("%s: the loop makes %v multiply-adds a second, the product %v", set, l.MultiplyAdds, product)
		}
	}
}
