package sat

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"siafu/bench/digest"
	"siafu/bench/trials"
	"siafu/halo/predict"
	"siafu/ranks/runfolder"
)

// systems returns the systems with these names, as bench digest defines them, for all networks.
func systems(names ...string) (list []trials.System) {
	for _, name := range names {
		for _, s := range digest.Systems() {
			if s.Name == name {
				list = append(list, trials.System{Name: name, Flags: s.Flags})
			}
		}
	}
	return list
}

// learns reports whether the predictor of a system is trained online.
func learns(s trials.System) bool { return slices.ContainsFunc(s.Flags, predict.Learns) }

// paperAlgorithm is the algorithm of the paper: predictions from rows of earlier epochs (equation 9), which
// are used for ΔT epochs, mean weights in each epoch, and no gradients of ghosts (algorithm 1,
// lines 13, 16 and 21).
const paperAlgorithm = "algorithm 1"

// predicted returns each system without and with each kind of prediction. GraphFM's momentum
// belongs to a history.
func (b *bench) predicted(batches bool, list ...trials.System) (all []trials.System) {
	for _, s := range list {
		all = append(all, s)
		for _, kind := range b.kinds {
			if batches || !strings.HasPrefix(kind, "momentum") {
				all = append(all, s.With(kind, "--predict", kind))
			}
		}
		if len(b.Kinds) == 0 && s.Name == "DIGEST" {
			all = append(all, s.With(paperAlgorithm, "--predict", "lstm-gcn:input=past,hold", "--local-epochs", "1", "--refresh", "gradients=no"))
		}
	}
	return all
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
