package bench

import (
	"context"
	"fmt"

	"siafu/bench/yardstick"
	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// kernelCase is a line of the table of kernels. Bytes is the minimum traffic of a call: every
// operand and every result once.
type kernelCase struct {
	kernel, shape string
	vertices      int     // number of gathering vertices
	edges         float64 // gathered by a call, 0 if none
	flops         float64 // multiplications and additions, 0 if irrelevant
	bytes         float64
	row           int // bytes of a gathered row, 0 without gather
	prepare       func(b *fixture) (prepared, error)
	product       product // of dense products
}

// product is dst [m x n] of sums of k terms.
type product struct {
	form    yardstick.Form
	m, n, k int
}

// prepared is a kernel with its operands.
type prepared struct {
	call   func()
	result []float32
	// restore permutes the result to the rivals' order of vertices; nil if equal.
	restore func()
	// gather and x are the operands of a gather.
	gather kernels.Gather
	x      []float32
	// rivals starts the rivals; nil without a yardstick.
	rivals func(ctx context.Context, lab *yardstick.Lab) ([]*yardstick.Rival, error)
	// terms is the number of products in an element of the result, for the tolerance of a
	// comparison.
	terms int
}

// The shapes of layers on citation graphs and on Reddit (Hamilton et al. 2017):
// 602 features, 41 classes, 128 hidden units.
const (
	inputWidth, hiddenWidth, classWidth = 602, 128, 41
	randomDegree                        = 25
)

func gatherWidths() []int { return []int{16, classWidth, 64, hiddenWidth} }

// kernelCases returns the lines of the table at the given number of vertices, and gathers on
// the given datasets.
func kernelCases(team *kernels.Team, vertices int, data []*graph.Dataset) []kernelCase {
	var cases []kernelCase
	uniform := func(width int) kernelCase {
		return gatherCase("uniform", vertices, vertices*randomDegree, width, func(b *fixture) kernels.Gather {
			return uniformGraph(b, vertices, randomDegree)
		})
	}
	for _, w := range gatherWidths() {
		cases = append(cases, uniform(w))
	}
	cases = append(cases, packedCases(team, uniform, naturalOrder)...)
	for _, d := range data {
		for _, w := range gatherWidths() {
			cases = append(cases, gatherCase(d.Meta.Name, d.In.Rows(), len(d.In.Cols), w, func(b *fixture) kernels.Gather {
				return datasetGraph(b, d)
			}))
		}
		cases = append(cases, orderedCases(team, d)...)
	}
	cases = append(cases, productCases(vertices)...)
	return append(cases, rowCases(vertices)...)
}

// gatherCase returns a gather with a scale for every row and column, as in GCN.
func gatherCase(name string, vertices, edges, width int, build func(b *fixture) kernels.Gather) kernelCase {
	return kernelCase{
		kernel: "SpMM", shape: fmt.Sprintf("%s %d x %d", name, vertices, width),
		vertices: vertices, edges: float64(edges), flops: 2 * float64(edges*width), row: 4 * width,
		bytes: 4*float64(edges) + float64(vertices)*(8+8+8*float64(width)),
		prepare: func(b *fixture) (prepared, error) {
			g := build(b)
			x, dst := b.floats(vertices*width, 3), b.zeros(vertices, width)
			rows := kernels.HostMat(vertices, width, x)
			return prepared{
				call:   func() { b.team.SpMM(dst, g.Edges(), rows, false) },
				result: dst.Host(), terms: maxDegree(g), gather: g, x: x,
				rivals: func(ctx context.Context, lab *yardstick.Lab) ([]*yardstick.Rival, error) {
					return singleRival(lab.SpMM(ctx, g, x, width, b.team.Workers()))
				},
			}, nil
		},
	}
}

// singleRival returns a list of one rival.
func singleRival(r *yardstick.Rival, err error) ([]*yardstick.Rival, error) {
	if err != nil {
		return nil, err
	}
	return []*yardstick.Rival{r}, nil
}

// uniformGraph returns a graph in which every vertex gathers from degree random vertices.
func uniformGraph(b *fixture, vertices, degree int) kernels.Gather {
	offsets := mapped.Make[int64](b.arena, vertices+1)
	for v := range offsets {
		offsets[v] = int64(v) * int64(degree)
	}
	return gatherOf(b, offsets, b.ids(vertices*degree, vertices, 1))
}

// datasetGraph copies the in-edges of d into the same kind of memory as other operands.
func datasetGraph(b *fixture, d *graph.Dataset) kernels.Gather {
	offsets := mapped.Make[int64](b.arena, len(d.In.Offsets))
	cols := mapped.Make[uint32](b.arena, len(d.In.Cols))
	copy(offsets, d.In.Offsets)
	copy(cols, d.In.Cols)
	return gatherOf(b, offsets, cols)
}

func gatherOf(b *fixture, offsets []int64, cols []uint32) kernels.Gather {
	n := len(offsets) - 1
	return kernels.Gather{
		Begin: offsets[:n], End: offsets[1:], Cols: cols,
		RowScale: b.floats(n, 4), ColScale: b.floats(n, 5),
	}
}

// maxDegree returns the length of the longest row.
func maxDegree(g kernels.Gather) int {
	longest := int64(0)
	for r, begin := range g.Begin {
		longest = max(longest, g.End[r]-begin)
	}
	return int(longest)
}

// productCases returns the dense products of a layer H [rows x in] W [in x out] and its two
// gradients.
func productCases(rows int) []kernelCase {
	var cases []kernelCase
	for _, s := range [][2]int{{inputWidth, hiddenWidth}, {hiddenWidth, hiddenWidth}, {hiddenWidth, classWidth}} {
		in, out := s[0], s[1]
		cases = append(cases,
			productCase("MatMul", yardstick.Plain, rows, out, in),
			productCase("MatMulTransB", yardstick.TransB, rows, in, out),
			productCase("MatMulTransA", yardstick.TransA, in, out, rows))
	}
	return cases
}

// productCase returns the product dst[m x n] with sums over k.
func productCase(kernel string, form yardstick.Form, m, n, k int) kernelCase {
	return kernelCase{
		kernel: kernel, shape: productShape(form, m, n, k), product: product{form, m, n, k},
		flops: 2 * float64(m) * float64(n) * float64(k),
		bytes: 4 * (float64(m)*float64(k) + float64(k)*float64(n) + float64(m)*float64(n)),
		prepare: func(b *fixture) (prepared, error) {
			x, y, dst := b.floats(m*k, 1), b.floats(k*n, 2), b.zeros(m, n)
			mat := kernels.HostMat
			return prepared{
				call: map[yardstick.Form]func(){
					yardstick.Plain:  func() { b.team.MatMul(dst, mat(m, k, x), mat(k, n, y), false) },
					yardstick.TransB: func() { b.team.MatMulTransB(dst, mat(m, k, x), mat(n, k, y), false) },
					yardstick.TransA: func() { b.team.MatMulTransA(dst, mat(k, m, x), mat(k, n, y), false) },
				}[form],
				result: dst.Host(), terms: k,
				rivals: func(ctx context.Context, lab *yardstick.Lab) ([]*yardstick.Rival, error) {
					return lab.SGEMM(ctx, form, m, n, k, x, y, b.team.Workers())
				},
			}, nil
		},
	}
}

func productShape(form yardstick.Form, m, n, k int) string {
	switch form {
	case yardstick.TransB:
		return fmt.Sprintf("[%d x %d] [%d x %d]ᵀ", m, k, n, k)
	case yardstick.TransA:
		return fmt.Sprintf("[%d x %d]ᵀ [%d x %d]", k, m, k, n)
	}
	return fmt.Sprintf("[%d x %d] [%d x %d]", m, k, k, n)
}
