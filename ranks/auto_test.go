package ranks

import (
	"slices"
	"testing"
)

// phased returns a run of --refresh auto with slow exchanges.
func phased(t *testing.T, model string) Config {
	c := saving(t, "off")
	c.Model, c.Ranks, c.Servers, c.Refresh, c.Delay, c.Epochs = model, 3, 0, "auto", "*:6ms:1", 25
	c.InputDropout = 0.2 // both layers gather in every epoch, as with --refresh never
	return c
}

// phasesOf returns the epochs without ghosts.
func phasesOf(t *testing.T, r trained) (alone []int) {
	t.Helper()
	for _, e := range r.Epochs {
		switch {
		case e.Refresh == "never":
			alone = append(alone, e.Epoch)
		case e.Refresh != "always":
			t.Errorf("epoch %d has refresh %q", e.Epoch, e.Refresh)
		}
		if (e.GhostBytesRaw == 0) != (e.Refresh == "never") {
			t.Errorf("epoch %d with refresh %s has sent %d bytes of rows", e.Epoch, e.Refresh, e.GhostBytesRaw)
		}
	}
	return alone
}

// With slow exchanges, ranks train alone for at most 90 % of the epochs, as evaluations
// decide, and exactly from then on. Epochs alone equal --refresh never to the bit.
func TestRefreshAuto(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, model := range []string{"gcn", "gat"} {
		t.Run(model, func(t *testing.T) {
			c := phased(t, model)
			got := train(t, c, data)
			alone := phasesOf(t, got)
			if len(alone) != 23 || slices.Max(alone) != 23 {
				t.Errorf("alone in epochs %v", alone)
			}
			c.Refresh, c.Out = "never", c.Out+"-never"
			never := train(t, c, data)
			for k := range 23 {
				if got.Epochs[k].Loss != never.Epochs[k].Loss {
					t.Errorf("epoch %d has loss %v, alone %v", k+1, got.Epochs[k].Loss, never.Epochs[k].Loss)
				}
			}
			if got.Epochs[24].Loss == never.Epochs[24].Loss {
				t.Error("exact epochs change nothing")
			}
		})
	}
}

// After its epochs alone a run continues exactly. Patience does not end it before.
func TestRefreshAutoGoesOn(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	c := phased(t, "gcn")
	c.Epochs, c.CheckpointEvery = 20, "20e"
	train(t, c, data)
	c.Epochs, c.Resume = 24, "auto"
	if alone := phasesOf(t, train(t, c, data)); slices.Max(alone) != 18 {
		t.Errorf("alone in epochs %v", alone)
	}
	c = phased(t, "gcn")
	c.LR, c.Patience, c.Epochs = 1e-9, 3, 40 // nothing is learnt
	got := train(t, c, data)
	if alone := phasesOf(t, got); got.Summary.StoppedBy != "patience" || len(got.Epochs) != 6 || len(alone) != 3 {
		t.Errorf("stopped by %s after %d epochs, alone in %v", got.Summary.StoppedBy, len(got.Epochs), alone)
	}
}
