package predict_test

import (
	"math"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/predict"
	"siafu/halo/refresh"
	"siafu/internal/mapped"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels"
)

const own, ghosts, width = 80, 300, 6

// received is a source whose ghost rows a test sets.
type received struct {
	halo.Collective // nil: a test calls nothing else
	view            halo.View
}

func (r *received) Offer(halo.Slot, kernels.Mat, int, int) error { return nil }
func (r *received) Take(halo.Slot) (lo, hi int, err error)       { return 0, r.view.Rows.Rows, nil }
func (r *received) View(halo.Slot) (halo.View, error)            { return r.view, nil }
func (r *received) Settle() error                                { return nil }
func (r *received) Pack() (halo.SourceState, error)              { return halo.SourceState{}, nil }
func (r *received) Unpack(halo.SourceState) error                { return nil }
func (r *received) SendBuffer(halo.Slot) (none kernels.Mat)      { return none }
func (r *received) set(epoch int, epochs func(ghost int) int) {
	x, of := make([]float32, ghosts*width), make([]int32, ghosts)
	for i := range ghosts {
		if of[i] = int32(epochs(i)); of[i] > 0 {
			copy(x[i*width:], row(own+i, int(of[i])))
		}
	}
	r.view = halo.View{Rows: kernels.HostMat(ghosts, width, x), Epochs: of}
}

// row returns a vertex's row of an epoch: it grows by a tenth of its first value in each epoch,
// which an affine map predicts.
func row(vertex, epoch int) []float32 {
	x := make([]float32, width)
	for j := range x {
		x[j] = float32(math.Sin(float64(1+vertex*width+j*j))) * (1 + 0.1*float32(epoch))
	}
	return x
}

func ownRows(epoch int, change func(vertex int, x []float32)) kernels.Mat {
	x := make([]float32, own*width)
	for v := range own {
		copy(x[v*width:], row(v, epoch))
		if change != nil {
			change(v, x[v*width:(v+1)*width])
		}
	}
	return kernels.HostMat(own, width, x)
}

// run is a source that predicts received rows of a policy.
type run struct {
	*predict.Source
	inner *received
	t     *testing.T
}

func newRun(t *testing.T, kind, policy string, threads, rows int, change ...func(o *predict.Options)) run {
	t.Helper()
	p, err := refresh.Parse(policy)
	if err != nil {
		t.Fatal(err)
	}
	team, arena := kernels.NewTeam(threads), mapped.NewArena()
	t.Cleanup(func() { team.Close(); arena.Free() })
	inner := new(received)
	o := predict.Options{
		Kind: kind, Rows: rows, Shapes: []halo.Shape{{Layer: 1, Width: width, Backward: true}},
		Plan: &halo.Plan{Own: own, Ghosts: ghosts}, Timing: p.Timing(), Team: team, Arena: arena,
		Shard: part(policy == "drift:0.1,4"), Window: 3, Every: 1, LR: 0.01, Fresh: true, Seed: 7, Sums: oneRank{},
	}
	for _, f := range change {
		f(&o)
	}
	return run{predict.Wrap(inner, o), inner, t}
}

// oneRank sums over one rank.
type oneRank struct{}

func (oneRank) Float64s([]float64) error { return nil }
func (oneRank) Float32s([]float32) error { return nil }

// part returns a part with edges between own vertices, and from ghosts.
func part(directed bool) *shard.Shard {
	s := &shard.Shard{Directed: directed, Own: make([]uint32, own), Ghosts: make([]uint32, ghosts), In: graph.CSR{Offsets: []int64{0}}}
	for v := range own {
		for u := range own + ghosts {
			if u == own {
				s.InOwnEnd = append(s.InOwnEnd, int64(len(s.In.Cols)))
			}
			linked := u < own && u != v && (u*v+u+v)%9 == 0 && (!directed || u < v) || u >= own && u < own+ghosts-2 && (u*7+v*13)%20 == 0
			if linked && v > 1 && u > 1 { // vertices without edges exist
				s.In.Cols = append(s.In.Cols, uint32(u))
			}
		}
		s.In.Offsets = append(s.In.Offsets, int64(len(s.In.Cols)))
	}
	return s
}

