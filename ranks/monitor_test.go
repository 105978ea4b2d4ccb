package ranks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/ranks/runfolder"
	"siafu/ranks/stopping"
)

// monitoredBest returns the epoch with the first best value of a metric among evaluated
// epochs. The last weights are included: the summary has their metrics if they are best.
func monitoredBest(r trained, metric string) (epoch int, value float64) {
	better := func(a, b float64) bool { return a > b }
	if metric == "mse" || metric == "mae" {
		better = func(a, b float64) bool { return a < b }
	}
	for _, e := range r.Epochs {
		if v, ok := e.ValMetrics[metric]; ok && (epoch == 0 || better(v, value)) {
			epoch, value = e.Epoch, v
		}
	}
	return epoch, value
}

// The saved weights have the best value of the metric, as in summary.json. Patience counts
// from it. The same on any number of ranks.
func TestMonitor(t *testing.T) {
	t.Parallel()
	classes, flags, links := generated(t, false), "", linked(t, false)
	flags, _ = taskGraph(t, graph.MultiLabel)
	numbers, _ := taskGraph(t, graph.Regression)
	for _, tc := range []struct {
		data, metric string
		set          func(*Config)
	}{
		{classes, "macro_f1", func(c *Config) {}},
		{classes, "balanced_accuracy", func(c *Config) { c.Dropout = 0 }},
		{classes, "weighted_f1", func(c *Config) { c.Batch = "cluster:2" }},
		{classes, "micro_f1", func(c *Config) { c.EvalEvery = 3 }},
		{flags, "roc_auc", func(c *Config) {}},
		{numbers, "mae", func(c *Config) {}},
		{links, "mrr", func(c *Config) { c.Dropout, c.Servers = 0, 0 }},
		{links, "hits@10", func(c *Config) { c.Dropout, c.Servers = 0, 0 }},
	} {
		t.Run(tc.metric, func(t *testing.T) {
			t.Parallel()
			var first trained
			for _, ranks := range []int{1, 3} {
				c := quick(t)
				c.Ranks, c.Parts, c.Servers, c.Epochs, c.LR, c.Patience, c.Monitor = ranks, 3, 0, 25, 0.1, 6, tc.metric
				tc.set(&c)
				r := train(t, c, tc.data)
				epoch, value := monitoredBest(r, tc.metric)
				s := r.Summary
				// the last weights, which have no line
				if last := *s.Metrics.Val.Value(tc.metric); s.BestEpoch > s.Epochs && (last > value) != (tc.metric == "mae") {
					value = last
				} else if s.BestEpoch != epoch {
					t.Errorf("%d ranks: the best epoch is %d, of lines %d", ranks, s.BestEpoch, epoch)
				}
				if got := s.Metrics.Val.Value(tc.metric); got == nil || *got != value || value == 0 {
					t.Errorf("%d ranks: the weights have %v, the line %v", ranks, got, value)
				}
				last := r.Epochs[len(r.Epochs)-1].Epoch
				if s.StoppedBy == stopping.ByPatience && (last+1-epoch < 6 || last+1-epoch > 6+c.EvalEvery) {
					t.Errorf("%d ranks: %d epochs, the best %d", ranks, last, epoch)
				}
				if ranks == 1 {
					first = r
				} else if fmt.Sprint(monitoredLines(r.Epochs)) != fmt.Sprint(monitoredLines(first.Epochs)) {
					t.Errorf("%v on 1 rank, %v on 3 with the same parts", monitoredLines(first.Epochs), monitoredLines(r.Epochs))
				}
			}
		})
	}
}

func monitoredLines(epochs []runfolder.Epoch) (list []map[string]float64) {
	for _, e := range epochs {
		list = append(list, e.ValMetrics)
	}
	return list
}

// Another selection of weights does not change the training, also if the training pass would
// be the evaluation (no dropout).
func TestMonitorChangesNoTraining(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	var losses [2][]float64
	for k, monitor := range []string{stopping.OnAccuracy, "macro_f1"} {
		c := quick(t)
		c.Ranks, c.Epochs, c.Dropout, c.Monitor = 2, 8, 0, monitor
		losses[k] = train(t, c, data).losses()
	}
	sameLosses(t, "monitored", losses[1], losses[0], 0)
}

// The same weights are best if Go cannot read the memory of the logits.
func TestMonitorElsewhere(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.Ranks, c.Epochs, c.LR, c.Monitor = 2, 8, 0.1, "macro_f1"
	alikeElsewhere(t, c, generated(t, false))
}

