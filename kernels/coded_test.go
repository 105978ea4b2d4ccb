package kernels_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
)

// beforeGuard returns n zeroed bytes that end before an inaccessible page.
func beforeGuard(t testing.TB, n int) []byte {
	t.Helper()
	page := unix.Getpagesize()
	size := (n + page - 1) / page * page
	b, err := unix.Mmap(-1, 0, size+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	if err := unix.Mprotect(b[size:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return b[size-n : size]
}

// codedRows returns the edges of rows with the given columns, and their code.
func codedRows(t testing.TB, base uint32, rows ...[]uint32) (kernels.Gather, *kernels.CodedColumns) {
	t.Helper()
	g := kernels.Gather{Base: base}
	for _, cols := range rows {
		g.Begin = append(g.Begin, int64(len(g.Cols)))
		g.Cols = append(g.Cols, cols...)
		g.End = append(g.End, int64(len(g.Cols)))
	}
	a, team := mapped.NewArena(), kernels.NewTeam(2)
	t.Cleanup(a.Free)
	defer team.Close()
	return g, team.CodeColumns(a, g.Edges(), kernels.CodeOptions{})
}

// checkCoded compares decoded rows with the plain columns. Code and columns end before inaccessible
// pages.
func checkCoded(t testing.TB, team *kernels.Team, g kernels.Gather, c *kernels.CodedColumns, lo, hi int) {
	t.Helper()
	guarded := beforeGuard(t, len(c.Code()))
	copy(guarded, c.Code())
	c = c.WithCode(guarded)
	want := g.Cols[g.Begin[lo]:g.End[hi-1]]
	dst := mapped.Cast[uint32](beforeGuard(t, 4*(len(want)+kernels.CodedGroup)))
	c.Decode(team, dst, lo, hi)
	if !slices.Equal(dst[:len(want)], want) {
		at := 0
		for dst[at] == want[at] {
			at++
		}
		t.Fatalf("rows %d to %d: column %d is %d instead of %d", lo, hi, at, dst[at], want[at])
	}
}

// Decoded columns are the columns that were encoded: gaps of all widths, rows of 0 to 40 columns, and
// numbers that do not ascend.
func TestCodedColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var rows [][]uint32
	for width := range 33 {
		for n := range 41 {
			col := rng.Uint32() >> rng.IntN(33)
			cols := make([]uint32, n)
			for i := range cols {
				cols[i] = col
				col += uint32(rng.Uint64N(1 << min(width, 1+rng.IntN(width+1))))
			}
			rows = append(rows, cols)
		}
	}
	g, c := codedRows(t, 7, rows...)
	eachSet(t, func(t *testing.T, set string) {
		team := kernels.NewTeam(1)
		defer team.Close()
		use(t, team, set)
		checkCoded(t, team, g, c, 0, len(rows))
		for range 20 {
			lo := rng.IntN(len(rows))
			checkCoded(t, team, g, c, lo, lo+1+rng.IntN(len(rows)-lo))
		}
	})
}

// Code is as short as documented: 8 gaps of 8 bits need 9 bytes, and a group of one gap 2.
func TestCodedBytes(t *testing.T) {
	cols := []uint32{5}
	for range 9 {
		cols = append(cols, cols[len(cols)-1]+200)
	}
	for n, want := range map[int]int{0: 0, 1: 2, 2: 4, 5: 7, 6: 8, 9: 11, 10: 13} {
		if got := kernels.CodedBytes(cols[:n], 1000); got != want {
			t.Errorf("%d columns: %d bytes instead of %d", n, got, want)
		}
	}
}

// The size of the code is estimated within 5 % from a sample.
func TestEstimateCodedBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	list := make([][]uint32, 3000)
	for r := range list {
		col, most := rng.Uint32N(1000), 1+uint32(r)
		for range rng.IntN(1000) {
			list[r] = append(list[r], col)
			col += 1 + rng.Uint32N(most)
		}
	}
	g, c := codedRows(t, 0, list...)
	got, want := kernels.EstimateCodedBits(g.Edges()), 8*float64(c.Bytes())/float64(len(g.Cols))
	if d := got/want - 1; d < -0.05 || d > 0.05 {
		t.Errorf("%.2f bits per edge, estimated from %.2f", want, got)
	}
}

func FuzzCodedColumns(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 2, 0, 0, 0, 255, 255, 255, 255}, uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, cut uint8) {
		cols := make([]uint32, len(b)/4)
		for i := range cols {
			cols[i] = uint32(b[4*i]) | uint32(b[4*i+1])<<8 | uint32(b[4*i+2])<<16 | uint32(b[4*i+3])<<24
		}
		at := min(int(cut), len(cols))
		g, c := codedRows(t, 0, cols[:at], cols[at:])
		for _, set := range []string{"go", "avx2"} {
			team := kernels.NewTeam(1)
			defer team.Close()
			if team.Use(set) == nil {
				checkCoded(t, team, g, c, 0, 2)
			}
		}
	})
}

// gatherFunc gathers rows of x [sources x dst.Cols] along edges.
type gatherFunc func(team *kernels.Team, dst kernels.Mat, e kernels.Edges, sources int, x []float32)

func gatherFloats(team *kernels.Team, dst kernels.Mat, e kernels.Edges, sources int, x []float32) {
	team.SpMM(dst, e, kernels.HostMat(sources, dst.Cols, x), true)
}

func gatherHalves(team *kernels.Team, dst kernels.Mat, e kernels.Edges, sources int, x []float32) {
	half := make([]kernels.BF16, len(x)+kernels.HalfSlack)
	for i, v := range x {
		half[i] = kernels.Narrow(v)
	}
	team.SpMM(dst, e, kernels.HostHalf(sources, dst.Cols, half), true)
}

