package report

import (
	"math"
	"slices"

	"siafu/ranks/runfolder"
)

// column is a numeric column of the table.
type column struct {
	name     string
	decimals int
	scale    float64
	of       func(*Run) float64 // NaN: the run has no such number

	title, axis string // of the bar chart; empty: no bar chart
}

func (c column) withBars(title, axis string) column {
	c.title, c.axis = title, axis
	return c
}

// summaryColumn returns a column of a number in the summary, which only ended runs have.
func summaryColumn(name string, decimals int, scale float64, of func(*runfolder.Summary) float64) column {
	return column{name: name, decimals: decimals, scale: scale, of: func(r *Run) float64 {
		if r.Summary == nil {
			return math.NaN()
		}
		return of(r.Summary)
	}}
}

const mib = 1.0 / (1 << 20)

// columns returns the numeric columns of a table. It includes the costs if a run has costs.
func columns(runs []*Run) []column {
	score, axis := scoreOf(runs)
	list := []column{
		{name: "epochs", scale: 1, of: func(r *Run) float64 { return float64(r.Lines) }},
		summaryColumn("test "+score, 4, 1, func(s *runfolder.Summary) float64 { return s.TestAccAtBestVal }).
			withBars("Test "+long(score)+" of the saved weights", axis),
		{name: "val " + score, decimals: 4, scale: 1, of: validation},
		column{name: "s/epoch", decimals: 4, scale: 1, of: perEpoch}.withBars("Time of an epoch (median)", "s"),
		summaryColumn("seconds", 1, 1, func(s *runfolder.Summary) float64 { return s.TotalSeconds }).withBars("Time of the run", "s"),
		summaryColumn("peak MiB", 0, mib, func(s *runfolder.Summary) float64 { return float64(s.PeakRSSBytes) }).
			withBars("Memory of the largest rank", "MiB"),
		summaryColumn("ghost MiB", 1, mib, func(s *runfolder.Summary) float64 { return float64(s.GhostBytesRaw) }),
		summaryColumn("sent MiB", 1, mib, func(s *runfolder.Summary) float64 { return float64(s.GhostBytesSent) }).
			withBars("Ghost rows sent", "MiB"),
	}
	if slices.ContainsFunc(runs, hasAccuracy) {
		list = slices.Insert(list, 3, majority)
	}
	for _, name := range slices.Backward(optimised(runs)) {
		list = slices.Insert(list, 3, splitMetric("test", name))
	}
	if slices.ContainsFunc(runs, readsDisk) {
		list = append(list, disk...)
	}
	for _, r := range runs {
		if r.Summary != nil && r.Summary.CostUSD > 0 {
			return append(list, costs...)
		}
	}
	return list
}

// readsDisk reports whether a run has limited memory, and therefore measurements of its disk.
func readsDisk(r *Run) bool { return r.Summary != nil && r.Summary.Disk != nil }

var disk = []column{
	diskColumn("disk MiB", mib, func(d *runfolder.Disk) float64 { return float64(d.DiskBytesRead) }),
	diskColumn("disk MB/s", 1, func(d *runfolder.Disk) float64 { return d.ReadMBPerSecond }),
	diskColumn("disk wait %", 100, func(d *runfolder.Disk) float64 { return d.Share }),
}

func diskColumn(name string, scale float64, of func(*runfolder.Disk) float64) column {
	return column{name: name, decimals: 1, scale: scale, of: func(r *Run) float64 {
		if !readsDisk(r) {
			return math.NaN()
		}
		return of(r.Summary.Disk)
	}}
}

