package ranks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/kernels/model"
	"siafu/ranks/runfolder"
)

// evaluated is the line of an epoch.
func evaluated(epoch int, acc, loss float64) runfolder.Epoch {
	zero := 0.0
	return runfolder.Epoch{Epoch: epoch, Loss: 1, ValLoss: &loss, TrainAcc: &zero, ValAcc: &acc, TestAcc: &zero}
}

// begun is a history before its first line. Its weights are a single number, the
// epoch's.
func begun(s stopping) *history {
	return &history{stopping: s, record: unset, params: []model.Param{{Name: "w", Rows: 1, Cols: 1}}}
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
		rule  stopping
		lines []point
		epoch int // that ends the run, 0: none
		why   string
		best  int
	}{
		{"nothing asked for", stopping{judged: true}, rise, 0, goesOn, 5},
		{"patience in vain", stopping{judged: true, patience: 2}, rise, 0, goesOn, 5},
		{"patience at an end", stopping{judged: true, patience: 2}, flat, 3, byPatience, 1},
		{"accuracy alone", stopping{judged: true, patience: 2, patienceOn: onAccuracy}, apart, 3, byPatience, 1},
		{"loss alone", stopping{judged: true, patience: 2, patienceOn: onLoss}, apart, 0, goesOn, 5},
		{"loss that stays", stopping{judged: true, patience: 2, patienceOn: onLoss}, flat, 3, byPatience, 1},
		{"both: as good as ever is enough", stopping{judged: true, patience: 2, patienceOn: onBoth}, flat, 0, goesOn, 5},
		{"both: one of them is", stopping{judged: true, patience: 2, patienceOn: onBoth}, apart, 0, goesOn, 1},
		{"both: neither", stopping{judged: true, patience: 2, patienceOn: onBoth},
			[]point{{.5, 5}, {.4, 6}, {.4, 6}, {.4, 6}}, 3, byPatience, 1},
		{"both: measures are best in different epochs", stopping{judged: true, patience: 2, patienceOn: onBoth},
			[]point{{.5, 5}, {.6, 6}, {.5, 4}, {.5, 5}, {.6, 4}, {.1, 9}, {.1, 9}}, 7, byPatience, 5},
		{"nothing is validated", stopping{patience: 2}, []point{{0, nan}, {0, nan}, {0, nan}, {0, nan}}, 0, goesOn, 4},
		{"nothing is validated, on loss", stopping{patience: 2, patienceOn: onLoss}, []point{{0, nan}, {0, nan}, {0, nan}, {0, nan}}, 0, goesOn, 4},
		{"target", stopping{judged: true, target: .4}, rise, 4, byTarget, 4},
		{"target and patience at once", stopping{judged: true, target: .5, patience: 1}, flat, 1, byTarget, 1},
		{"near the target", stopping{judged: true, target: .5, within: .2}, rise, 3, switched, 3},
		{"diverged", stopping{judged: true}, []point{{.1, 9}, {.2, nan}}, 2, byDivergence, 1},
		{"infinite", stopping{judged: true}, []point{{.1, 9}, {.2, math.Inf(1)}}, 2, byDivergence, 1},
		{"diverged at the target", stopping{judged: true, target: .1}, []point{{.1, nan}}, 1, byDivergence, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, why, epoch := begun(tc.rule), goesOn, 0
			for i, p := range tc.lines {
				line := evaluated(i+1, p.acc, p.loss)
				if !tc.rule.judged {
					line.ValLoss = nil
				}
				if why = h.observe(line, []float32{float32(i + 1)}); why != goesOn {
					epoch = i + 1
					break
				}
			}
			best := 0
			if h.best != nil {
				best = int(h.best[0])
			}
			if why != tc.why || epoch != tc.epoch || best != tc.best || h.bestLine.Epoch != tc.best {
				t.Errorf("%q in epoch %d, best %d (line %d); want %q in %d, best %d", why, epoch, best, h.bestLine.Epoch, tc.why, tc.epoch, tc.best)
			}
		})
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
		{"epochs", .1, 1, 2, goesOn, byEpochs, 1},
		{"better", .7, 1, 2, goesOn, byEpochs, 2},
		{"target", .9, 1, 2, goesOn, byTarget, 2},
		{"stopped before", .9, 1, 2, byPatience, byPatience, 2},
		{"no loss", .9, math.NaN(), 2, goesOn, byDivergence, 1},
		{"no loss after the target", .9, math.NaN(), 2, byTarget, byDivergence, 1},
		{"no weights", .1, 1, float32(math.Inf(1)), goesOn, byDivergence, 1},
		{"no weights, and better", .7, 1, float32(math.NaN()), goesOn, byDivergence, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := begun(stopping{judged: true, patience: 1, target: .8})
			h.observe(evaluated(1, .5, 1), []float32{1})
			h.conclude(evaluated(2, tc.acc, tc.loss), []float32{tc.weight}, tc.why)
			if h.stoppedBy != tc.want || h.best[0] != float32(tc.best) || h.bestLine.Epoch != tc.best || (h.trouble != nil) != (tc.want == byDivergence) {
				t.Errorf("stopped by %q, best %v of epoch %d; want %q, %d", h.stoppedBy, h.best, h.bestLine.Epoch, tc.want, tc.best)
			}
		})
	}
}

