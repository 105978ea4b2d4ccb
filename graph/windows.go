package graph

import (
	"cmp"
	"runtime"
	"slices"

	"siafu/internal/arrayfile"
	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/mapped"
	"siafu/internal/size"
	"siafu/internal/workers"
)

// EdgeMemory is the default memory in bytes for the edges under construction. It is sufficient
// for nearly all graphs to be built in two passes.
const EdgeMemory = 2 << 30

// windows builds the rows of a graph one window at a time. A window is a range of rows; its edges
// fit into a memory budget. The edges are read once to count them, and once per window.
// Edges outside the window are skipped.
//
// Memory: 16 bytes per vertex and direction, plus the budget, which only a single row may
// exceed. The budget includes weights and edge features.
//
// Design note: spilling edges to disk by window takes 8 bytes per edge, twice the size of the
// finished file. Reading or sampling the edges again costs only processor time, and nothing for
// graphs that fit into one window.
type windows struct {
	source  EdgeSource
	weights WeightedSource // the source, or nil if its edges have no weights
	// features is the source, or nil if its edges have no features; dim is the number per edge.
	features FeaturedSource
	dim      int
	// related is the source, or nil if its edges have no relations; relations describes them, and kinds are
	// the kinds of all vertices.
	related   RelatedSource
	relations *Relations
	kinds     []uint16

	in, out *direction // the same pointer if edges are symmetrised
	starts  []int64    // first row of each window, then the number of vertices

	oneWay, uneven      bool  // in and out differ in their edges (oneWay), or in weights or features only (uneven)
	counted             int64 // edges into vertices, before duplicates are dropped
	selfLoops, isolated int64
}

// direction contains the rows of one direction of the edges.
type direction struct {
	offsets []int64  // [n+1]: final up to the last placed window; after it, the degree of v at v+1
	cols    []uint32 // buffer for the columns of a window
	ends    []int64  // buffer for the offsets of a window
	built   int      // number of the window, -1 before the first
	first   uint32   // row of the window
	window  CSR      // sorted, without duplicates; if it has no rows, edges are skipped
	// Weights of window.Cols and their buffer; nil if edges have no weights.
	weights, weightBuffer []float32
	// Features of window.Cols and their buffer, dim features per edge.
	features, featureBuffer []float32
	dim                     int
	// Relations of window.Cols and their buffer; nil if edges have no relations.
	relations, relationBuffer []uint16
}

// newWindows counts the edges of c and allocates its memory in a.
func newWindows(c *Content, a *mapped.Arena) (*windows, error) {
	n := int(c.Vertices)
	degrees := size.Product(c.Vertices+1, 16)
	if err := host.RequireMemory(opWrite, "", degrees, host.LargerMachine); err != nil {
		return nil, err
	}
	in := &direction{offsets: mapped.Make[int64](a, n+1), built: -1}
	w := &windows{source: c.Edges, in: in, out: in}
	if !c.Symmetrise {
		w.out = &direction{offsets: mapped.Make[int64](a, n+1), built: -1}
	}
	if err := w.count(); err != nil {
		return nil, err
	}
	for v := range n {
		w.counted += in.offsets[v+1]
		if in.offsets[v+1] == 0 && w.out.offsets[v+1] == 0 {
			w.isolated++
		}
	}
	w.weights, _ = c.Edges.(WeightedSource)
	bytes := int64(4)
	if w.weights != nil {
		bytes += 4
	}
	if w.features, _ = c.Edges.(FeaturedSource); w.features != nil {
		w.dim = w.features.EdgeDim()
		bytes += 4 * int64(w.dim)
	}
	if w.relations = c.Relations; w.relations != nil {
		w.related, w.oneWay = c.Edges.(RelatedSource), true
		w.kinds = mapped.Make[uint16](a, n)[:0]
		for k, kind := range w.relations.Kinds {
			w.kinds = append(w.kinds, slices.Repeat([]uint16{uint16(k)}, int(kind.Vertices))...)
		}
		bytes += 2
	}
	budget := cmp.Or(c.EdgeMemory, EdgeMemory)
	if err := host.RequireMemory(opWrite, "", min(budget, size.Product(w.counted, bytes)), host.LargerMachine); err != nil {
		return nil, err
	}
	w.cut(budget/bytes, a)
	return w, nil
}

