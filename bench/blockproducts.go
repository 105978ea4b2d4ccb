package bench

import (
	"fmt"
	"io"

	"siafu/graph/partition"
)

// blockRows returns the rows that all ranks receive in one product of the adjacency matrix with a
// matrix of n rows, if ranks broadcast whole blocks of rows: CAGNET's 1.5D product with c replicas
// of each block (Tripathy, Yelick and Buluç, SC'20). c = 1 is its 1D product. c² divides parts.
//
// The ranks are a grid of parts/c rows and c columns. The ranks of row i store block i, which has
// nc/parts rows. A column broadcasts 1/c of the blocks, each to parts/c - 1 ranks. This is
// n(parts/c - 1) rows in all columns. The ranks of a grid row then sum their products. A ring
// all-reduce, which sends the fewest bytes, receives 2(c-1) rows for each row of a block.
//
// P3 (Gandhi and Iyer, OSDI'21) divides the columns of features instead. Every rank computes a
// partial row for each vertex, and the owner of a vertex receives parts-1 of them. A pass of the
// first layer therefore receives blockRows(n, parts, 1) rows of the hidden width.
func blockRows(n, parts, c int64) int64 { return n * (parts/c - 1 + 2*(c-1)) }

// bestReplication returns the c above 1 for which blockRows is least, or 1 if c² divides parts for
// none.
func bestReplication(parts int64) int64 {
	best := int64(1)
	for c := int64(2); c*c <= parts; c++ {
		if parts%(c*c) == 0 && (best == 1 || blockRows(1, parts, c) < blockRows(1, parts, best)) {
			best = c
		}
	}
	return best
}

// printBlockProducts prints lines of bench partition for products that need no partition: received
// rows under ghosts, and their bytes for the hidden layer of the other lines.
func printBlockProducts(w io.Writer, n, parts int64) {
	line := func(name string, rows int64) {
		fmt.Fprintf(w, "%d\t%s\t\t\t%d\t\t\t\t%.3g\t\t\t\n", parts, name, rows, float64(partition.HiddenBytes(rows))/1e6)
	}
	line("computed: CAGNET 1D, P3", blockRows(n, parts, 1))
	if c := bestReplication(parts); c > 1 {
		line(fmt.Sprintf("computed: CAGNET 1.5D, c=%d", c), blockRows(n, parts, c))
	}
}
