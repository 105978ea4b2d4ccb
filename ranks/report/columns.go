package report

import (
	"math"

	"siafu/ranks/runfolder"
)

// column is a number of runs.
type column struct {
	name     string
	decimals int
	scale    float64
	of       func(*Run) float64 // NaN: it has none
}

// ended is a number that a run has once it has ended.
func ended(name string, decimals int, scale float64, of func(*runfolder.Summary) float64) column {
	return column{name, decimals, scale, func(r *Run) float64 {
		if r.Summary == nil {
			return math.NaN()
		}
		return of(r.Summary)
	}}
}

const mib = 1.0 / (1 << 20)

// columns are the numbers of a table. Those of costs are there where a run has some.
func columns(runs []*Run) []column {
	list := []column{
		{"epochs", 0, 1, func(r *Run) float64 { return float64(len(r.Epochs)) }},
		ended("test acc", 4, 1, func(s *runfolder.Summary) float64 { return s.TestAccAtBestVal }),
		{"best val acc", 4, 1, bestVal},
		ended("majority", 4, 1, func(s *runfolder.Summary) float64 { return s.MajorityTestAcc }),
		{"s/epoch", 4, 1, perEpoch},
		ended("seconds", 1, 1, func(s *runfolder.Summary) float64 { return s.TotalSeconds }),
		ended("peak MiB", 0, mib, func(s *runfolder.Summary) float64 { return float64(s.PeakRSSBytes) }),
		ended("ghost MiB", 1, mib, func(s *runfolder.Summary) float64 { return float64(s.GhostBytesRaw) }),
		ended("sent MiB", 1, mib, func(s *runfolder.Summary) float64 { return float64(s.GhostBytesSent) }),
	}
	for _, r := range runs {
		if r.Summary != nil && r.Summary.CostUSD > 0 {
			return append(list, costs...)
		}
	}
	return list
}

var costs = []column{
	ended("invocations", 0, 1, func(s *runfolder.Summary) float64 { return float64(s.LambdaInvocations) }),
	ended("wasted", 0, 1, func(s *runfolder.Summary) float64 { return float64(s.LambdaWasted) }),
	ended("server USD", 6, 1, func(s *runfolder.Summary) float64 { return s.ServerUSD }),
	ended("lambda USD", 6, 1, func(s *runfolder.Summary) float64 { return s.LambdaUSD }),
	ended("USD", 6, 1, func(s *runfolder.Summary) float64 { return s.CostUSD }),
	ended("value", 6, 1, func(s *runfolder.Summary) float64 { return s.Value }),
}

// bestVal is the best validation accuracy so far.
func bestVal(r *Run) float64 {
	best := math.NaN()
	if r.Summary != nil {
		best = r.Summary.BestValAcc
	}
	for _, e := range r.Epochs {
		if e.ValAcc != nil && !(*e.ValAcc <= best) {
			best = *e.ValAcc
		}
	}
	return best
}

// perEpoch is the median of the seconds of an epoch.
func perEpoch(r *Run) float64 {
	if r.Summary != nil {
		return r.Summary.EpochSecondsMedian
	}
	return runfolder.MedianSeconds(r.Epochs)
}
