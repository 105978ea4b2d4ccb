package stopping

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/kernels/model"
	"siafu/ranks/checkpoint"
	"siafu/ranks/runfolder"
)

// evaluated returns the line of an epoch.
func evaluated(epoch int, acc, loss float64) runfolder.Epoch {
	zero := 0.0
	return runfolder.Epoch{Epoch: epoch, Loss: 1, ValLoss: &loss, TrainAcc: &zero, ValAcc: &acc, TestAcc: &zero}
}

// begun returns a history before its first line. Its weights are a single number, the
// epoch's.
func begun(r Rule) *History {
	return New(r, []model.Param{{Name: "w", Rows: 1, Cols: 1}})
}

// Which line ends a run, why, and whose weights are kept.
func TestStoppingRule(t *testing.T) {
	type point struct{ acc, loss float64 }
	nan := math.NaN()
	rise := []point{{.1, 9}, {.2, 8}, {.3, 7}, {.4, 6}, {.5, 5}}
	flat := []point{{.5, 5}, {.5, 5}, {.5, 5}, {.5, 5}, {.5, 5}}
	apart := []point{{.5, 5}, {.4, 4}, {.3, 3}, {.2, 2}, {.1, 1}} // the loss falls, and accuracy with it
	for _, tc := range []struct {
		name  string
		rule  Rule
		lines []point
		epoch int // that ends the run, 0: none
		why   string
		best  int
	}{
		{"nothing asked for", Rule{Validated: true}, rise, 0, GoesOn, 5},
		{"patience in vain", Rule{Validated: true, Patience: 2}, rise, 0, GoesOn, 5},
		{"patience at an end", Rule{Validated: true, Patience: 2}, flat, 3, ByPatience, 1},
		{"accuracy alone", Rule{Validated: true, Patience: 2, Monitor: OnAccuracy}, apart, 3, ByPatience, 1},
		{"loss alone", Rule{Validated: true, Patience: 2, Monitor: OnLoss}, apart, 0, GoesOn, 5},
		{"loss that stays", Rule{Validated: true, Patience: 2, Monitor: OnLoss}, flat, 3, ByPatience, 1},
		{"both: as good as ever is enough", Rule{Validated: true, Patience: 2, Monitor: OnBoth}, flat, 0, GoesOn, 5},
		{"both: one of them is", Rule{Validated: true, Patience: 2, Monitor: OnBoth}, apart, 0, GoesOn, 1},
		{"both: neither", Rule{Validated: true, Patience: 2, Monitor: OnBoth},
			[]point{{.5, 5}, {.4, 6}, {.4, 6}, {.4, 6}}, 3, ByPatience, 1},
		{"both: measures are best in different epochs", Rule{Validated: true, Patience: 2, Monitor: OnBoth},
			[]point{{.5, 5}, {.6, 6}, {.5, 4}, {.5, 5}, {.6, 4}, {.1, 9}, {.1, 9}}, 7, ByPatience, 5},
		{"nothing is validated", Rule{Patience: 2}, []point{{0, nan}, {0, nan}, {0, nan}, {0, nan}}, 0, GoesOn, 4},
		{"nothing is validated, on loss", Rule{Patience: 2, Monitor: OnLoss},
			[]point{{0, nan}, {0, nan}, {0, nan}, {0, nan}}, 0, GoesOn, 4},
		{"target", Rule{Validated: true, Target: .4}, rise, 4, ByTarget, 4},
		{"target and patience at once", Rule{Validated: true, Target: .5, Patience: 1}, flat, 1, ByTarget, 1},
		{"near the target", Rule{Validated: true, Target: .5, Within: .2}, rise, 3, BySwitch, 3},
		{"diverged", Rule{Validated: true}, []point{{.1, 9}, {.2, nan}}, 2, ByDivergence, 1},
		{"infinite", Rule{Validated: true}, []point{{.1, 9}, {.2, math.Inf(1)}}, 2, ByDivergence, 1},
		{"diverged at the target", Rule{Validated: true, Target: .1}, []point{{.1, nan}}, 1, ByDivergence, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, why, epoch := begun(tc.rule), GoesOn, 0
			for i, p := range tc.lines {
				line := evaluated(i+1, p.acc, p.loss)
				if !tc.rule.Validated {
					line.ValLoss = nil
				}
				if why = h.Observe(line, []float32{float32(i + 1)}); why != GoesOn {
					epoch = i + 1
					break
				}
			}
			best := 0
			if h.Best != nil {
				best = int(h.Best[0])
			}
			if why != tc.why || epoch != tc.epoch || best != tc.best || h.BestLine.Epoch != tc.best {
				t.Errorf("%q in epoch %d, best %d (line %d); want %q in %d, best %d", why, epoch, best,
					h.BestLine.Epoch, tc.why, tc.epoch, tc.best)
			}
		})
	}
}

