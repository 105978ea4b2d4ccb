package kernels_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
)

// Maxima and their sources equal those of a loop over all pairs, for edges gathered at once or
// in two parts, in any order of local ids. With ties, the source with the lowest id gets the
// whole gradient. This holds for each instruction set, and for rows of one column, of whole
// vectors and of more than one call's columns.
func TestMaxima(t *testing.T) {
	team := kernels.NewTeam(3)
	defer team.Close()
	for _, kernel := range kernels.Variants() {
		if err := team.Use(kernel); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{1, 9, 32, 83} {
			t.Run(fmt.Sprint(kernel, width), func(t *testing.T) { testMaxima(t, team, width) })
		}
	}
}

func testMaxima(t *testing.T, team *kernels.Team, width int) {
	const own, ghosts = 50, 20
	rng := rand.New(rand.NewPCG(3, 4))
	ids := make([]uint32, own+ghosts)
	for i, id := range rng.Perm(own + ghosts) {
		ids[i] = uint32(id)
	}
	x := make([]float32, (own+ghosts)*width)
	for i := range x {
		x[i] = float32(rng.IntN(5)-4) / 2 // many ties, most below 0
		if rng.IntN(20) == 0 {
			x[i] = float32(math.Inf(-1))
		}
	}
	var g kernels.Gather
	var middle []int64
	for v := range own {
		g.Begin = append(g.Begin, int64(len(g.Cols)))
		for u := range own + ghosts {
			if u == own {
				middle = append(middle, int64(len(g.Cols)))
			}
			if v%9 > 0 && rng.IntN(6) == 0 {
				g.Cols = append(g.Cols, uint32(u))
			}
		}
		g.End = append(g.End, int64(len(g.Cols)))
	}
	want, from := make([]float32, own*width), make([]int, own*width)
	for i := range want {
		v, j, best := i/width, i%width, -1
		for _, u := range g.Cols[g.Begin[v]:g.End[v]] {
			if at := x[int(u)*width+j]; best < 0 || at > want[i] || at == want[i] && ids[u] < ids[best] {
				want[i], best = at, int(u)
			}
		}
		from[i] = best
	}
	mat := func(x []float32) kernels.Mat { return kernels.HostMat(len(x)/width, width, x) }
	where, none := kernels.HostVector(ids),
		kernels.Edges{Begin: kernels.HostVector(g.Begin), End: kernels.HostVector(g.Begin), Cols: kernels.HostVector(g.Cols)}
	ownPart, ghostPart := g, g
	ownPart.End, ghostPart.Begin, ghostPart.Base = middle, middle, own
	for name, edges := range map[string][2]kernels.Edges{"at once": {g.Edges(), none}, "cut": {ownPart.Edges(), ghostPart.Edges()}} {
		for _, asked := range []bool{true, false} {
			got, arg := slices.Repeat([]float32{7}, own*width), make([]float32, own*width)
			argument, rows := mat(arg), mat(x)
			if !asked {
				argument = kernels.Mat{}
			}
			team.MaxGather(mat(got), argument, edges[0], rows, where, false)
			if name == "cut" {
				rows = mat(x[own*width:])
			}
			team.MaxGather(mat(got), argument, edges[1], rows, where, true)
			if !slices.Equal(got, want) {
				t.Fatalf("%s, sources asked for %t: other maxima", name, asked)
			}
			for i, u := range from {
				if asked && u >= 0 && math.Float32bits(arg[i]) != uint32(u) {
					t.Fatalf("%s: element %d comes from %d, want %d", name, i, math.Float32bits(arg[i]), u)
				}
			}
			if asked {
				checkMaximaGrad(t, team, g, argument, from, own, width)
			}
		}
	}
}

// checkMaximaGrad pushes each gradient to its source, where the kernel pulls.
func checkMaximaGrad(t *testing.T, team *kernels.Team, g kernels.Gather, arg kernels.Mat, from []int, own, width int) {
	const first, rows = 10, 45 // sources of both kinds
	grads, want := make([]float32, own*width), make([]float32, rows*width)
	for i := range grads {
		grads[i] = float32(i%13) - 6
		if u := from[i] - first; u >= 0 && u < rows {
			want[u*width+i%width] += grads[i]
		}
	}
	var back kernels.Gather
	for u := first; u < first+rows; u++ {
		back.Begin = append(back.Begin, int64(len(back.Cols)))
		for v := range own {
			if slices.Contains(g.Cols[g.Begin[v]:g.End[v]], uint32(u)) {
				back.Cols = append(back.Cols, uint32(v))
			}
		}
		back.End = append(back.End, int64(len(back.Cols)))
	}
	got := slices.Repeat([]float32{7}, rows*width)
	team.MaxGatherGrad(kernels.HostMat(rows, width, got), back.Edges(), arg, kernels.HostMat(own, width, grads), first)
	if !slices.Equal(got, want) { // small whole numbers: exact in any order
		t.Fatal("other gradients")
	}
}

// BenchmarkMaxGather measures maxima with sources, and their gradient, interleaved over
// instruction sets, like BenchmarkSpMM.
func BenchmarkMaxGather(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	const width = 64
	g := ring(benchRows, benchDegree)
	ids := make([]uint32, benchRows)
	for i := range g.Cols {
		g.Cols[i] = rng.Uint32N(benchRows)
	}
	for i, id := range rng.Perm(benchRows) {
		ids[i] = uint32(id)
	}
	mat := func(seed uint64) kernels.Mat {
		return kernels.HostMat(benchRows, width, kerneltest.Values(benchRows*width, seed))
	}
	x, grad, dst, arg, where := mat(3), mat(4), mat(5), mat(6), kernels.HostVector(ids)
	for range 2 {
		for _, kernel := range kernels.Variants() {
			for name, run := range map[string]func(*kernels.Team){
				"forward":  func(t *kernels.Team) { t.MaxGather(dst, arg, g.Edges(), x, where, false) },
				"backward": func(t *kernels.Team) { t.MaxGatherGrad(dst, g.Edges(), arg, grad, 0) },
			} {
				b.Run(name+"/"+kernel, func(b *testing.B) {
					measure(b, benchRows*benchDegree, "edges/s", func(team *kernels.Team) {
						if err := team.Use(kernel); err != nil {
							b.Fatal(err)
						}
						run(team)
					})
				})
			}
		}
	}
}