// Veličković et al. 2018, execute_cora.py: "if val_acc >= vacc_mx or val_loss <=
// vlss_mn: if val_acc >= vacc_mx and val_loss <= vlss_mn: saver.save(…); vacc_mx
// = max(val_acc, vacc_mx); vlss_mn = min(val_loss, vlss_mn); curr_step = 0; else:
// curr_step += 1; if curr_step == patience: break". A checkpoint between any two
// epochs changes nothing.
func TestPatienceOnBothIsThatOfGAT(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		patience := 1 + rng.IntN(6)
		h := begun(stopping{judged: true, patience: patience, patienceOn: onBoth})
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
			why := h.observe(evaluated(epoch, acc, loss), []float32{float32(epoch)})
			if (why == byPatience) != (currStep == patience) || h.bestLine.Epoch != saved {
				t.Fatalf("seed %d, epoch %d: %q and best %d; want step %d of %d and best %d", seed, epoch, why, h.bestLine.Epoch, currStep, patience, saved)
			}
			if why == byPatience {
				break
			}
			if rng.IntN(3) == 0 {
				h.record = recalled(h.record.saved(), h.bestLine)
			}
		}
	}
}

// Of no vector is a number that is none overlooked, at whatever place.
func TestNumbers(t *testing.T) {
	for n := range 19 {
		x := slices.Repeat([]float32{math.MaxFloat32}, n)
		if !numbers(x) {
			t.Errorf("%d large numbers are none", n)
		}
		for i := range x {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				x[i] = float32(bad)
				if numbers(x) {
					t.Errorf("%v at %d of %d is overlooked", bad, i, n)
				}
			}
			x[i] = -math.MaxFloat32
		}
	}
}

// All modes stop where nothing is left to train, and not before, if no vertex is
// validated; the last weights are then the best.
func TestNothingToValidate(t *testing.T) {
	c := randomContent(60, 3)
	for v, s := range c.Split {
		if s == 2 {
			c.Split[v] = 3
		}
	}
	data := write(t, c)
	for _, mode := range []string{"pipe", "nopipe", "async"} {
		for _, on := range []string{onAccuracy, onLoss, onBoth} {
			for _, ranks := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s %s %d", mode, on, ranks), func(t *testing.T) {
					c := quick(t)
					c.Mode, c.Patience, c.PatienceOn, c.Ranks, c.Epochs = mode, 3, on, ranks, 12
					r := train(t, c, data)
					if s := r.Summary; s.StoppedBy != byEpochs || s.Epochs != 12 || s.BestEpoch != 13 {
						t.Errorf("stopped by %s after %d epochs, best %d", s.StoppedBy, s.Epochs, s.BestEpoch)
					}
					if r.Epochs[0].ValLoss != nil {
						t.Errorf("a validation loss of %v", *r.Epochs[0].ValLoss)
					}
				})
			}
		}
	}
}
