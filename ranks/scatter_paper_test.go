package ranks

import "testing"

// "Communication between GSes is needed only during Scatter in both (1) forward pass […] and
// (2) backward pass where gradients are propagated along the same edges in the reverse
// direction." (Dorylus, OSDI'21, §4)
//
// So an epoch sends each ghost's row once for every layer's gather and once for its gradient,
// with the width of the gathered rows, and nothing else. The first layer's input has no
// gradient, and with cached ÂX no gather. With cached ghost features the first layer sends
// nothing.
func TestOnlyScatterMovesRows(t *testing.T) {
	t.Parallel()
	data := generated(t, true) // 12 features, 4 classes
	for _, tc := range []struct {
		name  string
		set   func(*Config)
		width int64 // floats sent per ghost and epoch
	}{
		{"kept input, then A(HW)", func(*Config) {}, 2 * 4},
		{"(AH)W", func(c *Config) { c.Order, c.CacheInput = "gather-first", "off" }, 12 + 2*16},
		{"(AH)W, ghost rows of a layer computed",
			func(c *Config) { c.Order, c.CacheInput, c.RecomputeGhosts = "gather-first", "off", "layers:1" }, 2 * 16},
		{"A(HW), ghost rows of a layer computed",
			func(c *Config) { c.Order, c.Dropout, c.RecomputeGhosts = "apply-first", 0.5, "layers:1" }, 2 * 4},
		{"A(HW)", func(c *Config) { c.Order = "apply-first" }, 2*16 + 2*4},
		{"three layers of A(HW)", func(c *Config) { c.Order, c.Layers = "apply-first", 3 }, 2*16 + 2*16 + 2*4},
		{"A(HW) with dropout, evaluated apart", func(c *Config) { c.Order, c.Dropout = "apply-first", 0.5 }, 2*16 + 2*4},
		{"perceptron", func(c *Config) { c.Model = "mlp" }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := quick(t)
			c.Ranks, c.Epochs, c.Dropout, c.Partitioner, c.PreAggregate, c.RecomputeGhosts = 5, 3, 0, "hash", "off", "none"
			tc.set(&c)
			r := train(t, c, data)
			ghosts := int64(0)
			for _, p := range r.Summary.PerRank {
				ghosts += p.Ghosts
			}
			for _, e := range r.Epochs {
				if want := 4 * ghosts * tc.width; e.GhostBytesRaw != want {
					t.Errorf("epoch %d moved %d bytes, want %d for %d ghosts", e.Epoch, e.GhostBytesRaw, want, ghosts)
				}
			}
			if ghosts == 0 {
				t.Error("there are no ghosts: nothing was tested")
			}
		})
	}
}