// epoch runs an epoch and returns the ghost rows that a gather reads. Then a predictor learns.
func (r run) epoch(epoch int, rows kernels.Mat, epochs func(ghost int) int) halo.View {
	r.t.Helper()
	at := halo.Slot{Epoch: epoch, Layer: 1}
	r.inner.set(epoch, epochs)
	if err := r.Offer(at, rows, 0, own); err != nil {
		r.t.Fatal(err)
	}
	if _, _, err := r.Take(at); err != nil {
		r.t.Fatal(err)
	}
	view, err := r.View(at)
	if err != nil {
		r.t.Fatal(err)
	}
	view.Rows = kernels.HostMat(ghosts, width, slices.Clone(view.Rows.Host()))
	if err := r.Train(epoch); err != nil {
		r.t.Fatal(err)
	}
	return view
}

// every returns the epochs of ghosts with --refresh every:n.
func every(n, epoch int) func(int) int {
	return func(int) int { return epoch - (epoch-1)%n }
}

// eachKind runs a test for every kind, fitted for kinds that are fitted in each epoch, and learned
// for the others.
func eachKind(t *testing.T, test func(t *testing.T, kind string)) {
	fitted(t, test)
	learned(t, test)
}

func fitted(t *testing.T, test func(t *testing.T, kind string))  { some(t, false, test) }
func learned(t *testing.T, test func(t *testing.T, kind string)) { some(t, true, test) }

func some(t *testing.T, learns bool, test func(t *testing.T, kind string)) {
	for _, k := range predict.Choices() {
		if k.Name != predict.Off && k.Form == k.Name && predict.Learns(k.Name) == learns { // momentum:B wraps no Source
			t.Run(k.Name, func(t *testing.T) { test(t, k.Name) })
		}
	}
}

// largestError returns the largest error of the rows of a view in an epoch.
func largestError(view halo.View, epoch int) (most float64) {
	for i := range ghosts {
		for j, want := range row(own+i, epoch) {
			most = max(most, math.Abs(float64(view.Rows.Host()[i*width+j]-want)))
		}
	}
	return most
}

// tolerance is the error that ridge regression leaves of a change of at most 0.3.
const tolerance = 1e-3

// If the inner source stores own rows, a prediction learns from the stored rows: here of the first
// rows of a batch, all of one epoch.
func TestStoredRows(t *testing.T) {
	for name, epoch := range map[string]func(row int) int{
		"one epoch": func(int) int { return 4 }, "none": func(int) int { return 0 },
		"two epochs": func(row int) int { return 4 + row/(own-1) },
	} {
		r := newRun(t, "transfer", "previous:none", 1, own, func(o *predict.Options) {
			o.Plan.Own -= 10 // of the smallest batch
			if name == "two epochs" {
				o.Plan.Own = own
			}
			o.Timing = refresh.Timing{Period: 1, Decay: 1}
			o.Stored = func(layer, i int, dst []float32) int {
				copy(dst, row(i, 4))
				return epoch(i)
			}
		})
		for range 2 {
			view := r.epoch(6, ownRows(6, nil), func(ghost int) int { return 4 + ghost%3 })
			for ghost := range ghosts {
				x, want := view.Rows.Host()[ghost*width:(ghost+1)*width], row(own+ghost, 4+ghost%3)
				if name == "one epoch" && ghost%3 == 0 {
					want = row(own+ghost, 6)
				}
				for j, v := range x {
					if math.Abs(float64(v-want[j])) > tolerance {
						t.Fatalf("%s: ghost %d is %v, want %v", name, ghost, x, want)
					}
				}
			}
		}
	}
}

// policies are the epochs of ghost rows by policy.
var policies = map[string]func(epoch, ghost int) int{
	"every:4":       func(epoch, _ int) int { return every(4, epoch)(0) },
	"every:4,3":     func(epoch, _ int) int { return max(every(4, epoch-3)(0), 0) },
	"previous:none": func(epoch, _ int) int { return epoch - 1 },
	"delay:3":       func(epoch, ghost int) int { return max(epoch-3-(epoch+ghost)%3, 0) },
	"drift:0.1,4":   func(epoch, ghost int) int { return max(epoch-(epoch*ghost/100)%4, 1) },
}

