package ranks

import (
	"fmt"

	"siafu/graph"
	"siafu/kernels/objective"
	"siafu/ranks/runfolder"
)

// accuracy is the metric of classes.
const accuracy = "accuracy"

// metricOf is what lines tell of a task, by which the best weights are chosen.
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

// shortOf is the metric as a word in front of which a split's name stands.
func shortOf(metric string) string {
	if metric == accuracy {
		return "acc"
	}
	return metric
}

// sayMetrics says a line for each split.
func sayMetrics(say func(format string, args ...any), m *runfolder.Scores) {
	if m == nil {
		return
	}
	for _, s := range []struct {
		name string
		of   *objective.Metrics
	}{{"train", m.Train}, {"val", m.Val}, {"test", m.Test}} {
		if s.of == nil {
			continue
		}
		line := fmt.Sprintf("metrics split=%s vertices=%d", s.name, s.of.Vertices)
		if s.of.Links > 0 {
			line = fmt.Sprintf("metrics split=%s links=%d", s.name, s.of.Links)
		}
		for _, x := range []struct {
			name  string
			value *float64
		}{
			{accuracy, s.of.Accuracy}, {"micro_f1", s.of.MicroF1}, {"macro_f1", s.of.MacroF1}, {"roc_auc", s.of.ROCAUC},
			{"mse", s.of.MSE}, {"mae", s.of.MAE}, {"r2", s.of.R2},
			{"average_precision", s.of.AP}, {"mrr", s.of.MRR}, {"hits@10", s.of.Hits10}, {"hits@20", s.of.Hits20}, {"hits@50", s.of.Hits50}, {"hits@100", s.of.Hits100},
		} {
			if x.value != nil {
				line += fmt.Sprintf(" %s=%.6g", x.name, *x.value)
			}
		}
		say("%s", line)
	}
}