// count adds up the degree of vertex v at offsets[v+1]. It checks every endpoint.
func (w *windows) count() error {
	in, out := w.in.offsets[1:], w.out.offsets[1:]
	n, i := len(in), int64(0)
	return w.source.Each(func(s, d uint32) error {
		if int(s) >= n || int(d) >= n {
			return fault.New(fault.Data, opWrite, "", "edge %d is %d → %d, but vertices are numbered 0 to %d", i, s, d, n-1).
				Then("fix the edge or the number of vertices")
		}
		i++
		if s == d {
			w.selfLoops++
			return nil
		}
		in[d]++
		out[s]++
		return nil
	})
}

// directions returns in, and also out if the two differ.
func (w *windows) directions() []*direction {
	if w.in == w.out {
		return []*direction{w.in}
	}
	return []*direction{w.in, w.out}
}

// cut divides the rows into windows of at most N edges each and allocates buffers for the
// largest window. A single row may have more edges.
func (w *windows) cut(edges int64, a *mapped.Arena) {
	ds := w.directions()
	n := len(w.in.offsets) - 1
	var sum, most [2]int64
	rows, left := int64(0), int64(0)
	for v := range n {
		total := int64(0)
		for i, d := range ds {
			total += d.offsets[v+1]
			sum[i] += d.offsets[v+1]
		}
		if left -= total; left < 0 || v == 0 {
			w.starts = append(w.starts, int64(v))
			left = edges - total
			for i, d := range ds {
				sum[i] = d.offsets[v+1]
			}
		}
		for i := range ds {
			most[i] = max(most[i], sum[i])
		}
		rows = max(rows, int64(v)+1-w.starts[len(w.starts)-1])
	}
	w.starts = append(w.starts, int64(n))
	for i, d := range ds {
		d.cols = mapped.Make[uint32](a, int(most[i]))
		if w.weights != nil {
			d.weightBuffer = mapped.Make[float32](a, int(most[i]))
		}
		if w.dim > 0 {
			d.dim, d.featureBuffer = w.dim, mapped.Make[float32](a, int(most[i])*w.dim)
		}
		if w.related != nil {
			d.relationBuffer = mapped.Make[uint16](a, int(most[i]))
		}
		d.ends = mapped.Make[int64](a, int(rows)+1)
	}
}

// build builds window i of the directions ds and skips edges of other directions. Windows of a
// direction must be built in ascending order.
func (w *windows) build(i int, ds ...*direction) error {
	missing := false
	for _, d := range w.directions() {
		switch {
		case !slices.Contains(ds, d):
			d.window, d.weights, d.features, d.relations, d.built = CSR{}, nil, nil, nil, -1
		case d.built != i:
			d.open(i, w.starts[i], w.starts[i+1])
			missing = true
		}
	}
	if !missing {
		return nil
	}
	fill := w.fill
	switch {
	case w.related != nil:
		fill = w.fillRelated
	case w.dim > 0 || w.weights != nil:
		fill = w.fillWith
	}
	if err := fill(); err != nil {
		return err
	}
	for _, d := range ds {
		if !d.full() {
			return changed()
		}
		if err := d.finish(); err != nil {
			return err
		}
	}
	return nil
}

// finish sorts the rows of the window and drops duplicates.
func (d *direction) finish() error {
	if d.weights != nil || d.features != nil || d.relations != nil {
		return d.merge()
	}
	d.sort()
	d.compact()
	return nil
}

// fill reads edges without weights and features into the open windows.
func (w *windows) fill() error {
	n, in, out := len(w.in.offsets)-1, w.in, w.out
	return w.source.Each(func(s, d uint32) error {
		if s == d {
			return nil
		}
		if int(s) >= n || int(d) >= n || !in.put(d, s) || !out.put(s, d) {
			return changed()
		}
		return nil
	})
}

func changed() error {
	return fault.New(fault.Runtime, opWrite, "", "the edges changed between two passes").
		Then("import again while no program writes to the source")
}

// open prepares rows lo to hi (excluded) for their edges. Offsets[r+1] is first the begin of
// row r and grows to its end.
func (d *direction) open(i int, lo, hi int64) {
	d.built, d.first = i, uint32(lo)
	d.window.Offsets = d.ends[:hi-lo+1]
	at := int64(0)
	for r, degree := range d.offsets[lo+1 : hi+1] {
		d.window.Offsets[r+1] = at
		at += degree
	}
	d.window.Cols = d.cols[:at]
	if d.weightBuffer != nil {
		d.weights = d.weightBuffer[:at]
	}
	if d.featureBuffer != nil {
		d.features = d.featureBuffer[:int(at)*d.dim]
	}
	if d.relationBuffer != nil {
		d.relations = d.relationBuffer[:at]
	}
}