// Rows that change as own rows do are predicted, and their epochs stay those of the received rows.
func TestGhostsChangeAsOwnRows(t *testing.T) {
	fitted(t, func(t *testing.T, kind string) {
		for policy, epochs := range policies {
			r := newRun(t, kind, policy, 1, 2048)
			for epoch := 1; epoch < 20; epoch++ {
				of := func(ghost int) int { return epochs(epoch, ghost) }
				view := r.epoch(epoch, ownRows(epoch, nil), of)
				if got := largestError(view, epoch); epoch > 12 && got > tolerance {
					t.Errorf("%s: epoch %d: rows are wrong by %v", policy, epoch, got)
				}
				if !slices.Equal(view.Epochs, r.inner.view.Epochs) {
					t.Errorf("%s: epoch %d: the epochs of rows changed", policy, epoch)
				}
			}
			c := r.TakeCounts()
			if c.Made == 0 || c.Bytes == 0 {
				t.Errorf("%s: %+v", policy, c)
			}
			if c := r.TakeCounts(); c != (predict.Counts{Bytes: c.Bytes}) {
				t.Errorf("%s: counted twice: %+v", policy, c)
			}
		}
	})
}

// Where rows cannot be predicted, the received rows are used, and the reason is counted.
func TestStaleRowsOtherwise(t *testing.T) {
	nan := float32(math.NaN())
	for name, tc := range map[string]struct {
		rows   int
		reason predict.Fallback
		change func(epoch, vertex int, x []float32)
	}{
		"few own rows": {2*width - 1, predict.FewRows, nil},
		"zeros":        {own, predict.Singular, func(_, _ int, x []float32) { clear(x) }},
		"not finite":   {own, predict.NotFinite, func(_, vertex int, x []float32) { x[0] = nan }},
		// Every eighth row is held out. These rows grow only from one push to the next.
		"others change": {own, predict.NotBetter, func(epoch, vertex int, x []float32) {
			if vertex%8 == 7 && (epoch-1)%4 > 0 {
				copy(x, row(vertex, epoch-10))
			}
		}},
	} {
		kinds := eachKind
		if tc.reason == predict.Singular || tc.reason == predict.NotBetter {
			kinds = fitted
		}
		kinds(t, func(t *testing.T, kind string) {
			r := newRun(t, kind, "every:4", 1, tc.rows)
			for epoch := 1; epoch < 12; epoch++ {
				rows := ownRows(epoch, func(v int, x []float32) {
					if tc.change != nil {
						tc.change(epoch, v, x)
					}
				})
				view := r.epoch(epoch, rows, every(4, epoch))
				if !slices.Equal(view.Rows.Host(), r.inner.view.Rows.Host()) {
					t.Errorf("%s: rows of epoch %d are not those received", name, epoch)
				}
			}
			if c := r.TakeCounts(); c.Made > 0 || c.Fallbacks[tc.reason] == 0 {
				t.Errorf("%s: %+v", name, c)
			}
		})
	}
}

// Bits do not depend on threads, and a source that continues from another one's state has its bits.
func TestSameBits(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		for _, history := range []string{predict.Uncompressed, "polyline:3", "auto"} {
			t.Run(history, func(t *testing.T) { sameBits(t, kind, func(o *predict.Options) { o.History = history }) })
		}
	})
}

func sameBits(t *testing.T, kind string, change func(o *predict.Options)) {
	noise := func(epoch int) func(int, []float32) {
		return func(v int, x []float32) {
			for j := range x {
				x[j] += 0.01 * float32(math.Sin(float64(epoch*v+j)))
			}
		}
	}
	epochs := func(epoch int) func(int) int {
		return func(ghost int) int { return max(epoch-3-(epoch+ghost)%3, 0) }
	}
	want := newRun(t, kind, "delay:3", 1, 60, change)
	for _, threads := range []int{2, 3, 8} {
		got := newRun(t, kind, "delay:3", threads, 60, change)
		for epoch := 1; epoch < 16; epoch++ {
			rows := ownRows(epoch, noise(epoch))
			if threads == 2 {
				want.epoch(epoch, rows, epochs(epoch))
			}
			got.epoch(epoch, rows, epochs(epoch))
			if epoch != 11 {
				continue
			}
			state, err := got.Pack()
			if err != nil {
				t.Fatal(err)
			}
			if state, err = halo.DecodeSourceState(state.Encode(nil)); err != nil {
				t.Fatal(err)
			}
			got = newRun(t, kind, "delay:3", threads, 60, change)
			if err := got.Unpack(state); err != nil {
				t.Fatal(err)
			}
		}
		last, err := got.View(halo.Slot{Epoch: 15, Layer: 1})
		if err != nil {
			t.Fatal(err)
		}
		first, err := want.View(halo.Slot{Epoch: 15, Layer: 1})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(last.Rows.Host(), first.Rows.Host()) || got.TakeCounts().Made == 0 {
			t.Errorf("%d threads: other bits than with one, or none predicted", threads)
		}
	}
}

