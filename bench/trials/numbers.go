package trials

import (
	"fmt"
	"io"
	"math"
	"slices"

	"siafu/ranks/report"
	"siafu/ranks/runfolder"
)

// number is a number whose format prints NaN as a dash, and infinity as "never".
type number float64

func (x number) Format(f fmt.State, verb rune) {
	switch {
	case math.IsNaN(float64(x)):
		io.WriteString(f, "-")
	case math.IsInf(float64(x), 1):
		io.WriteString(f, "never")
	default:
		fmt.Fprintf(f, fmt.FormatString(f, verb), float64(x))
	}
}

// Number formats x with the given decimals, "-" if unknown.
func Number(x float64, decimals int) string { return fmt.Sprintf("%.*f", decimals, number(x)) }

// Compared is a cell with our number and, in parentheses, the paper's.
type Compared struct{ Ours, Paper float64 }

// Format formats both numbers.
func (c Compared) Format(f fmt.State, verb rune) {
	format := fmt.FormatString(f, verb)
	fmt.Fprintf(f, format+" ("+format+")", number(c.Ours), number(c.Paper))
}

// numbers returns cells with the format of number. A slice is several cells.
func numbers(cells []any) (list []any) {
	for _, c := range cells {
		switch c := c.(type) {
		case []any:
			list = append(list, numbers(c)...)
		case []string:
			for _, text := range c {
				list = append(list, text)
			}
		case []float64:
			for _, x := range c {
				list = append(list, number(x))
			}
		case float64:
			list = append(list, number(c))
		default:
			list = append(list, c)
		}
	}
	return list
}

// PlusMinus formats mean and standard deviation.
func PlusMinus(x []float64) string {
	mean, std := MeanStd(x)
	if math.IsNaN(mean) {
		return "-"
	}
	return fmt.Sprintf("%.2f ± %.2f", mean, std)
}

// MeanStd returns the mean of x and its standard deviation with n - 1 degrees of freedom; NaN if x is
// empty.
func MeanStd(x []float64) (mean, std float64) {
	if len(x) == 0 {
		return math.NaN(), math.NaN()
	}
	return report.MeanDeviation(x)
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

// Largest returns a number of bytes of the graph rank with the most of them, NaN without a training.
func Largest(r *Result, of func(runfolder.RankReport) int64) float64 {
	most := math.NaN()
	if r != nil {
		for _, one := range r.Summary.PerRank {
			if bytes := float64(of(one)); one.Role == "graph" && !(bytes <= most) {
				most = bytes
			}
		}
	}
	return most
}

// Ghosts and OwnVertices return counts of a rank, PeakBytes and ArrayBytes the bytes of its memory and of its
// arrays.
func Ghosts(r runfolder.RankReport) int64      { return r.Ghosts }
func OwnVertices(r runfolder.RankReport) int64 { return r.Vertices }
func PeakBytes(r runfolder.RankReport) int64   { return r.PeakRSSBytes }
func ArrayBytes(r runfolder.RankReport) int64  { return r.ArrayBytes }

// Best returns the best validation accuracies of trainings, in percent.
func Best(list []*Result) []float64 {
	return percents(list, func(s runfolder.Summary) float64 { return s.BestValAcc })
}

// Target returns the validation accuracy that trainings must reach, in percent: half a point below
// the mean of the best ones of exact trainings.
func Target(exact []*Result) float64 {
	mean, _ := MeanStd(Best(exact))
	return mean - 0.5
}

// Tested returns the test accuracies of trainings, at their best validation accuracies, in percent.
func Tested(list []*Result) []float64 {
	return percents(list, func(s runfolder.Summary) float64 { return s.TestAccAtBestVal })
}

func percents(list []*Result, of func(runfolder.Summary) float64) []float64 {
	x := make([]float64, len(list))
	for i, r := range list {
		x[i] = 100 * of(r.Summary)
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

// MeanCurve returns mean and standard deviation over trainings of the elements of their curves, up
// to the end of the shortest one.
func MeanCurve(list []*Result, of func(*Result) []float64) (mean, deviation []float64) {
	var curves [][]float64
	for _, r := range list {
		curves = append(curves, of(r))
	}
	for k := 0; len(curves) > 0; k++ {
		var at []float64
		for _, c := range curves {
			if k == len(c) {
				return mean, deviation
			}
			at = append(at, c[k])
		}
		m, d := MeanStd(at)
		mean, deviation = append(mean, m), append(deviation, d)
	}
	return mean, deviation
}

// Reaching returns the number of epochs after which the mean over trainings of their best
// validation accuracies reaches a target, in percent; +Inf for never, NaN without trainings.
func Reaching(list []*Result, target float64) float64 {
	if len(list) == 0 || math.IsNaN(target) {
		return math.NaN()
	}
	mean, _ := MeanCurve(list, Rising)
	k := slices.IndexFunc(mean, func(x float64) bool { return x >= target })
	if k < 0 {
		return math.Inf(1)
	}
	return float64(k)
}