// put adds an edge if its row is in the window. It returns false if the window has more edges
// than were counted.
func (d *direction) put(row, col uint32) bool { return d.putWith(row, col, 0, nil, 0) }

// putWith is put with the weight, the features and the relation of the edge, if edges have them.
func (d *direction) putWith(row, col uint32, weight float32, features []float32, relation uint16) bool {
	r := int(row - d.first)
	if r+1 >= len(d.window.Offsets) {
		return true
	}
	at := d.window.Offsets[r+1]
	if at >= int64(len(d.window.Cols)) {
		return false
	}
	d.window.Cols[at] = col
	if d.weights != nil {
		d.weights[at] = weight
	}
	if d.relations != nil {
		d.relations[at] = relation
	}
	copy(d.features[int(at)*d.dim:], features)
	d.window.Offsets[r+1] = at + 1
	return true
}

// full reports whether every row of the window has the counted number of edges.
func (d *direction) full() bool {
	for r := range d.window.Rows() {
		if d.window.Offsets[r+1]-d.window.Offsets[r] != d.offsets[int(d.first)+r+1] {
			return false
		}
	}
	return true
}

// sort sorts every row, in parallel by blocks of rows.
func (d *direction) sort() {
	workers.Blocks(runtime.GOMAXPROCS(0), d.window.Rows(), 1<<12, func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			slices.Sort(d.window.Row(r))
		}
	})
}

// compact drops duplicates from the sorted rows, in place.
func (d *direction) compact() {
	c := &d.window
	w, start := int64(0), int64(0)
	for r := range c.Rows() {
		end := c.Offsets[r+1]
		first := w
		for _, col := range c.Cols[start:end] {
			if w > first && c.Cols[w-1] == col {
				continue
			}
			c.Cols[w] = col
			w++
		}
		start, c.Offsets[r+1] = end, w
	}
	c.Cols = c.Cols[:w]
}

// place sets the offsets of the window's rows in the whole array.
func (d *direction) place() {
	at := d.offsets[d.first]
	for r, end := range d.window.Offsets[1:] {
		d.offsets[int(d.first)+r+1] = at + end
	}
}

// edgeFiles are the files of weights, features and relations of edges. A file is nil if edges have no
// such data.
type edgeFiles struct{ weights, features, relations *arrayfile.Writer }

func (f edgeFiles) begin() {
	if f.weights != nil {
		arrayfile.Begin[float32](f.weights, "weights")
	}
	if f.features != nil {
		arrayfile.Begin[float32](f.features, "features")
	}
	if f.relations != nil {
		arrayfile.Begin[uint16](f.relations, "relations")
	}
}

// append appends the weights, features and relations of a window's edges.
func (f edgeFiles) append(d *direction) (err error) {
	if f.weights != nil {
		err = arrayfile.Append(f.weights, d.weights)
	}
	if f.features != nil && err == nil {
		err = arrayfile.Append(f.features, d.features)
	}
	if f.relations != nil && err == nil {
		err = arrayfile.Append(f.relations, d.relations)
	}
	return err
}

// write writes a direction as two arrays, and weights and edge features to separate files. The
// direction in must be written before out. While writing in, it compares each window with the
// window of out until their edges differ.
func (w *windows) write(f *arrayfile.Writer, offsets, cols string, d *direction, of edgeFiles) error {
	arrayfile.Reserve[int64](f, offsets, len(d.offsets))
	if err := arrayfile.Begin[uint32](f, cols); err != nil {
		return err
	}
	of.begin()
	for i := range len(w.starts) - 1 {
		ds := []*direction{d}
		if d == w.in && !w.oneWay {
			ds = w.directions()
		}
		if err := w.build(i, ds...); err != nil {
			return err
		}
		if len(ds) == 2 {
			w.oneWay = !slices.Equal(w.in.window.Offsets, w.out.window.Offsets) || !slices.Equal(w.in.window.Cols, w.out.window.Cols)
			w.uneven = w.uneven || !slices.Equal(w.in.weights, w.out.weights) || !slices.Equal(w.in.features, w.out.features)
		}
		d.place()
		if err := arrayfile.Append(f, d.window.Cols); err != nil {
			return err
		}
		if err := of.append(d); err != nil {
			return err
		}
		if of.relations != nil {
			d.countRelations(w.relations.Relations)
		}
	}
	return arrayfile.Fill(f, offsets, d.offsets)
}