// A prediction writes ghost rows into the given memory, stores sampled own rows of the current epoch
// once for all layers, and those of earlier epochs for each layer, and little else.
func TestMemoryOfPredictions(t *testing.T) {
	const n, layers = 8 * own, 3
	for policy, epochs := range map[string]int{"every:4": 1, "every:4,3": 2, "previous:none": 1, "delay:3": 5, "drift:0.1,4": 3} {
		into := make([]float32, ghosts*width)
		r := newRun(t, "transfer", policy, 1, n, func(o *predict.Options) {
			o.Plan, o.Ghosts = &halo.Plan{Own: n, Ghosts: ghosts}, into
			o.Shapes = nil
			for l := range layers {
				o.Shapes = append(o.Shapes, halo.Shape{Layer: l, Width: width})
			}
		})
		rows, kept := int64(4*n*width*(1+layers*epochs)), int64(4*layers*epochs*(1+width+2*width*width))
		got, chunks := r.TakeCounts().Bytes, int64(4*width*(512+256+256)+4*n)
		if most := rows + kept + chunks + 4096; got < rows || got > most {
			t.Errorf("%s: %d bytes, want %d to %d", policy, got, rows, most)
		}
	}
	into := make([]float32, ghosts*width)
	r := newRun(t, "transfer", "previous:none", 1, own, func(o *predict.Options) { o.Ghosts = into })
	for epoch := 1; epoch < 4; epoch++ {
		r.epoch(epoch, ownRows(epoch, nil), func(int) int { return epoch - 1 })
	}
	if view, err := r.View(halo.Slot{Epoch: 3, Layer: 1}); err != nil || &view.Rows.Host()[0] != &into[0] || r.TakeCounts().Made == 0 {
		t.Error("predicted rows are elsewhere: ", err)
	}
}

// With a map, a view has the received rows, and the map a version that changes with them. The mapped rows
// have the bits of predicted ones. Rows of several epochs have no map.
func TestMaps(t *testing.T) {
	version := 0 // of the map that the last Take has set, 0: none
	maps := func(o *predict.Options) {
		o.Maps = func(int) func(kernels.Mat, int) { return func(_ kernels.Mat, of int) { version = of } }
	}
	want, got := newRun(t, "transfer", "every:4", 1, own), newRun(t, "transfer", "every:4", 2, own, maps)
	at, versions, made := halo.Slot{Layer: 1}, map[int]int{}, 0
	for epoch := 1; epoch < 13; epoch++ {
		at.Epoch = epoch
		rows, epochs := ownRows(epoch, nil), every(4, epoch)
		predicted := want.epoch(epoch, rows, epochs)
		version = 0
		got.epoch(epoch, rows, epochs)
		view, err := got.View(at)
		if err != nil {
			t.Fatal(err)
		}
		if fresh := epochs(0) == epoch; fresh != (version == 0) {
			t.Fatalf("epoch %d: Take has set a map: %t", epoch, fresh)
		} else if fresh {
			continue
		}
		if !slices.Equal(view.Rows.Host(), got.inner.view.Rows.Host()) ||
			!slices.Equal(got.Predicted(at, view).Rows.Host(), predicted.Rows.Host()) {
			t.Errorf("epoch %d: other rows", epoch)
		}
		if before, ok := versions[epochs(0)]; ok && before != version || version < 1 {
			t.Errorf("epoch %d: version %d, before %d", epoch, version, before)
		}
		versions[epochs(0)] = version
		made++
	}
	if made != 9 || len(versions) != 3 || versions[1] == versions[5] || versions[5] == versions[9] {
		t.Errorf("%d maps, versions %v", made, versions)
	}
	state, err := got.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Unpack(state); err != nil { // the rows of the epoch may be others
		t.Fatal(err)
	}
	version = 0
	if got.epoch(12, ownRows(12, nil), every(4, 12)); version == 0 || version == versions[9] {
		t.Errorf("version %d after Unpack, before %d", version, versions[9])
	}
	version = 0
	mixed := newRun(t, "transfer", "delay:3", 1, own, maps)
	for epoch := 1; epoch < 16; epoch++ {
		of := func(ghost int) int { return policies["delay:3"](epoch, ghost) }
		if mixed.epoch(epoch, ownRows(epoch, nil), of); version != 0 {
			t.Errorf("epoch %d: rows of several epochs have a map", epoch)
		}
	}
	if mixed.TakeCounts().Made == 0 {
		t.Error("nothing was predicted")
	}
}

