package workers

import (
	"fmt"
	"testing"
)

// Every index is in one piece, pieces have at most the requested size, and worker numbers are
// below their count.
func TestBlocks(t *testing.T) {
	for _, c := range []struct{ workers, n, size int }{{1, 0, 4}, {3, 0, 4}, {1, 10, 4}, {3, 8, 4}, {8, 1000, 7}, {100, 5, 1}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			pieceOf := make([]int, c.n)
			for i := range pieceOf {
				pieceOf[i] = -1
			}
			Blocks(c.workers, c.n, c.size, func(worker, lo, hi int) {
				if worker < 0 || worker >= c.workers || hi-lo < 1 || hi-lo > c.size || lo%c.size != 0 {
					t.Errorf("worker %d got %d to %d", worker, lo, hi)
				}
				for i := lo; i < hi; i++ {
					if pieceOf[i] != -1 {
						t.Errorf("%d is in two pieces", i)
					}
					pieceOf[i] = lo
				}
			})
			for i, lo := range pieceOf {
				if lo < 0 {
					t.Errorf("%d is in no piece", i)
				}
			}
		})
	}
}
