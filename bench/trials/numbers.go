package trials

import (
	"fmt"
	"math"
	"slices"

	"siafu/ranks/runfolder"
)

// Number writes x with N decimals, nothing for one that is not known.
func Number(x float64, decimals int) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case math.IsInf(x, 1):
		return "never"
	}
	return fmt.Sprintf("%.*f", decimals, x)
}

// PlusMinus writes mean and standard deviation.
func PlusMinus(x []float64) string {
	mean, std := MeanStd(x)
	if math.IsNaN(mean) {
		return "-"
	}
	return fmt.Sprintf("%.2f ± %.2f", mean, std)
}

// MeanStd are the mean and the standard deviation of x; NaN of none.
func MeanStd(x []float64) (mean, std float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		std += (v - mean) * (v - mean) / n
	}
	if len(x) == 0 {
		return math.NaN(), math.NaN()
	}
	return mean, math.Sqrt(std)
}

// PerEpoch is the mean of a number over a training's epochs but the first, the least
// of all turns; NaN of none. A mean, since periodic systems have epochs of two kinds.
func PerEpoch(turns []*Result, of func(runfolder.Epoch) float64) float64 {
	best := math.NaN()
	for _, r := range turns {
		sum, n := 0.0, 0
		for _, e := range r.Epochs[min(1, len(r.Epochs)):] {
			sum, n = sum+of(e), n+1
		}
		if mean := sum / float64(n); !(mean >= best) {
			best = mean
		}
	}
	return best
}

// Seconds and Sent are numbers of an epoch: what it took, and bytes of rows.
func Seconds(e runfolder.Epoch) float64 { return e.Seconds }
func Sent(e runfolder.Epoch) float64    { return float64(e.GhostBytesSent) }

// Best are the best validation accuracies of trainings, in percent.
func Best(list []*Result) []float64 {
	x := make([]float64, len(list))
	for i, r := range list {
		x[i] = 100 * r.Summary.BestValAcc
	}
	return x
}

// Rising are the best validation accuracies, in percent, after 0, 1, 2 … epochs of a
// training. An epoch's line tells of the weights that it starts from.
func Rising(r *Result) []float64 {
	x, best := make([]float64, len(r.Epochs)+1), 0.0
	for k, e := range r.Epochs {
		if e.ValAcc != nil {
			best = max(best, 100**e.ValAcc)
		}
		x[k] = best
	}
	x[len(r.Epochs)] = max(best, 100*r.Summary.FinalValAcc)
	return x
}

// MeanRising is the mean of Rising over trainings, as far as all of them went.
func MeanRising(list []*Result) []float64 {
	if len(list) == 0 {
		return nil
	}
	mean := Rising(list[0])
	for _, r := range list[1:] {
		next := Rising(r)
		mean = mean[:min(len(mean), len(next))]
		for k := range mean {
			mean[k] += next[k]
		}
	}
	for k := range mean {
		mean[k] /= float64(len(list))
	}
	return mean
}

// Reaching is after how many epochs the mean over trainings of their best validation
// accuracies has come to a target, in percent; +Inf for never, NaN of no trainings.
func Reaching(list []*Result, target float64) float64 {
	if len(list) == 0 || math.IsNaN(target) {
		return math.NaN()
	}
	k := slices.IndexFunc(MeanRising(list), func(x float64) bool { return x >= target })
	if k < 0 {
		return math.Inf(1)
	}
	return float64(k)
}
