package ranks

import (
	"bytes"
	"fmt"
	"testing"
)

// The weights have the same bits with more workers than processors and than intervals: idle workers assist the others.
func TestBitsIndependentOfThreads(t *testing.T) {
	t.Parallel()
	data := generatedOf(t, 3000, 60000, true)
	for _, network := range []string{"gcn", "sage", "gat"} {
		for _, graphRanks := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s on %d ranks", network, graphRanks), func(t *testing.T) {
				t.Parallel()
				run := func(threads int) []byte {
					c := quick(t)
					c.Model, c.Ranks, c.Servers, c.Threads, c.Epochs, c.Dropout = network, graphRanks, 0, threads, 3, 0.5
					c.Hidden, c.Intervals, c.CheckpointEvery = 48, 1, "off"
					return train(t, c, data).model
				}
				want := run(1)
				for _, threads := range []int{2, 64} {
					if !bytes.Equal(run(threads), want) {
						t.Errorf("%d threads: other weights", threads)
					}
				}
			})
		}
	}
}