// Shchur et al. 2018, KDDCriterion: "if val_loss <= self.val_loss_min" keeps the weights and
// restarts the count, where val_loss is GNNModel.loss, "loss +
// tf.add_n(regularization_losses)". A loss that rises throughout the patience does not end a
// run whose penalty falls by more. A falling loss does not prolong a run whose penalty rises
// by more. A checkpoint changes nothing.
func TestPatienceOnPenalisedLoss(t *testing.T) {
	for _, tc := range []struct {
		name          string
		loss, penalty float64 // from epoch to epoch
		on            string
		epoch, best   int
	}{
		{"loss alone ends it", 1, -2, OnLoss, 4, 1},
		{"the penalty goes on", 1, -2, OnPenalty, 0, 6},
		{"loss alone goes on", -1, 2, OnLoss, 0, 6},
		{"the penalty ends it", -1, 2, OnPenalty, 4, 1},
		{"they outweigh each other", 1, -1, OnPenalty, 4, 1},
	} {
		rule := Rule{Validated: true, Patience: 3, Monitor: tc.on,
			Penalty: func(w []float32) float64 { return 20 + tc.penalty*float64(w[0]) }}
		h, epoch := begun(rule), 0
		for e := 1; e <= 6 && epoch == 0; e++ {
			if h.Observe(evaluated(e, .5, 20+tc.loss*float64(e)), []float32{float32(e)}) == ByPatience {
				epoch = e
			}
			h.Resume(h.Best, h.BestLine, h.Last, h.Record.Saved())
		}
		if epoch != tc.epoch || h.BestLine.Epoch != tc.best || h.Best[0] != float32(tc.best) {
			t.Errorf("%s: ended by epoch %d, best %d; want %d, %d", tc.name, epoch, h.BestLine.Epoch, tc.epoch, tc.best)
		}
	}
}

// With a metric the best line is that of its highest value, or the lowest of an error, and
// patience counts from it. A checkpoint changes nothing, and one of a run that monitored
// something else has no value to compare with.
func TestMonitoredMetric(t *testing.T) {
	values := []float64{.3, .1, .4, .4, .2, .4, .5}
	for metric, want := range map[string][2]int{"macro_f1": {6, 3}, "mse": {5, 2}} { // end and best
		h, end := begun(Rule{Validated: true, Patience: 3, Monitor: metric}), 0
		h.Resume([]float32{0}, evaluated(0, .9, 1), runfolder.Epoch{}, &checkpoint.Record{ValAcc: .9})
		for e := 1; end == 0; e++ {
			line := evaluated(e, .5, float64(e))
			line.ValMetrics = map[string]float64{metric: values[e-1]}
			if h.Observe(line, []float32{float32(e)}) == ByPatience {
				end = e
			}
			h.Resume(h.Best, h.BestLine, h.Last, h.Record.Saved())
		}
		if end != want[0] || h.BestLine.Epoch != want[1] || h.Best[0] != float32(want[1]) {
			t.Errorf("%s: ended by epoch %d, best %d; want %v", metric, end, h.BestLine.Epoch, want)
		}
	}
}

