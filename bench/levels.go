package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"siafu/internal/fault"
	"siafu/kernels"
)

// cacheLevels are the caches of a worker, by their sizes in KiB, nearest first. Where a counter of
// the processor can't be read, as on virtual machines, they tell by a model where the rows of a
// gather come from.
type cacheLevels []int

// check refuses sizes that are no hierarchy.
func (l cacheLevels) check() error {
	for i, size := range l {
		if size < 1 || i > 0 && size <= l[i-1] {
			return fault.New(fault.Usage, "bench kernels", "", "--caches=%s: sizes must increase", l.join(",", "%d")).
				Then("give the cache sizes of one worker in KiB, such as 48,1024,16384 (lscpu -C lists them)")
		}
	}
	return nil
}

func (l cacheLevels) join(between, format string) string {
	var all []string
	for _, size := range l {
		all = append(all, fmt.Sprintf(format, size))
	}
	return strings.Join(all, between)
}

// bytesFrom is how many bytes of gathered rows of the given size come from each level, and last from
// memory, where one worker goes along all edges and each cache keeps the rows read last. What
// is prefetched counts where it came from; sums, edges and self loops are left out.
func (l cacheLevels) bytesFrom(g kernels.Gather, row int) []float64 {
	caches := make([]*rowCache, len(l))
	for i, size := range l {
		caches[i] = newRecent(g.Rows(), max(size<<10/row, 1))
	}
	bytes := make([]float64, len(l)+1)
	for r := range g.Rows() {
		for _, c := range g.Cols[g.Begin[r]:g.End[r]] {
			nearest := len(l)
			for i := len(l) - 1; i >= 0; i-- {
				if caches[i].read(c) {
					nearest = i
				}
			}
			bytes[nearest] += float64(row)
		}
	}
	return bytes
}

// rowCache is a cache of whole rows that keeps those read last: a ring of rows by when they were
// read, with an entrance.
type rowCache struct {
	newer, older []uint32 // by row, and last the entrance
	kept         []bool
	count, most  int
}

func newRecent(rows, most int) *rowCache {
	c := &rowCache{newer: make([]uint32, rows+1), older: make([]uint32, rows+1), kept: make([]bool, rows), most: most}
	c.newer[rows], c.older[rows] = uint32(rows), uint32(rows)
	return c
}

// read reports whether the row is there, and makes it the one read last.
func (c *rowCache) read(row uint32) (there bool) {
	entrance := uint32(len(c.kept))
	if there = c.kept[row]; there {
		c.leave(row)
	} else if c.count == c.most {
		oldest := c.newer[entrance]
		c.leave(oldest)
		c.kept[oldest] = false
	} else {
		c.count++
	}
	c.kept[row] = true
	newest := c.older[entrance]
	c.newer[newest], c.older[row] = row, newest
	c.newer[row], c.older[entrance] = entrance, row
	return there
}

// leave takes a row out of the ring.
func (c *rowCache) leave(row uint32) {
	c.newer[c.older[row]], c.older[c.newer[row]] = c.newer[row], c.older[row]
}

// gatherLevels is where the rows of a measured gather come from.
type gatherLevels struct {
	kernel, shape string
	row           int
	edges         float64
	bytes         []float64
}

// print prints a line for each gather.
func (l cacheLevels) print(w io.Writer, gathers []gatherLevels) error {
	fmt.Fprintln(w, "\nBytes of a row that come from where, an edge, by a model: caches of one worker that keep the rows read last")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "kernel\tshape\trow\t%s\tmemory\n", l.join("\t", "%d KiB"))
	for _, g := range gathers {
		fmt.Fprintf(t, "%s\t%s\t%d", g.kernel, g.shape, g.row)
		for _, bytes := range g.bytes {
			fmt.Fprintf(t, "\t%.0f", bytes/max(g.edges, 1))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
