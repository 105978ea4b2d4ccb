package ranks

import (
	"bytes"
	"path/filepath"
	"testing"

	"siafu/internal/testkit/hosttest"
)

// A run of a deep network in mini-batches has the same bits with any schedule, and resumes with the bits
// of a run that was not interrupted.
func TestDeepBatchesWhateverElse(t *testing.T) {
	t.Parallel()
	all, data := deepNetworks(), fewTargets(t, true)
	for i, tc := range []struct{ network, batch string }{
		{"gcnii", "history:5"}, {"gcnii", "variates:5,2"}, {"gcnii", "neighbor:3,3,2,2,5"}, {"gcnii", "cluster:9,2"},
		{"gcn max initial", "variates:5,2"}, {"sage add layer", "history:5"}, {"sage initial l2", "neighbor:3,3,2,2,5"},
		{"gat initial cat", "cluster:9,2"},
	} {
		t.Run(tc.network+" "+tc.batch, func(t *testing.T) {
			t.Parallel()
			run := func(set func(*Config)) trained {
				c := deepRun(t, all[tc.network])
				c.Ranks, c.Threads, c.Batch, c.Epochs, c.EvalEvery, c.CheckpointEvery, c.Optimizer = 3, 1, tc.batch, 8, 3, "4e", "adam"
				set(&c)
				return train(t, c, data)
			}
			want := run(func(*Config) {})
			if first, last := want.Epochs[0].Loss, want.Summary.FinalLoss; !(last < first) {
				t.Errorf("the loss goes from %v to %v", first, last)
			}
			halves := filepath.Join(t.TempDir(), "halves")
			for name, set := range hosttest.Share(t, 2, map[string]func(*Config){
				"nopipe": func(c *Config) { c.Mode = "nopipe" }, "four workers": func(c *Config) { c.Threads = 4 },
				"a server": func(c *Config) { c.Ranks, c.Servers = 4, 1 }, "parts": func(c *Config) { c.Ranks, c.Parts = 2, 3 },
				"resumed": func(c *Config) {
					run(func(c *Config) { c.Out, c.Epochs = halves, 4 })
					c.Out, c.Resume = halves, "auto"
				},
				"recompute": func(c *Config) { c.Recompute = i < 2 || i == 4 || i == 5 }, // not with sampled fields
			}) {
				if got := run(set); !bytes.Equal(got.model, want.model) {
					t.Errorf("%s: another model", name)
				}
			}
		})
	}
}
