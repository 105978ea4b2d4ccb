package report

import (
	"math"
	"slices"

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

// drawn returns the column, with bars.
func (c column) drawn(title, axis string) column {
	c.title, c.axis = title, axis
	return c
}

// ended returns a number that a run has once it has ended.
func ended(name string, decimals int, scale float64, of func(*runfolder.Summary) float64) column {
	return column{name: name, decimals: decimals, scale: scale, of: func(r *Run) float64 {
		if r.Summary == nil {
			return math.NaN()
		}
		return of(r.Summary)
	}}
}

const mib = 1.0 / (1 << 20)

// columns returns the numbers of a table. Those of costs are there where a run has some.
func columns(runs []*Run) []column {
	score, axis := scoreOf(runs)
	list := []column{
		{name: "epochs", scale: 1, of: func(r *Run) float64 { return float64(len(r.Epochs)) }},
		ended("test "+score, 4, 1, func(s *runfolder.Summary) float64 { return s.TestAccAtBestVal }).drawn("Test "+long(score)+" of the saved weights", axis),
		{name: "val " + score, decimals: 4, scale: 1, of: validation},
		ended("majority", 4, 1, func(s *runfolder.Summary) float64 { return s.MajorityTestAcc }),
		column{name: "s/epoch", decimals: 4, scale: 1, of: perEpoch}.drawn("Time of an epoch (median)", "s"),
		ended("seconds", 1, 1, func(s *runfolder.Summary) float64 { return s.TotalSeconds }).drawn("Time of the run", "s"),
		ended("peak MiB", 0, mib, func(s *runfolder.Summary) float64 { return float64(s.PeakRSSBytes) }).drawn("Memory of the largest rank", "MiB"),
		ended("ghost MiB", 1, mib, func(s *runfolder.Summary) float64 { return float64(s.GhostBytesRaw) }),
		ended("sent MiB", 1, mib, func(s *runfolder.Summary) float64 { return float64(s.GhostBytesSent) }).drawn("Ghost rows sent", "MiB"),
	}
	for _, name := range slices.Backward(optimised(runs)) {
		list = slices.Insert(list, 3, testMetric(name))
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

// optimised returns the metrics that tell more than the score about what runs were trained
// for: the one that chose their weights, and balanced accuracy where the loss did or
// classes had weights.
func optimised(runs []*Run) (names []string) {
	for _, r := range runs {
		s := r.Summary
		if s == nil || s.Metrics == nil || s.Metrics.Test == nil {
			continue
		}
		name := s.Monitor
		if s.Metrics.Test.Value(name) == nil || name == s.Metric {
			name = "balanced_accuracy"
		}
		if (!choosesByScore(s) || weighs(s)) && s.Metrics.Test.Value(name) != nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// choosesByScore reports whether the score of the lines chose a run's weights. Summaries of
// older versions do not say.
func choosesByScore(s *runfolder.Summary) bool {
	return slices.Contains([]string{"", "accuracy", s.Metric}, s.Monitor)
}

// weighs reports whether classes had weights in a run's loss.
func weighs(s *runfolder.Summary) bool { return s.ClassWeights != "" && s.ClassWeights != "off" }

// testMetric returns the column of a metric of the test vertices.
func testMetric(name string) column {
	return ended("test "+name, 4, 1, func(s *runfolder.Summary) float64 {
		if s.Metrics == nil || s.Metrics.Test == nil || s.Metrics.Test.Value(name) == nil {
			return math.NaN()
		}
		return *s.Metrics.Test.Value(name)
	})
}

// scoreOf returns the metric that runs are compared by, in short, and what its axis is called:
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

// long returns the name of a metric in titles.
func long(score string) string {
	if score == "acc" {
		return "accuracy"
	}
	return score
}

// validation returns the validation score of the epoch that the row's test score is of: the
// epoch of the saved weights. Of a run that has not ended it is the newest one.
func validation(r *Run) float64 {
	if r.Summary != nil {
		return r.Summary.BestValAcc
	}
	for _, e := range slices.Backward(r.Epochs) {
		if e.ValAcc != nil {
			return *e.ValAcc
		}
	}
	return math.NaN()
}

// perEpoch returns the median of the seconds of an epoch.
func perEpoch(r *Run) float64 {
	if r.Summary != nil {
		return r.Summary.EpochSecondsMedian
	}
	return runfolder.MedianSeconds(r.Epochs)
}
