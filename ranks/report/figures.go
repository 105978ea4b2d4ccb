package report

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"siafu/ranks/report/chart"
	"siafu/ranks/runfolder"
)

// metric is a number of an epoch. of returns nil if the epoch has no such number.
type metric struct {
	file, title, axis string
	of                func(*runfolder.Epoch) *float64
}

// metrics returns the numbers of epochs that have charts. The charts of scores name the metric of the
// runs.
func metrics(runs []*Run) []metric {
	score, axis := scoreOf(runs)
	loss := "mean cross entropy"
	if score != "acc" {
		loss = "loss"
	}
	return []metric{
		{"loss", "Training loss", loss, func(e *runfolder.Epoch) *float64 { return &e.Loss }},
		{"val-loss", "Validation loss", loss, func(e *runfolder.Epoch) *float64 { return e.ValLoss }},
		{"val-metric", "Monitored validation metric", "value", func(e *runfolder.Epoch) *float64 {
			for _, value := range e.ValMetrics {
				return &value // the only one
			}
			return nil
		}},
		{"train-acc", "Training " + long(score), axis, func(e *runfolder.Epoch) *float64 { return e.TrainAcc }},
		{"val-acc", "Validation " + long(score), axis, func(e *runfolder.Epoch) *float64 { return e.ValAcc }},
		{"test-acc", "Test " + long(score), axis, func(e *runfolder.Epoch) *float64 { return e.TestAcc }},
	}
}

// figures returns the charts of the groups. It omits charts without data, and bars that are all 0, such
// as ghost rows of runs of one rank.
func (t *comparison) figures() (curves, bars []chart.Chart) {
	names := t.names()
	for _, m := range metrics(slices.Concat(t.groups...)) {
		epochs := chart.Chart{Name: m.file + "-epochs", Title: m.title + " over epochs", X: "epoch", Y: m.axis}
		seconds := chart.Chart{Name: m.file + "-seconds", Title: m.title + " over time", X: "elapsed time, s", Y: m.axis}
		for k, g := range t.groups {
			if by, at := meanCurve(g, m.of); len(by) > 0 {
				epochs.Lines = append(epochs.Lines, chart.Line{Group: k, Name: names[k], Points: by})
				seconds.Lines = append(seconds.Lines, chart.Line{Group: k, Name: names[k], Points: at})
			}
		}
		if len(epochs.Lines) > 0 {
			curves = append(curves, epochs, seconds)
		}
	}
	for _, c := range t.numbers {
		if b := t.bars(c, names); c.axis != "" && slices.ContainsFunc(b.Bars, func(b chart.Bar) bool { return b.Value != 0 }) {
			bars = append(bars, b)
		}
	}
	return curves, bars
}

// meanCurve returns the mean and the deviation of a group's metric, over epochs and over the mean
// elapsed seconds. It omits epochs that fewer than half of the runs with this metric have: the
// mean of a few longer runs does not describe the group.
func meanCurve(group []*Run, of func(*runfolder.Epoch) *float64) (epochs, seconds []chart.Point) {
	values, times := map[int][]float64{}, map[int][]float64{}
	runs := 0
	for _, r := range group {
		had := false
		for i := range r.Epochs {
			e := &r.Epochs[i]
			if v := of(e); v != nil {
				had = true
				values[e.Epoch], times[e.Epoch] = append(values[e.Epoch], *v), append(times[e.Epoch], e.Elapsed)
			}
		}
		if had {
			runs++
		}
	}
	for _, epoch := range slices.Sorted(maps.Keys(values)) {
		if 2*len(values[epoch]) < runs {
			continue
		}
		mean, deviation := MeanDeviation(values[epoch])
		at, _ := MeanDeviation(times[epoch])
		epochs = append(epochs, chart.Point{X: float64(epoch), Y: mean, Deviation: deviation})
		seconds = append(seconds, chart.Point{X: at, Y: mean, Deviation: deviation})
	}
	slices.SortStableFunc(seconds, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
	return epochs, seconds
}

func (t *comparison) bars(c column, names []string) chart.Chart {
	b := chart.Chart{Name: strings.NewReplacer(" ", "-", "/", "-").Replace(c.name), Title: c.title, X: c.axis}
	for k, g := range t.groups {
		if x := numbersOf(c, g); len(x) > 0 {
			mean, deviation := MeanDeviation(x)
			b.Bars = append(b.Bars, chart.Bar{Group: k, Name: names[k], Value: mean, Deviation: deviation, Text: plusMinus(c, x)})
		}
	}
	return b
}

// isDiffering reports whether groups differ in a setting. It ignores groups without a known value.
func (t *comparison) isDiffering(setting int) bool {
	seen := map[string]bool{}
	for _, g := range t.groups {
		if v := t.values(g[0])[setting]; v != "-" && v != auto {
			seen[v] = true
		}
	}
	return len(seen) > 1
}

// names returns a distinct name for each group: the differing settings, and the folder if these
// are equal.
func (t *comparison) names() []string {
	names, count := make([]string, len(t.groups)), map[string]int{}
	for k, g := range t.groups {
		var words []string
		for i, v := range t.values(g[0]) {
			if t.isDiffering(i) && v != "-" {
				words = append(words, t.settings[i]+"="+v)
			}
		}
		names[k] = strings.Join(words, " ")
		count[names[k]]++
	}
	for k, g := range t.groups {
		switch {
		case names[k] == "" && t.grouped:
			names[k] = fmt.Sprintf("%d runs", len(g))
		case names[k] == "":
			names[k] = filepath.Clean(g[0].Dir)
		case count[names[k]] > 1:
			names[k] += " " + filepath.Clean(g[0].Dir)
		}
	}
	return names
}
