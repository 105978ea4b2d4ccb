package graph

import (
	"cmp"
	"runtime"
	"slices"

	"siafu/internal/arrayfile"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/workers"
)

// EdgeMemory is the memory in bytes of edges under construction if a Content does not
// set it: enough for nearly all graphs, so that two passes suffice.
const EdgeMemory = 2 << 30

// windows makes the rows of a graph a window at a time: as many rows as have edges
// for a budget of bytes. The edges are read once to be counted and once a window, in
// which those of other windows are passed over.
//
// Memory: 16 bytes a vertex and direction, and the budget, which only a single row
// may exceed. Weights and features of edges have their share of it.
//
// Design note: edges that are read once and spilled by window need 8 bytes each on
// disk, twice what the finished file has. To draw or to parse them again costs
// processors alone, and nothing for the graphs that fit into one window.
type windows struct {
	source  EdgeSource
	weights WeightedSource // the source, nil where its edges have no weights
	// features is the source, nil where its edges have no features, of which each has dim.
	features FeaturedSource
	dim      int
	in, out  *direction // the same where edges are symmetrised
	starts   []int64    // of each window, and the number of vertices

	oneWay, uneven      bool  // in has been seen to differ from out, in its edges or in their weights and features alone
	counted             int64 // edges into vertices, before duplicates are dropped
	selfLoops, isolated int64
}

// direction is the rows of one direction of the edges.
type direction struct {
	offsets []int64  // [n+1]: up to the last window that was placed; after it, at v+1, how many edges v has
	cols    []uint32 // memory for those of a window
	ends    []int64  // memory for its offsets
	built   int      // number of the window, -1 before the first
	first   uint32   // row of the window
	window  CSR      // sorted, without duplicates; no rows: edges are passed over
	// Of window.Cols, and memory for them; nil where edges have none.
	weights, room []float32
	// As these, dim features each.
	features, featureRoom []float32
	dim                   int
}

// newWindows counts the edges of n vertices; its memory comes from a.
func newWindows(c *Content, a *mapped.Arena) (*windows, error) {
	n := int(c.Vertices)
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
	w.cut(cmp.Or(c.EdgeMemory, EdgeMemory)/bytes, a)
	return w, nil
}

// count adds the degrees of v at v+1; it checks every endpoint.
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

// directions are in, and out where it is another.
func (w *windows) directions() []*direction {
	if w.in == w.out {
		return []*direction{w.in}
	}
	return []*direction{w.in, w.out}
}

// cut chooses windows of N edges, and makes room for the largest.
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
			d.room = mapped.Make[float32](a, int(most[i]))
		}
		if w.dim > 0 {
			d.dim, d.featureRoom = w.dim, mapped.Make[float32](a, int(most[i])*w.dim)
		}
		d.ends = mapped.Make[int64](a, int(rows)+1)
	}
}

// build makes window i of directions whose offsets have not passed it, and stops
// passing edges to others.
func (w *windows) build(i int, ds ...*direction) error {
	missing := false
	for _, d := range w.directions() {
		switch {
		case !slices.Contains(ds, d):
			d.window, d.weights, d.features, d.built = CSR{}, nil, nil, -1
		case d.built != i:
			d.open(i, w.starts[i], w.starts[i+1])
			missing = true
		}
	}
	if !missing {
		return nil
	}
	if err := w.filling()(); err != nil {
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

// finish sorts the filled rows and drops their duplicates.
func (d *direction) finish() error {
	if d.weights != nil || d.features != nil {
		return d.merge()
	}
	d.sort()
	d.compact()
	return nil
}

// filling is the way of reading the edges with what they have.
func (w *windows) filling() func() error {
	switch {
	case w.dim > 0:
		return w.fillFeatured
	case w.weights != nil:
		return w.fillWeighted
	}
	return w.fill
}

// fill reads the edges into the open windows.
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

// open makes the rows lo to hi ready for their edges: Offsets[r+1] is where row r
// begins, and grows to where it ends.
func (d *direction) open(i int, lo, hi int64) {
	d.built, d.first = i, uint32(lo)
	d.window.Offsets = d.ends[:hi-lo+1]
	at := int64(0)
	for r, degree := range d.offsets[lo+1 : hi+1] {
		d.window.Offsets[r+1] = at
		at += degree
	}
	d.window.Cols = d.cols[:at]
	if d.room != nil {
		d.weights = d.room[:at]
	}
	if d.featureRoom != nil {
		d.features = d.featureRoom[:int(at)*d.dim]
	}
}

// put adds an edge, if its row is in the window; false where there are more edges
// than were counted.
func (d *direction) put(row, col uint32) bool { return d.putWith(row, col, 0, nil) }

// putWith is put with the weight and the features, where edges have them.
func (d *direction) putWith(row, col uint32, weight float32, features []float32) bool {
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
	copy(d.features[int(at)*d.dim:], features)
	d.window.Offsets[r+1] = at + 1
	return true
}

// full reports whether every row of the window has the edges that were counted.
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

// place gives the rows of the window their offsets among all.
func (d *direction) place() {
	at := d.offsets[d.first]
	for r, end := range d.window.Offsets[1:] {
		d.offsets[int(d.first)+r+1] = at + end
	}
}

// edgeFiles are the files of what edges have, nil where they have none of it.
type edgeFiles struct{ weights, features *arrayfile.Writer }

func (f edgeFiles) begin() {
	if f.weights != nil {
		arrayfile.Begin[float32](f.weights, "weights")
	}
	if f.features != nil {
		arrayfile.Begin[float32](f.features, "features")
	}
}

// append adds what the edges of a window have.
func (f edgeFiles) append(d *direction) (err error) {
	if f.weights != nil {
		err = arrayfile.Append(f.weights, d.weights)
	}
	if f.features != nil && err == nil {
		err = arrayfile.Append(f.features, d.features)
	}
	return err
}

// write writes a direction as two arrays, in before out, and what its edges have to files
// of their own. The windows of in are compared with those of out until
// their edges differ.
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
			w.oneWay = !w.in.window.equal(w.out.window)
			w.uneven = w.uneven || !slices.Equal(w.in.weights, w.out.weights) || !slices.Equal(w.in.features, w.out.features)
		}
		d.place()
		if err := arrayfile.Append(f, d.window.Cols); err != nil {
			return err
		}
		if err := of.append(d); err != nil {
			return err
		}
	}
	return arrayfile.Fill(f, offsets, d.offsets)
}
