package bench

import (
	"fmt"
	"slices"
	"sync"

	"siafu/graph"
	"siafu/graph/mapped"
	"siafu/graph/order"
	"siafu/kernels"
)

// orderedCases are gathers on a dataset whose vertices are numbered as
// partitioning would number them. The yardstick stays what it is without: the
// same sums in the dataset's own order.
func orderedCases(d *graph.Dataset) []kernelCase {
	choose := sync.OnceValue(func() order.Choice { return order.New("auto", d.In) })
	var cases []kernelCase
	for _, half := range []bool{false, true} {
		for _, w := range gatherWidths() {
			cases = append(cases, orderedCase(d, choose, w, half))
		}
	}
	return cases
}

func orderedCase(d *graph.Dataset, choose func() order.Choice, width int, half bool) kernelCase {
	vertices := d.In.Rows()
	c := gatherCase(d.Meta.Name, vertices, len(d.In.Cols), width, func(b *bed) kernels.Gather { return datasetGraph(b, d) })
	natural := c.prepare
	c.kernel, c.shape = "SpMM", fmt.Sprintf("%s in order, %d x %d", d.Meta.Name, vertices, width)
	if half {
		c.kernel = "SpMMHalf"
		c.bytes -= 2 * float64(vertices) * float64(width)
		c.row /= 2
	}
	c.prepare = func(b *bed) (prepared, error) {
		p, err := natural(b)
		if err != nil {
			return p, err
		}
		return reordered(b, p, choose().Vertices, width, half), nil
	}
	return c
}

// reordered is the gather p with rows and columns renumbered by order, nil for
// the order that is there. The result that is compared is brought back.
func reordered(b *bed, p prepared, vertices []uint32, width int, half bool) prepared {
	g, x := p.gather, p.x
	n := len(g.Begin)
	if vertices == nil {
		vertices = make([]uint32, n)
		for i := range vertices {
			vertices[i] = uint32(i)
		}
	}
	r := renumbered(b, g, vertices)
	rows := b.room(n, width)
	for i, v := range vertices {
		copy(rows.Host()[i*width:(i+1)*width], x[int(v)*width:])
	}
	dst := b.room(n, width)
	call := func() { b.team.SpMM(dst, r.Edges(), rows, false) }
	terms := p.terms
	if half {
		halves := kernels.NewHalf(b.team, b.arena, n, width, kernels.HalfSlack)
		b.team.Narrow(halves, rows, kernels.Vector[float32]{})
		call = func() { b.team.SpMM(dst, r.Edges(), halves, false) }
		terms <<= 12 // bfloat16 has 8 bits of mantissa, float32 24; the sums' own rounding stays
	}
	restore := func() {
		for i, v := range vertices {
			copy(p.result[int(v)*width:(int(v)+1)*width], dst.Host()[i*width:])
		}
	}
	return prepared{call: call, restore: restore, result: p.result, gather: r, terms: terms, rivals: p.rivals}
}

// renumbered is g with vertex order[i] as row and column i; columns ascend.
func renumbered(b *bed, g kernels.Gather, vertices []uint32) kernels.Gather {
	place := make([]uint32, len(vertices))
	for i, v := range vertices {
		place[v] = uint32(i)
	}
	offsets := mapped.Make[int64](b.arena, len(vertices)+1)
	cols := mapped.Make[uint32](b.arena, len(g.Cols))
	r := kernels.Gather{Begin: offsets[:len(vertices)], End: offsets[1:], Cols: cols,
		RowScale: mapped.Make[float32](b.arena, len(vertices)), ColScale: mapped.Make[float32](b.arena, len(vertices))}
	for i, v := range vertices {
		offsets[i+1] = offsets[i] + g.End[v] - g.Begin[v]
		row := cols[offsets[i]:offsets[i+1]]
		for e, u := range g.Cols[g.Begin[v]:g.End[v]] {
			row[e] = place[u]
		}
		slices.Sort(row)
		r.RowScale[i], r.ColScale[i] = g.RowScale[v], g.ColScale[v]
	}
	return r
}
