package ranks

import (
	"fmt"
	"slices"

	"siafu/graph"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
	"siafu/ranks/stopping"
)

// accuracy is the metric of classes.
const accuracy = "accuracy"

// metricOf returns the metric of a task in epoch lines, which selects the best weights.
func metricOf(task string) string {
	switch task {
	case graph.MultiLabel:
		return "micro_f1"
	case graph.Regression:
		return "r2"
	case graph.Links:
		return "roc_auc"
	}
	return accuracy
}

// metricLabel returns the metric as a word that follows a split's name.
func metricLabel(metric string) string {
	if metric == accuracy {
		return "acc"
	}
	return metric
}

// printMetrics prints a line for each split.
func printMetrics(say func(format string, args ...any), m *runfolder.Scores) {
	for _, s := range m.Splits() {
		line := fmt.Sprintf("metrics split=%s vertices=%d", s.Name, s.Vertices)
		if s.Links > 0 {
			line = fmt.Sprintf("metrics split=%s links=%d", s.Name, s.Links)
		}
		for _, x := range s.All() {
			if x.Value != nil {
				line += fmt.Sprintf(" %s=%.6g", x.Name, *x.Value)
			}
		}
		say("%s", line)
	}
}

// balancedTest returns the balanced accuracy of the test vertices as part of a line, empty if
// unknown.
func balancedTest(m *runfolder.Scores) string {
	if m == nil || m.Test == nil || m.Test.BalancedAccuracy == nil {
		return ""
	}
	return fmt.Sprintf(" balanced_test_at_best_val=%.4f", *m.Test.BalancedAccuracy)
}

// choiceLines returns lines that describe how the saved weights were selected, the class weights of
// the loss, and the reasons if siafu chose these flags. score is the metric of an epoch.
func choiceLines(c *Config, score string, epoch int, validated bool) (lines []string) {
	why := func(flag string) string {
		if i := slices.IndexFunc(c.Chosen, func(s config.Choice) bool { return s.Flag == flag }); i >= 0 {
			return " (taken because " + c.Chosen[i].Why + ")"
		}
		return ""
	}
	chosen := fmt.Sprintf("saved weights: epoch %d, %s", epoch, objectiveOf(c.Monitor, score))
	if !validated {
		chosen = "saved weights: the last, because the dataset has nothing to validate on"
	} else {
		chosen += ", --monitor " + c.Monitor + why("monitor")
	}
	lines = append(lines, chosen)
	if c.Weighs() {
		lines = append(lines, "class weights in the loss: --class-weights "+c.ClassWeights+why("class-weights"))
	}
	if why("monitor")+why("class-weights") != "" {
		lines = append(lines, "To optimise accuracy instead, train with --monitor accuracy --class-weights off.")
	}
	return lines
}

// objectiveOf describes the objective of --monitor. score is the metric of an epoch.
func objectiveOf(monitor, score string) string {
	switch monitor {
	case stopping.OnAccuracy:
		return "highest validation " + score
	case stopping.OnBoth:
		return "validation " + score + " and loss at their best so far"
	case stopping.OnPenalty:
		return "lowest sum of validation loss and weight penalty"
	case stopping.OnLoss, "mse", "mae":
		return "lowest validation " + monitor
	}
	return "highest validation " + monitor
}
