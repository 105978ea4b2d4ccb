package ranks

import (
	"fmt"
	"testing"
)

// A mini-batch of all training vertices with all neighbours sampled, and one of all
// clusters, is exact training but for the order of sums: 1e-6 is what 10 steps of
// float32 may be off. Ranks fetch what they sample of each other, so that any number of
// them is exact; clusters lack what ranks have between them.
func TestAllDrawnIsExact(t *testing.T) {
	for _, directed := range []bool{false, true} {
		data := generated(t, directed)
		for _, kind := range []string{"gcn", "sage", "gin", "gat"} {
			for _, order := range []string{"auto", "gather-first", "apply-first"} {
				if kind == "gat" && order != "auto" {
					continue
				}
				c := quick(t)
				c.Ranks, c.Servers, c.Threads, c.Epochs, c.EvalEvery, c.Order, c.CacheInput = 1, 0, 2, 10, 0, order, "off"
				c.Model, c.Layers, c.LR, c.Dropout, c.Optimizer, c.AttentionDropout = kind, 3, 0.05, 0.3, "sgd", 0.2
				want := train(t, c, data).losses()
				for _, b := range []struct {
					batch string
					ranks int
				}{{"neighbor:500,500,500,10000", 1}, {"neighbor:500,500,500,10000", 3}, {"cluster:1", 1}, {"cluster:7,7", 1}} {
					c.Batch, c.Ranks = b.batch, b.ranks
					sameLosses(t, fmt.Sprint(kind, " ", order, " directed: ", directed, " ", b), train(t, c, data).losses(), want, 1e-6)
				}
			}
		}
	}
}