// State with own rows of more epochs than a source stores gives it the newest.
func TestStateOfMoreEpochs(t *testing.T) {
	a, b := newRun(t, "transfer", "previous:none", 1, 60), newRun(t, "transfer", "previous:none", 1, 60)
	of := func(epoch int) func(int) int { return func(int) int { return epoch - 1 } }
	for epoch := 1; epoch < 5; epoch++ {
		a.epoch(epoch, ownRows(epoch, nil), of(epoch))
	}
	state, err := a.Pack()
	if err != nil {
		t.Fatal(err)
	}
	want := a.epoch(5, ownRows(5, nil), of(5))
	rows := &state.OwnRows[0]
	rows.Rows, rows.Epochs = slices.Concat(make([]float32, len(rows.Rows)), rows.Rows), append([]int32{3}, rows.Epochs...)
	if err := b.Unpack(state); err != nil {
		t.Fatal(err)
	}
	if got := b.epoch(5, ownRows(5, nil), of(5)); !slices.Equal(got.Rows.Host(), want.Rows.Host()) || b.TakeCounts().Made != 1 {
		t.Error("other bits than from the newest epoch")
	}
}

// State of another kind or size is refused.
func TestOtherStateIsRefused(t *testing.T) {
	a, b := newRun(t, "transfer", "every:4", 1, 60), newRun(t, "lstm-gcn", "every:4", 1, 60)
	state, err := a.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if b.Unpack(state) == nil {
		t.Error("lstm-gcn takes the state of transfer")
	}
	state.OwnRows[0].Layer = 7
	if a.Unpack(state) == nil {
		t.Error("own rows of a layer without any are taken")
	}
}

// Rows outside of training, gradients, and layers without predictions pass through. Settle forgets
// own rows.
func TestOthersPassThrough(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		r := newRun(t, kind, "previous:none", 1, own)
		for epoch := 1; epoch < 6; epoch++ {
			r.epoch(epoch, ownRows(epoch, nil), func(int) int { return epoch - 1 })
		}
		for _, at := range []halo.Slot{{Epoch: 5, Layer: 1, OutsideTraining: true}, {Epoch: 5, Layer: 1, Backward: true},
			{Epoch: 5}, {Epoch: 5, Layer: 9}} {
			view, err := r.View(at)
			if err != nil || &view.Rows.Host()[0] != &r.inner.view.Rows.Host()[0] {
				t.Errorf("%+v: predicted", at)
			}
		}
		if view, _ := r.Received(halo.Slot{Epoch: 5, Layer: 1}); &view.Rows.Host()[0] != &r.inner.view.Rows.Host()[0] {
			t.Error("other rows than received")
		}
		if err := r.Settle(); err != nil {
			t.Fatal(err)
		}
		r.TakeCounts()
		if r.epoch(6, ownRows(6, nil), func(int) int { return 5 }); r.TakeCounts().Made > 0 {
			t.Error("own rows outlast Settle")
		}
	})
}

