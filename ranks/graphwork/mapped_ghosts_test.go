package graphwork

import (
	"math"
	"slices"
	"testing"

	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
	"siafu/kernels/model"
)

// Gathers of mapped ghosts are those of the mapped rows, in each interval. They read the rows only when
// the version changes, and no map after one without.
func TestMappedGhosts(t *testing.T) {
	ops, a := kernels.NewTeam(2), mapped.NewArena()
	defer ops.Close()
	defer a.Free()
	const own, ghosts, width = 300, 90, 64
	s := model.Spec{Kind: "gcn", Dims: []int{width, width, 8}}
	s.Choose(model.Load{FeatureNNZ: 1, CacheFits: true}, model.Choices{Order: "gather-first", CacheInput: "off"})
	part := ringShard(own)
	begin, cols := part.In.Offsets, part.In.Cols
	part.In.Offsets, part.In.Cols, part.InOwnEnd, part.GhostStart[1] = []int64{0}, nil, nil, ghosts
	for v := range own {
		part.In.Cols = append(part.In.Cols, cols[begin[v]:begin[v+1]]...)
		part.InOwnEnd = append(part.InOwnEnd, int64(len(part.In.Cols)))
		for j := range v % 4 { // every fourth vertex has no ghosts
			part.In.Cols = append(part.In.Cols, uint32(own+(7*v+29*j)%ghosts))
		}
		part.In.Offsets = append(part.In.Offsets, int64(len(part.In.Cols)))
	}
	for g := range ghosts {
		part.Ghosts, part.OutDegree = append(part.Ghosts, uint32(own+g)), append(part.OutDegree, uint32(3+g%5))
	}
	store := model.NewStore(model.New(s, false), model.Place(ops, a, part.Features, part.Own, part.Own), model.InStep, ops, a)
	w := New(store, part, Options{}, ops, a)
	l := w.Layer(1)
	if w.MapGhosts(1, false) != nil {
		t.Error("the layer takes maps of rows that change in each epoch, with few ghosts")
	}
	set := w.MapGhosts(1, true)
	l.Rows = kernels.HostMat(own, width, kerneltest.Values(own*width, 1))
	gather := func(rows, m kernels.Mat, version int) []float32 {
		w.Begin(model.Pass{}, kernels.Mat{}) // forgets the map of the gather before
		if !m.IsNil() {
			set(m, version)
		}
		l.TakeGhosts(ops, rows)
		for _, at := range [][2]int{{0, 110}, {110, 110}, {110, own}} {
			i := Interval{Lo: at[0], Hi: at[1], Ops: ops, Layer: 1}
			l.GatherOwn(i, model.Pass{})
			l.GatherGhosts(i, model.Pass{})
		}
		return slices.Clone(l.gathered.Host())
	}
	mat := func(rows int, seed uint64) kernels.Mat {
		return kernels.HostMat(rows, width, kerneltest.Values(rows*width, seed))
	}
	rows := mat(ghosts, 2)
	for epoch, version := range []int{1, 1, 2, 2, 3} {
		m := mat(width+1, uint64(10+epoch))
		if epoch%2 == 0 {
			rows = mat(ghosts, uint64(20+epoch))
		}
		used := kernels.HostMat(ghosts, width, make([]float32, ghosts*width))
		ops.MatMulBiasReLUDropout(used, rows, m.Part(0, width), m.Part(width, width+1), false, nil)
		got, want := gather(rows, m, version), gather(used, kernels.Mat{}, version)
		for i, x := range got {
			if d := math.Abs(float64(x - want[i])); d > 1e-5*(1+math.Abs(float64(want[i])))*width { // sums of up to 3 rows of 64 products
				t.Fatalf("version %d: number %d of vertex %d is %v, want %v", version, i%width, i/width, x, want[i])
			}
		}
		if again := gather(mat(ghosts, 99), m, version); !slices.Equal(again, got) {
			t.Errorf("version %d: rows of the same version are read again", version)
		}
		if slices.Equal(gather(mat(ghosts, 99), kernels.Mat{}, version), got) {
			t.Errorf("version %d: a pass begins with the map of the pass before", version)
		}
	}
	l.Gather.(*sums).ghosts.(*mappedGhosts).lasting = false
	m := mat(width+1, 30)
	if slices.Equal(gather(mat(ghosts, 98), m, 3), gather(mat(ghosts, 99), m, 3)) {
		t.Error("rows that change in each epoch are not read")
	}
}
