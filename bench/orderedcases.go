package bench

import (
	"fmt"
	"slices"
	"sync"

	"siafu/graph"
	"siafu/graph/order"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// rowFormat is the storage format of a gather's rows.
type rowFormat struct {
	kernel string
	half   bool    // bfloat16
	kept   float64 // fraction of non-zeros in packed rows; 0: whole rows
}

// packedForms has packed rows as after ReLU or dropout 0.5, and after both.
var packedForms = []rowFormat{{kernel: "SpMMPacked", kept: 0.5}, {kernel: "SpMMPacked", kept: 0.25}}

// orderedCases returns gathers on a dataset whose vertices are numbered as partitioning would
// number them. The yardstick is unchanged: the same sums in the dataset's own order.
func orderedCases(team *kernels.Team, d *graph.Dataset) []kernelCase {
	vertices := sync.OnceValue(func() []uint32 { return order.New("auto", d.In).Vertices })
	name := d.Meta.Name + " in order,"
	gather := func(width int) kernelCase {
		return gatherCase(name, d.In.Rows(), len(d.In.Cols), width, func(b *fixture) kernels.Gather { return datasetGraph(b, d) })
	}
	var cases []kernelCase
	for _, f := range []rowFormat{{kernel: "SpMM"}, {kernel: "SpMMHalf", half: true}} {
		for _, w := range gatherWidths() {
			cases = append(cases, gather(w).withFormat(f, vertices))
		}
	}
	return append(cases, packedCases(team, gather, vertices)...)
}

// packedCases returns gathers of the widest rows, packed, if the team supports them. vertices
// returns their order, nil for the existing one.
func packedCases(team *kernels.Team, gather func(width int) kernelCase, vertices func() []uint32) []kernelCase {
	var cases []kernelCase
	if team.Packs(hiddenWidth) {
		for _, f := range packedForms {
			cases = append(cases, gather(hiddenWidth).withFormat(f, vertices))
		}
	}
	return cases
}

// withFormat returns the gather c with rows in another format and order.
func (c kernelCase) withFormat(f rowFormat, vertices func() []uint32) kernelCase {
	plain, values := c.prepare, float64(c.vertices*c.row/4)
	c.kernel = f.kernel
	switch {
	case f.half:
		c.bytes -= 2 * values
		c.row /= 2
	case f.kept > 0:
		c.shape += fmt.Sprintf(", %.0f %% full", 100*f.kept)
		c.bytes -= 4*(1-f.kept)*values - 8*kernels.PackedWords*float64(c.vertices)
		c.row = int(f.kept*float64(c.row)) + 8*kernels.PackedWords
	}
	c.prepare = func(b *fixture) (prepared, error) {
		p, err := plain(b)
		if err != nil {
			return p, err
		}
		return withOrder(b, p, vertices(), f), nil
	}
	return c
}

// withOrder returns the gather p with rows in format f, and rows and columns renumbered by
// vertices (nil: unchanged). The compared result is restored to the original order.
func withOrder(b *fixture, p prepared, vertices []uint32, f rowFormat) prepared {
	g, n := p.gather, len(p.gather.Begin)
	width := len(p.x) / n
	if f.kept > 0 {
		for i := range p.x {
			if float64(scramble(uint64(i)))/(1<<64) >= f.kept {
				p.x[i] = 0
			}
		}
	}
	if vertices == nil {
		vertices = make([]uint32, n)
		for i := range vertices {
			vertices[i] = uint32(i)
		}
	}
	r := renumbered(b, g, vertices)
	rows := b.zeros(n, width)
	for i, v := range vertices {
		copy(rows.Host()[i*width:(i+1)*width], p.x[int(v)*width:])
	}
	dst := b.zeros(n, width)
	call := func() { b.team.SpMM(dst, r.Edges(), rows, false) }
	terms := p.terms
	switch {
	case f.half:
		halves := kernels.NewHalf(b.team, b.arena, n, width, kernels.HalfSlack)
		b.team.Narrow(halves, rows, kernels.Vector[float32]{})
		call = func() { b.team.SpMM(dst, r.Edges(), halves, false) }
		terms <<= 12 // bfloat16 has 8 bits of mantissa, float32 24; the sums' own rounding stays
	case f.kept > 0:
		packed := kernels.NewPacked(rows, mapped.Make[uint64](b.arena, kernels.PackedWords*n))
		kept := int64(b.team.Pack(packed, 0, rows))
		call = func() { b.team.SpMMPacked(dst, r.Edges(), packed, kept, false) }
	}
	restore := func() {
		for i, v := range vertices {
			copy(p.result[int(v)*width:(int(v)+1)*width], dst.Host()[i*width:])
		}
	}
	return prepared{call: call, restore: restore, result: p.result, gather: r, terms: terms, references: p.references}
}

// renumbered returns g with vertex order[i] as row and column i; columns ascend.
func renumbered(b *fixture, g kernels.Gather, vertices []uint32) kernels.Gather {
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