var costs = []column{
	summaryColumn("invocations", 0, 1, func(s *runfolder.Summary) float64 { return float64(s.LambdaInvocations) }),
	summaryColumn("wasted", 0, 1, func(s *runfolder.Summary) float64 { return float64(s.LambdaWasted) }),
	summaryColumn("server USD", 6, 1, func(s *runfolder.Summary) float64 { return s.ServerUSD }),
	summaryColumn("lambda USD", 6, 1, func(s *runfolder.Summary) float64 { return s.LambdaUSD }),
	summaryColumn("USD", 6, 1, func(s *runfolder.Summary) float64 { return s.CostUSD }).withBars("Cost", "US dollars"),
	summaryColumn("value", 6, 1, func(s *runfolder.Summary) float64 { return s.Value }),
}

// optimised returns the metrics that the runs optimised, other than the score. This is the
// metric that selected the weights. It is balanced accuracy if the loss selected them or classes
// had weights.
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

// choosesByScore reports whether the run's weights were selected by the score. Summaries of
// older versions have no monitor.
func choosesByScore(s *runfolder.Summary) bool {
	return slices.Contains([]string{"", "accuracy", s.Metric}, s.Monitor)
}

// weighs reports whether classes had weights in a run's loss.
func weighs(s *runfolder.Summary) bool { return s.ClassWeights != "" && s.ClassWeights != "off" }

// hasAccuracy reports whether the score of a run is its accuracy.
func hasAccuracy(r *Run) bool { return scoreOfRun(r) == "acc" }

// majority is the accuracy of the most frequent class, for runs with an accuracy.
var majority = column{name: "majority", decimals: 4, scale: 1, of: func(r *Run) float64 {
	if r.Summary == nil || !hasAccuracy(r) {
		return math.NaN()
	}
	return r.Summary.MajorityTestAcc
}}

// splitMetric returns the column of a metric of a split.
func splitMetric(split, name string) column {
	return summaryColumn(split+" "+name, 4, 1, func(s *runfolder.Summary) float64 {
		for _, m := range s.Metrics.Splits() {
			if v := m.Value(name); m.Name == split && v != nil {
				return *v
			}
		}
		return math.NaN()
	})
}

// addMetrics adds a column for each metric of each split in a summary of the runs, if it is missing.
func addMetrics(list []column, runs []*Run) []column {
	add := func(c column) {
		if !slices.ContainsFunc(list, func(old column) bool { return old.name == c.name }) {
			list = append(list, c)
		}
	}
	for _, split := range []string{"test", "val", "train"} {
		for _, r := range runs {
			if r.Summary == nil {
				continue
			}
			for _, m := range r.Summary.Metrics.Splits() {
				if m.Name != split {
					continue
				}
				for _, metric := range m.All() {
					if metric.Value != nil {
						add(splitMetric(split, metric.Name))
					}
				}
			}
		}
	}
	return list
}

// scoreOf returns the short name of the metric that compares the runs, and the name of its axis.
// The metric is accuracy unless runs were trained for other tasks.
func scoreOf(runs []*Run) (name, axis string) {
	for _, r := range runs {
		metric := scoreOfRun(r)
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

// scoreOfRun returns the short name of a run's metric, which is accuracy unless the run was trained for
// another task. Epochs name it before there is a summary.
func scoreOfRun(r *Run) string {
	metric := ""
	if r.Summary != nil {
		metric = r.Summary.Metric
	} else if len(r.Epochs) > 0 {
		metric = r.Epochs[0].Metric
	}
	if metric == "" || metric == "accuracy" {
		return "acc"
	}
	return metric
}

// long returns the name of a metric in titles.
func long(score string) string {
	if score == "acc" {
		return "accuracy"
	}
	return score
}

// validation returns the validation score of the saved weights, or the newest one if the run has
// not ended.
func validation(r *Run) float64 {
	if r.Summary != nil {
		return r.Summary.BestValAcc
	}
	if r.Progress.ValAcc != nil {
		return *r.Progress.ValAcc
	}
	return math.NaN()
}

// perEpoch returns the median of the seconds per epoch.
func perEpoch(r *Run) float64 {
	if r.Summary != nil {
		return r.Summary.EpochSecondsMedian
	}
	if r.Lines == 0 {
		return math.NaN()
	}
	return r.Progress.Seconds
}
