package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"siafu/bench/trials"
	"siafu/internal/fault"
	"siafu/kernels"
)

// cacheLevels contains the cache sizes of one worker in KiB, nearest first. They model the
// source of gathered rows where processor counters are unavailable, as on virtual machines.
type cacheLevels []int

// check returns an error unless sizes ascend.
func (l cacheLevels) check() error {
	for i, size := range l {
		if size < 1 || i > 0 && size <= l[i-1] {
			return fault.New(fault.Usage, "bench kernels", "", "--caches=%s: sizes must increase", strings.Join(trials.Columns("%d", l), ",")).
				Then("give the cache sizes of one worker in KiB, such as 48,1024,16384 (lscpu -C lists them)")
		}
	}
	return nil
}

// bytesFrom returns the bytes that a gather reads from each cache level, and last from memory.
// Rows have the given size in bytes. Caches belong to one worker and have LRU replacement. A
// prefetched row counts at its source level; sums, edges and self loops are ignored.
func (l cacheLevels) bytesFrom(g kernels.Gather, row int) []float64 {
	caches := make([]*rowCache, len(l))
	for i, size := range l {
		caches[i] = newRowCache(g.Rows(), max(size<<10/row, 1))
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

// rowCache simulates an LRU cache of whole rows. Cached rows form a ring, sorted by time of
// access, with a sentinel.
type rowCache struct {
	newer, older    []uint32 // by row; the last element is the sentinel
	kept            []bool
	count, capacity int
}

func newRowCache(rows, capacity int) *rowCache {
	c := &rowCache{newer: make([]uint32, rows+1), older: make([]uint32, rows+1), kept: make([]bool, rows), capacity: capacity}
	c.newer[rows], c.older[rows] = uint32(rows), uint32(rows)
	return c
}

// read reports whether the row is cached, and makes it the most recent one.
func (c *rowCache) read(row uint32) (found bool) {
	sentinel := uint32(len(c.kept))
	if found = c.kept[row]; found {
		c.leave(row)
	} else if c.count == c.capacity {
		oldest := c.newer[sentinel]
		c.leave(oldest)
		c.kept[oldest] = false
	} else {
		c.count++
	}
	c.kept[row] = true
	newest := c.older[sentinel]
	c.newer[newest], c.older[row] = row, newest
	c.newer[row], c.older[sentinel] = sentinel, row
	return found
}

// leave removes a row from the ring.
func (c *rowCache) leave(row uint32) {
	c.newer[c.older[row]], c.older[c.newer[row]] = c.newer[row], c.older[row]
}

// print prints one line per gather, if cache sizes are given.
func (l cacheLevels) print(w io.Writer, results []kernelResult) error {
	gathers := slices.DeleteFunc(results, func(r kernelResult) bool { return r.from == nil })
	if len(gathers) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nBytes per edge read from each cache level (simulated: LRU caches of one worker)")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "kernel\tshape\trow\t%s\tmemory\n", strings.Join(trials.Columns("%d KiB", l), "\t"))
	for _, g := range gathers {
		fmt.Fprintf(t, "%s\t%s\t%d", g.kernel, g.shape, g.row)
		for _, bytes := range g.from {
			fmt.Fprintf(t, "\t%.0f", bytes/max(g.edges, 1))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
