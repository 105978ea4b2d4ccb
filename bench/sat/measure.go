package sat

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"siafu/bench/digest"
	"siafu/bench/trials"
	"siafu/halo/predict"
	"siafu/internal/fault"
	"siafu/ranks/runfolder"
)

type bench struct {
	Options
	kinds   []string // of predictions
	graphs  []trials.Graph
	rates   []float64
	refused []string // reasons why train refuses trainings of the current part

	refusals map[string]error // by flags
}

// method is a system with a kind of prediction, "" for none.
type method struct {
	system, kind string
	flags        []string
}

// systems returns the systems with these names, as bench digest defines them.
func systems(names ...string) (list []method) {
	for _, name := range names {
		for _, s := range digest.Systems() {
			if s.Name == name {
				list = append(list, method{system: name, flags: s.Flags})
			}
		}
	}
	return list
}

func (m method) with(kind string, flags ...string) method {
	return method{m.system, kind, slices.Concat(m.flags, flags)}
}

// learns reports whether the predictor of a method is trained online.
func (m method) learns() bool { return slices.ContainsFunc(m.flags, predict.Learns) }

// letter is the algorithm of the paper: predictions from rows of earlier epochs (equation 9), which
// are used for ΔT epochs, mean weights in each epoch, and no gradients of ghosts (algorithm 1,
// lines 13, 16 and 21).
const letter = "algorithm 1"

// predicted returns each system without and with each kind of prediction. GraphFM's momentum
// belongs to a history.
func (b *bench) predicted(batches bool, list ...method) (all []method) {
	for _, m := range list {
		all = append(all, m)
		for _, kind := range b.kinds {
			if batches || !strings.HasPrefix(kind, "momentum") {
				all = append(all, m.with(kind, "--predict", kind))
			}
		}
		if len(b.Kinds) == 0 && m.system == "DIGEST" {
			all = append(all, m.with(letter, "--predict", "lstm-gcn", "--predict-input", "past", "--predict-hold", "--local-epochs",
				"1", "--ghost-gradients", "no"))
		}
	}
	return all
}

// rateless is the rate of trainings in one process.
const rateless = 0

// get returns the result of a training, nil without one. It reports whether train accepts the
// training.
func (b *bench) get(t *trials.Sheet, c trials.Setting, m method, rate float64, turn int, more ...string) (r *trials.Result, accepted bool) {
	flags := slices.Concat([]string{"--model", c.Model, "--servers", "0", "--partitioner", b.Partitioner, "--checkpoint-every",
		"off"}, b.Train, m.flags, more)
	key := fmt.Sprint(c, flags)
	err := b.refusals[key]
	if err == nil {
		r, err = t.GetFrom(trials.Trial{Data: c.Graph.Data, Ranks: c.Ranks, Rate: rate, Turn: turn, Flags: flags}, t.Runner)
		if fault.KindOf(err) != fault.Usage {
			t.Fail(err)
			return r, true
		}
		b.refusals[key] = err
	}
	why := "-: " + strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), op+": siafu: ")
	if !slices.Contains(b.refused, why) {
		b.refused = append(b.refused, why)
	}
	return nil, false
}

// accuracy returns the accuracy trainings of a method, one per seed. The list is shorter after
// the time limit.
func (b *bench) accuracy(t *trials.Sheet, c trials.Setting, m method, more ...string) (list []*trials.Result) {
	for seed := range b.Seeds {
		r, accepted := b.get(t, c, m, rateless, 0,
			append(more, "--epochs", strconv.Itoa(b.Epochs), "--eval-every", "1", "--seed", strconv.Itoa(seed+1))...)
		if !accepted {
			return nil
		}
		if r != nil {
			list = append(list, r)
		}
	}
	return list
}

// timed returns the timed trainings of each method over a number of epochs. Their repetitions are interleaved.
func (b *bench) timed(t *trials.Sheet, c trials.Setting, rate float64, epochs int, methods ...method) [][]*trials.Result {
	all := make([][]*trials.Result, len(methods))
	for turn := range b.Turns {
		for k, m := range methods {
			if r, _ := b.get(t, c, m, rate, turn, "--epochs", strconv.Itoa(epochs), "--eval-every", "0"); r != nil {
				all[k] = append(all[k], r)
			}
		}
	}
	return all
}

// stalest returns the epochs of a training with measured staleness, nil without one.
func (b *bench) stalest(t *trials.Sheet, c trials.Setting, m method, more ...string) []runfolder.Epoch {
	r, _ := b.get(t, c, m, rateless, 0,
		append(more, "--epochs", strconv.Itoa(b.Epochs), "--eval-every", "0", "--measure-staleness", strconv.Itoa(digest.MeasuredEvery))...)
	if r == nil {
		return nil
	}
	return r.Epochs
}

// errorsOf returns means over the measured epochs from first to last of the relative error of the
// rows in use and of the received rows, by hidden layer. Layers 2 and 3 have hidden rows.
func errorsOf(epochs []runfolder.Epoch, first, last int) (used, received []float64) {
	n := 0.0
	for _, e := range epochs {
		if e.Staleness == nil || e.Epoch < first || e.Epoch > last {
			continue
		}
		hidden := slices.DeleteFunc(slices.Clone(e.Staleness.Layers), func(l runfolder.LayerStaleness) bool { return l.Layer < 2 })
		if n++; used == nil {
			used, received = make([]float64, len(hidden)), make([]float64, len(hidden))
		}
		for k, l := range hidden {
			stale := l.Relative
			if l.StaleRelative != nil {
				stale = *l.StaleRelative
			}
			used[k] += (l.Relative - used[k]) / n
			received[k] += (stale - received[k]) / n
		}
	}
	return used, received
}

func join(x []float64) string {
	var cells []string
	for _, v := range x {
		cells = append(cells, trials.Number(v, 3))
	}
	return cmp.Or(strings.Join(cells, ", "), "-")
}

// meanSquares returns, for each measured epoch T, ln T and ln of the mean over epochs 1 to T of
// the squared norm of the gradient (theorem V.1). The slope is that of the regression line through
// the last half of these points.
func meanSquares(epochs []runfolder.Epoch) (x, y []float64, slope float64) {
	sum := 0.0
	for _, e := range epochs {
		if e.Staleness != nil {
			sum += e.Staleness.GradientNorm * e.Staleness.GradientNorm
			x, y = append(x, math.Log(float64(e.Epoch))), append(y, math.Log(sum/float64(len(x)+1)))
		}
	}
	mx, _ := trials.MeanStd(x[len(x)/2:])
	my, _ := trials.MeanStd(y[len(y)/2:])
	var xy, xx float64
	for k := len(x) / 2; k < len(x); k++ {
		xy, xx = xy+(x[k]-mx)*(y[k]-my), xx+(x[k]-mx)*(x[k]-mx)
	}
	return x, y, xy / xx
}