// A run that monitored another metric before it was resumed takes the best weights of the
// later epochs.
func TestMonitorAnotherMetricOnResume(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := saving(t, "5e")
	c.Ranks, c.Epochs, c.Monitor = 2, 5, stopping.OnLoss
	train(t, c, data)
	c.Epochs, c.Monitor, c.Resume = 12, "macro_f1", "auto"
	r := train(t, c, data)
	epoch, _ := monitoredBest(r, "macro_f1")
	if s := r.Summary; epoch < 6 || s.BestEpoch != epoch && s.BestEpoch != 13 {
		t.Errorf("the best epoch is %d, of lines %d", s.BestEpoch, epoch)
	}
}

// A run without the metric is refused before training; the message names the available
// metrics.
func TestMonitorRefused(t *testing.T) {
	t.Parallel()
	classes := generated(t, false)
	one := randomContent(40, 2) // all validation vertices are of one class
	for v, split := range one.Split {
		if split == graph.SplitVal {
			one.Labels[v] = 0
		}
	}
	for _, tc := range []struct {
		data, monitor string
		set           func(*Config)
		want          string
	}{
		{classes, "r2", func(*Config) {}, "--monitor=r2 with the task multiclass (4 outputs), which does not have this metric; use loss, " +
			"both, penalised, accuracy, balanced_accuracy, micro_f1, macro_f1, weighted_f1"},
		{classes, "auc", func(*Config) {}, "--monitor=roc_auc with the task multiclass (4 outputs)"},
		{classes, "colour", func(*Config) {}, "it must be one of"},
		{classes, "macro_f1", func(c *Config) { *c = asynchronous(*c, 1, 1); c.Monitor = "macro_f1" },
			"--monitor=macro_f1 with --mode=async"},
		{classes, "macro_f1", func(c *Config) { c.Tensor = "lambda" }, "--monitor=macro_f1 with --tensor=lambda"},
		{linked(t, false), "macro_f1", func(c *Config) { c.Servers = 0 }, "with the task links"},
		{write(t, one), "roc_auc", func(*Config) {}, "--monitor=roc_auc: the metric is undefined on the validation vertices"},
	} {
		c := quick(t)
		c.Ranks, c.Epochs, c.Monitor = 2, 3, tc.monitor
		tc.set(&c)
		err := Train(context.Background(), c, tc.data, IO{Out: io.Discard, Err: io.Discard})
		if !strings.Contains(fmt.Sprint(err), tc.want) {
			t.Errorf("%s: %q, want %q", tc.monitor, err, tc.want)
		}
	}
}

// Final lines name the metric that selected the weights, the class weights and, with automatic
// settings, how to optimise accuracy. Balanced accuracy is printed with accuracy.
func TestFinalLinesSayWhatWasOptimised(t *testing.T) {
	t.Parallel()
	content := randomContent(120, 2)
	for v := range content.Labels {
		content.Labels[v] = int32(min(v%7, 1)) ^ 1 // 6 of 7 are of class 0
	}
	data := write(t, content)
	meta, err := graph.ReadMeta(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		given string // other flags
		set   func(*Config)
		want  []string
	}{
		{"", func(*Config) {}, []string{
			", lowest validation loss, --monitor loss (taken because 85 % of the labels are of one class)\n",
			"class weights in the loss: --class-weights root (taken because 85 % of the labels are of one class)\n" +
				"To optimise accuracy instead, train with --monitor accuracy --class-weights off.\n"}},
		{"monitor class-weights", func(c *Config) { c.Monitor = "f1_macro" },
			[]string{", highest validation macro_f1, --monitor macro_f1\nmetrics "}},
		{"monitor class-weights", func(*Config) {}, []string{", highest validation accuracy, --monitor accuracy\nmetrics "}},
	} {
		c := quick(t)
		c.Epochs, c.Ranks, c.Servers, c.Quiet = 3, 2, 0, false
		c.Suit(meta, func(flag string) bool { return strings.Contains(tc.given, flag) })
		tc.set(&c)
		var out bytes.Buffer
		if err := Train(context.Background(), c, data, IO{Out: &out, Err: io.Discard}); err != nil {
			t.Fatal(err)
		}
		s := readRun(t, c.Out).Summary
		tc.want = append(tc.want, fmt.Sprintf("accuracy test_at_best_val=%.4f balanced_test_at_best_val=%.4f ", s.TestAccAtBestVal,
			*s.Metrics.Test.BalancedAccuracy),
			fmt.Sprintf("\nsaved weights: epoch %d, ", s.BestEpoch))
		for _, want := range tc.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, &out)
			}
		}
		if s.Monitor != c.Monitor && tc.given == "" || s.ClassWeights != c.ClassWeights {
			t.Errorf("the summary has %q and %q", s.Monitor, s.ClassWeights)
		}
	}
}