func gatherPacked(team *kernels.Team, dst kernels.Mat, e kernels.Edges, sources int, x []float32) {
	if !team.Packs(dst.Cols) {
		return
	}
	p := kernels.NewPacked(kernels.HostMat(sources, dst.Cols, make([]float32, len(x))), make([]uint64, kernels.PackedWords*sources))
	team.SpMMPacked(dst, e, p, int64(team.Pack(p, 0, kernels.HostMat(sources, dst.Cols, x))), true)
}

func gatherLists(team *kernels.Team, dst kernels.Mat, e kernels.Edges, sources int, _ []float32) {
	if e.Weights.Len() > 0 {
		return
	}
	xs := listedRows(sources, dst.Cols)
	l := kernels.NewLists(sources, dst.Cols, make([]uint64, kernels.ListWords(sources, len(xs.Source.Vals))))
	team.List(l, 0, xs, nil)
	team.SpMMLists(dst, e, l, true)
}

// compareCoded compares the bits of gathers along plain and coded edges. Row 0 of e is row first of c.
func compareCoded(t *testing.T, team *kernels.Team, e kernels.Edges, c *kernels.CodedColumns, first, width int,
	x []float32, ways ...gatherFunc) {
	t.Helper()
	for i, gather := range ways {
		all := func(e kernels.Edges) []byte {
			dst := kerneltest.Values(e.Rows()*width, 4)
			gather(team, kernels.HostMat(e.Rows(), width, dst), e, len(x)/width, x)
			return mapped.Bytes(dst)
		}
		want := all(e)
		coded := e
		coded.Cols, coded.Coded, coded.CodedFirst = kernels.Vector[uint32]{}, c, first
		if !slices.Equal(all(coded), want) {
			t.Errorf("way %d: other bits along coded edges", i)
		}
	}
}

// Gathers along coded edges give the bits of gathers along plain edges: with hubs, scales, weights, masks
// and intervals of rows.
func TestGatherAlongCodedEdges(t *testing.T) {
	const rows, width = 900, 48
	g := packedEdges(rows, rows+1)
	for r := range rows { // columns ascend
		slices.Sort(g.Cols[g.Begin[r]:g.End[r]])
	}
	ways := []gatherFunc{gatherFloats, gatherHalves, gatherPacked, gatherLists}
	a, x := mapped.NewArena(), kerneltest.Values(rows*width, 3)
	defer a.Free()
	chosen := kernels.NewVertexMask(rows, func(v int) bool { return v%3 == 0 || v == 77 })
	zeros := slices.Clone(x)
	for v := range rows {
		if v%3 != 0 && v != 77 {
			clear(zeros[v*width:][:width])
		}
	}
	eachSet(t, func(t *testing.T, set string) {
		team := kernels.NewTeam(2)
		defer team.Close()
		use(t, team, set)
		c := team.CodeColumns(a, g.Edges(), kernels.CodeOptions{})
		for _, part := range [][2]int{{0, rows}, {70, 211}} {
			e := g.Edges()
			e.Begin, e.End, e.First = e.Begin.Part(part[0], part[1]), e.End.Part(part[0], part[1]), uint32(part[0])
			e.RowScale = e.RowScale.Part(part[0], part[1])
			compareCoded(t, team, e, c, part[0], width, x, ways...)
			masked := e
			masked.RowMask = chosen
			compareCoded(t, team, masked, c, part[0], width, x, ways...)
			masked.ColumnMask = chosen
			compareCoded(t, team, masked, c, part[0], width, zeros, ways[:3]...)
			e.Weights, e.ColScale = kernels.HostVector(kerneltest.Values(len(g.Cols), 9)), kernels.HostVector(kerneltest.Values(rows, 8))
			e.SelfLoops = true
			compareCoded(t, team, e, c, part[0], width, x, ways...)
		}
	})
}

// Gathers by blocks of sources give the same bits, too.
func TestBlocksAlongCodedEdges(t *testing.T) {
	const rows, sources, width = 12, 131100, 128 // a block has 16384
	rng := rand.New(rand.NewPCG(7, 8))
	list := make([][]uint32, rows)
	for r := range list {
		degree, most := 600, sources
		switch r {
		case 3:
			degree = 0
		case 4:
			most = 20000
		case 5:
			degree = 60000
		case 2: // a hub in a block
			degree, most = 40000, 10000
		case 7: // a hub, but not in a block
			degree = 40000
		case 8:
			degree = 1
		}
		for range degree {
			list[r] = append(list[r], rng.Uint32N(uint32(most)))
		}
		slices.Sort(list[r])
	}
	g, c := codedRows(t, 0, list...)
	x := make([]float32, sources*width)
	for n := copy(x, kerneltest.Values(1<<16, 3)); n < len(x); n *= 2 {
		copy(x[n:], x[:n])
	}
	eachSet(t, func(t *testing.T, set string) {
		team := kernels.NewTeam(2)
		defer team.Close()
		use(t, team, set)
		e := g.Edges()
		compareCoded(t, team, e, c, 0, width, x, gatherFloats)
		e.RowMask = kernels.NewVertexMask(rows, func(v int) bool { return v != 9 })
		e.ColumnMask = kernels.NewVertexMask(sources, func(int) bool { return true })
		compareCoded(t, team, e, c, 0, width, x, gatherFloats)
		e.Weights = kernels.HostVector(kerneltest.Values(len(g.Cols), 5))
		compareCoded(t, team, e, c, 0, width, x, gatherFloats)
	})
}
