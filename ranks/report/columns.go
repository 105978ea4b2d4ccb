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

	title, axis string // of its bars; empty: it has none
}

// drawn is the column, with bars.
func (c column) drawn(title, axis string) column {
	c.title, c.axis = title, axis
	return c
}

// ended is a number that a run has once it has ended.
func ended(name string, decimals int, scale float64, of func(*runfolder.Summary) float64) column {
	return column{name: name, decimals: decimals, scale: scale, of: func(r *Run) float64 {
		if r.Summary == nil {
			return math.NaN()
		}
		return of(r.Summary)
	}}
}

const mib = 1.0 / (1 << 20)

// columns are the numbers of a table. Those of costs are there where a run has some.
func columns(runs []*Run) []column {
	score, axis := scoreOf(runs)
	list := []column{
		{name: "epochs", scale: 1, of: func(r *Run) float64 { return float64(len(r.Epochs)) }},
		ended("test "+score, 4, 1, func(s *runfolder.Summary) float64 { return s.TestAccAtBestVal }).drawn("Test "+long(score)+" at the best validation", axis),
		{name: "best val " + score, decimals: 4, scale: 1, of: bestVal},
		ended("majority", 4, 1, func(s *runfolder.Summary) float64 { return s.MajorityTestAcc }),
		column{name: "s/epoch", decimals: 4, scale: 1, of: perEpoch}.drawn("Time of an epoch (median)", "s"),
		ended("seconds", 1, 1, func(s *runfolder.Summary) float64 { return s.TotalSeconds }).drawn("Time of the run", "s"),
		ended("peak MiB", 0, mib, func(s *runfolder.Summary) float64 { return float64(s.PeakRSSBytes) }).drawn("Memory of the largest rank", "MiB"),
		ended("ghost MiB", 1, mib, func(s *runfolder.Summary) float64 { return float64(s.GhostBytesRaw) }),
		ended("sent MiB", 1, mib, func(s *runfolder.Summary) float64 { return float64(s.GhostBytesSent) }).drawn("Ghost rows sent", "MiB"),
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
	ended("USD", 6, 1, func(s *runfolder.Summary) float64 { return s.CostUSD }).drawn("Cost", "US dollars"),
	ended("value", 6, 1, func(s *runfolder.Summary) float64 { return s.Value }),
}

// scoreOf is the metric that runs are compared by, in short, and what its axis is called:
// accuracies unless runs were trained for other tasks.
func scoreOf(runs []*Run) (name, axis string) {
	for _, r := range runs {
		metric := "acc"
		if s := r.Summary; s != nil && s.Metric != "" && s.Metric != "accuracy" {
			metric = s.Metric
		}
		if name != "" && name != metric {
			return "score", "score"
		}
		name = metric
	}
	if name == "" || name == "acc" {
		return "acc", "fraction right"
	}
	return name, name
}

// long is the name of a metric in titles.
func long(score string) string {
	if score == "acc" {
		return "accuracy"
	}
	return score
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
