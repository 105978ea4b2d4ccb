package ranks

import (
	"fmt"
	"testing"
)

// asynchronous is a configuration of bounded asynchrony.
func asynchronous(c Config, s, intervals int) Config {
	c.Mode, c.Staleness, c.Intervals = "async", s, intervals
	return c
}

// With one interval on one rank nothing can be stale: asynchrony is the
// synchronous run, with any bound, with servers and without.
func TestAsyncOfOneIntervalIsSynchronous(t *testing.T) {
	for _, directed := range []bool{false, true} {
		data := generated(t, directed)
		for _, kind := range []string{"gcn", "sage", "gin", "mlp"} {
			base := fifty(t, 0.3)
			base.Model, base.LR, base.EvalEvery = kind, 0.005, 1
			want := train(t, base, data)
			for s := range 2 {
				for servers := range 2 {
					t.Run(fmt.Sprintf("%s directed=%t s=%d servers=%d", kind, directed, s, servers), func(t *testing.T) {
						c := asynchronous(base, s, 1)
						c.Ranks, c.Servers, c.Out = 1+servers, servers, c.Out+"-async"
						got := train(t, c, data)
						sameLosses(t, kind, got.losses()[50:], want.losses()[50:], 1e-5)
					})
				}
			}
		}
	}
}
