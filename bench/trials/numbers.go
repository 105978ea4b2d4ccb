package trials

import (
	"fmt"
	"math"
	"slices"

	"siafu/ranks/runfolder"
)

// Number formats x with the given decimals, "" if unknown.
func Number(x float64, decimals int) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case math.IsInf(x, 1):
		return "never"
	}
	return fmt.Sprintf("%.*f", decimals, x)
}

// PlusMinus formats mean and standard deviation.
func PlusMinus(x []float64) string {
	mean, std := MeanStd(x)
	if math.IsNaN(mean) {
		return "-"
	}
	return fmt.Sprintf("%.2f ± %.2f", mean, std)
}

// MeanStd returns the mean and the standard deviation of x; NaN if x is empty.
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

// PerEpoch returns the mean of a number over a training's epochs except the first, the minimum
// over repetitions; NaN if there are none. It is a mean because periodic systems have two
// kinds of epochs.
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

// Seconds and Sent return an epoch's time in seconds and its bytes of rows.
func Seconds(e runfolder.Epoch) float64 { return e.Seconds }
func Sent(e runfolder.Epoch) float64    { return float64(e.GhostBytesSent) }

// Best returns the best validation accuracies of trainings, in percent.
func Best(list []*Result) []float64 {
	x := make([]float64, len(list))
	for i, r := range list {
		x[i] = 100 * r.Summary.BestValAcc
	}
	return x
}

// Tested returns the test accuracies of trainings, at their best validation accuracies, in percent.
func Tested(list []*Result) []float64 {
	x := make([]float64, len(list))
	for i, r := range list {
		x[i] = 100 * r.Summary.TestAccAtBestVal
	}
	return x
}

// Rising returns the best validation accuracies, in percent, after 0, 1, 2 … epochs of a
// training. An epoch's line refers to its initial weights.
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

// MeanRising returns the mean of Rising over trainings, up to the shortest one.
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

// Reaching returns the number of epochs after which the mean over trainings of their best
// validation accuracies reaches a target, in percent; +Inf for never, NaN without trainings.
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