// The last weights are the run's end, whatever patience says of them; but they
// may reach the target, and may be no numbers.
func TestConclude(t *testing.T) {
	for _, tc := range []struct {
		name      string
		acc, loss float64
		weight    float32
		why, want string
		best      int
	}{
		{"epochs", .1, 1, 2, GoesOn, ByEpochs, 1},
		{"better", .7, 1, 2, GoesOn, ByEpochs, 2},
		{"target", .9, 1, 2, GoesOn, ByTarget, 2},
		{"stopped before", .9, 1, 2, ByPatience, ByPatience, 2},
		{"no loss", .9, math.NaN(), 2, GoesOn, ByDivergence, 1},
		{"no loss after the target", .9, math.NaN(), 2, ByTarget, ByDivergence, 1},
		{"no weights", .1, 1, float32(math.Inf(1)), GoesOn, ByDivergence, 1},
		{"no weights, and better", .7, 1, float32(math.NaN()), GoesOn, ByDivergence, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := begun(Rule{Validated: true, Patience: 1, Target: .8})
			h.Observe(evaluated(1, .5, 1), []float32{1})
			h.Conclude(evaluated(2, tc.acc, tc.loss), []float32{tc.weight}, tc.why)
			if h.StoppedBy != tc.want || h.Best[0] != float32(tc.best) || h.BestLine.Epoch != tc.best ||
				(h.Divergence != nil) != (tc.want == ByDivergence) {
				t.Errorf("stopped by %q, best %v of epoch %d; want %q, %d", h.StoppedBy, h.Best, h.BestLine.Epoch, tc.want, tc.best)
			}
		})
	}
}

// Veličković et al. 2018, execute_cora.py: "if val_acc >= vacc_mx or val_loss <=
// vlss_mn: if val_acc >= vacc_mx and val_loss <= vlss_mn: saver.save(…); vacc_mx
// = max(val_acc, vacc_mx); vlss_mn = min(val_loss, vlss_mn); curr_step = 0; else:
// curr_step += 1; if curr_step == Patience: break". A checkpoint between any two
// epochs changes nothing.
func TestPatienceOnBothIsThatOfGAT(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		patience := 1 + rng.IntN(6)
		h := begun(Rule{Validated: true, Patience: patience, Monitor: OnBoth})
		vaccMx, vlssMn, currStep, saved := 0.0, math.Inf(1), 0, 0
		for epoch := 1; epoch < 200; epoch++ {
			acc, loss := float64(rng.IntN(8))/8, float64(1+rng.IntN(8))
			if acc >= vaccMx || loss <= vlssMn {
				if acc >= vaccMx && loss <= vlssMn {
					saved = epoch
				}
				vaccMx, vlssMn, currStep = max(acc, vaccMx), min(loss, vlssMn), 0
			} else {
				currStep++
			}
			why := h.Observe(evaluated(epoch, acc, loss), []float32{float32(epoch)})
			if (why == ByPatience) != (currStep == patience) || h.BestLine.Epoch != saved {
				t.Fatalf("seed %d, epoch %d: %q and best %d; want step %d of %d and best %d", seed, epoch, why,
					h.BestLine.Epoch, currStep, patience, saved)
			}
			if why == ByPatience {
				break
			}
			if rng.IntN(3) == 0 {
				h.Resume(h.Best, h.BestLine, h.Last, h.Record.Saved())
			}
		}
	}
}

// A NaN or infinity is found at every position of a vector.
func TestNumbers(t *testing.T) {
	for n := range 19 {
		x := slices.Repeat([]float32{math.MaxFloat32}, n)
		if !areFinite(x) {
			t.Errorf("%d large numbers are none", n)
		}
		for i := range x {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				x[i] = float32(bad)
				if areFinite(x) {
					t.Errorf("%v at %d of %d is overlooked", bad, i, n)
				}
			}
			x[i] = -math.MaxFloat32
		}
	}
}