func TestNoAllocations(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		r := newRun(t, kind, "every:4", 1, own)
		rows, at := ownRows(1, nil), halo.Slot{Epoch: 1, Layer: 1}
		for epoch := 1; epoch < 7; epoch++ {
			rows = ownRows(epoch, nil)
			r.epoch(epoch, rows, every(4, epoch))
		}
		if n := testing.AllocsPerRun(10, func() {
			at.Epoch++
			at.Epoch = 6 + at.Epoch%2
			_ = r.Offer(at, rows, 0, own)
			_, _, _ = r.Take(at)
		}); n > 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// A measurement times as many fits and predicted rows as it says.
func TestMeasure(t *testing.T) {
	fitted(t, func(t *testing.T, kind string) {
		team := kernels.NewTeam(1)
		defer team.Close()
		calls := 0
		c := predict.Measure(kind, width, own, team, func(call func()) float64 {
			call()
			calls++
			return float64(calls)
		})
		if calls != 2 || c.Fit != 1 || c.Row != 2./2048 {
			t.Errorf("%+v after %d calls", c, calls)
		}
	})
}

// So does a measurement of a recurrent predictor: of a step of each vertex, a regression, predicted rows
// and a training.
func TestMeasureCells(t *testing.T) {
	learned(t, func(t *testing.T, kind string) {
		team := kernels.NewTeam(1)
		defer team.Close()
		calls := 0
		c := predict.Measure(kind, width, own, team, func(call func()) float64 {
			call()
			calls++
			return float64(calls)
		})
		if want := (predict.Cost{Fit: 2, Row: 3. / own, Step: 1. / (2 * own), Train: 4}); c != want {
			t.Errorf("%+v, want %+v", c, want)
		}
	})
}

// CellNumbers is an upper bound of the numbers of the portable state, which attention with past rows
// has but for a few.
func TestCellNumbers(t *testing.T) {
	learned(t, func(t *testing.T, kind string) {
		r := newRun(t, kind, "every:4", 1, 60, func(o *predict.Options) { o.Fresh = false })
		state, err := r.Pack()
		if err != nil {
			t.Fatal(err)
		}
		got, most := len(state.OwnRows[0].Sent), int(predict.CellNumbers(3, 60, own+ghosts, width))
		if got > most || kind == "lstm-gat" && got < most {
			t.Errorf("%d numbers, at most %d expected", got, most)
		}
	})
}

// A predictor learns from own rows how rows change: in each policy, it leaves at most two thirds of
// the squared error of stale rows after 30 epochs.
func TestPredictorsLearn(t *testing.T) {
	learned(t, func(t *testing.T, kind string) {
		for policy, epochs := range policies {
			if kind != "lstm-gcn" && policy != "every:4" && !hosttest.Big() {
				continue
			}
			r := newRun(t, kind, policy, 2, 2048)
			var predicted, stale float64
			for epoch := 1; epoch < 43; epoch++ {
				view := r.epoch(epoch, ownRows(epoch, nil), func(ghost int) int { return epochs(epoch, ghost) })
				if epoch > 30 {
					predicted += squaredError(view.Rows.Host(), epoch)
					stale += squaredError(r.inner.view.Rows.Host(), epoch)
				}
			}
			t.Logf("%s: %.3g of the squared error", policy, predicted/stale)
			if predicted > 2*stale/3 {
				t.Errorf("%s: %.3g of the squared error remains", policy, predicted/stale)
			}
		}
	})
}

// Compressed own rows are wrong by at most half a unit of their last decimal. With auto, the error that
// this adds to a prediction is less than 1 % of the error of stale rows. Rows that are not finite are
// not predicted.
func TestCompressedRows(t *testing.T) {
	wrong, bytes := map[string]float64{}, map[string]int64{}
	for _, history := range []string{"none", "auto", "polyline:3", "polyline:1"} {
		r := newRun(t, "transfer", "delay:5", 1, own, func(o *predict.Options) { o.History = history })
		for epoch := 1; epoch < 30; epoch++ {
			view := r.epoch(epoch, ownRows(epoch, nil), func(ghost int) int { return max(epoch-5-(epoch+ghost)%5, 0) })
			if wrong[history] = largestError(view, epoch); epoch == 29 {
				t.Logf("%s: rows are wrong by %.2g, received ones by %.2g; %d bytes", history, wrong[history],
					largestError(r.inner.view, epoch), r.TakeCounts().Bytes)
			}
		}
		bytes[history] = r.TakeCounts().Bytes
	}
	if wrong["auto"] > 0.01 || wrong["polyline:3"] > 0.01 || wrong["polyline:1"] < wrong["polyline:3"] {
		t.Errorf("rows are wrong by %v", wrong)
	}
	if !(bytes["polyline:1"] < bytes["polyline:3"] && bytes["polyline:3"] < bytes["none"] && bytes["auto"] < bytes["none"]) {
		t.Errorf("bytes %v", bytes)
	}
	r := newRun(t, "transfer", "every:4", 1, own, func(o *predict.Options) { o.History = "auto" })
	for epoch := 1; epoch < 10; epoch++ {
		rows := ownRows(epoch, func(_ int, x []float32) { x[0] = float32(math.NaN()) })
		if view := r.epoch(epoch, rows, every(4, epoch)); !slices.Equal(view.Rows.Host(), r.inner.view.Rows.Host()) {
			t.Errorf("epoch %d: predicted from NaN", epoch)
		}
	}
	if c := r.TakeCounts(); c.Made > 0 || c.Fallbacks[predict.NotFinite] == 0 {
		t.Errorf("%+v", c)
	}
}

func TestValidHistory(t *testing.T) {
	for history, want := range map[string]bool{"": true, "none": true, "auto": true, "polyline:0": true, "polyline:9": true,
		"polyline": false, "polyline:10": false, "polyline:-1": false, "zstd": false, "auto:3": false} {
		if predict.ValidHistory(history) != want {
			t.Errorf("%q: %t", history, !want)
		}
	}
}

// Sums over more rows than one block of package kernels do not depend on threads either.
func TestSameBitsOfManyRows(t *testing.T) {
	const n, d = 2000, 40
	rows := func(epoch int) kernels.Mat {
		x := make([]float32, n*d)
		for i := range x {
			x[i] = float32(math.Sin(float64(i)*1.3)*float64(10+epoch) + math.Cos(float64(i*epoch)))
		}
		return kernels.HostMat(n, d, x)
	}
	var want []float32
	for threads := 1; threads <= 8; threads++ {
		r := newRun(t, "transfer", "previous:none", threads, n, func(o *predict.Options) {
			o.Shapes, o.Plan = []halo.Shape{{Layer: 1, Width: d}}, &halo.Plan{Own: n, Ghosts: n}
		})
		for epoch := 1; epoch < 4; epoch++ {
			at := halo.Slot{Epoch: epoch, Layer: 1}
			r.inner.view = halo.View{Rows: rows(max(epoch-1, 1)), Blocks: []halo.Block{{Rows: n, Epoch: epoch - 1}}}
			if err := r.Offer(at, rows(epoch), 0, n); err != nil {
				t.Fatal(err)
			}
			if _, _, err := r.Take(at); err != nil {
				t.Fatal(err)
			}
		}
		view, err := r.View(halo.Slot{Epoch: 3, Layer: 1})
		if err != nil || r.TakeCounts().Made == 0 {
			t.Fatal("nothing is predicted: ", err)
		}
		if got := view.Rows.Host(); want == nil {
			want = slices.Clone(got)
		} else if !slices.Equal(got, want) {
			t.Errorf("%d threads: other bits than with one", threads)
		}
	}
}

func squaredError(rows []float32, epoch int) (sum float64) {
	for i := range ghosts {
		for j, want := range row(own+i, epoch) {
			d := float64(rows[i*width+j] - want)
			sum += d * d
		}
	}
	return sum
}

// With Hold, ghost rows are those predicted after the last training, from past rows or fresh ones.
func TestHeldPredictions(t *testing.T) {
	learned(t, func(t *testing.T, kind string) {
		for _, fresh := range []bool{false, true} {
			r := newRun(t, kind, "every:4", 1, 2048, func(o *predict.Options) { o.Hold, o.Every, o.Fresh = true, 3, fresh })
			var last []float32
			held := 0
			for epoch := 1; epoch < 31; epoch++ {
				rows := r.epoch(epoch, ownRows(epoch, nil), every(4, epoch)).Rows.Host()
				if made := r.TakeCounts().Made > 0; epoch%3 != 1 && made { // a training precedes epochs 1, 4, 7, …
					if held++; !slices.Equal(rows, last) {
						t.Errorf("fresh %t: other predictions in epoch %d", fresh, epoch)
					}
				}
				if last = rows; square(last) == 0 {
					t.Errorf("fresh %t: zeros in epoch %d", fresh, epoch)
				}
			}
			if held == 0 {
				t.Errorf("fresh %t: none was predicted", fresh)
			}
		}
	})
}

func square(x []float32) (sum float64) {
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}
