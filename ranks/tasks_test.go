package ranks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/internal/npy"
	"siafu/kernels/objective"
	"siafu/ranks/config"
	"siafu/ranks/predictions"
	"siafu/ranks/runfolder"
)

// taskGraph returns a generated graph of a task, and the best score on it.
func taskGraph(t testing.TB, task string) (data string, best float64) {
	t.Helper()
	data = filepath.Join(t.TempDir(), task)
	o := generate.Options{Vertices: 500, Edges: 8000, Features: 12, Classes: 4, Labels: 3, Homophily: 0.97, Noise: 0.1,
		Strays: 0.1, Seed: 5, Task: task}
	if _, err := generate.Write(data, o, false); err != nil {
		t.Fatal(err)
	}
	m, err := graph.ReadMeta(data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(m.Source[strings.LastIndexByte(m.Source, '=')+1:], "%f", &best); err != nil {
		t.Fatal(err)
	}
	return data, best
}

// Networks reach the best possible score, equally on any number of ranks. Counts are
// identical, and so is everything in memory that Go code cannot read.
func TestTasks(t *testing.T) {
	t.Parallel()
	for _, task := range []string{graph.MultiLabel, graph.Regression} {
		data, best := taskGraph(t, task)
		c := quick(t)
		c.Model, c.Epochs, c.Dropout, c.WeightDecay, c.Intervals, c.Servers = "sage", 60, 0, 0, 3, 0
		c.Ranks = 1
		one := train(t, c, data)
		// The test set has 100 vertices; with 3 labels the standard error of a fraction of 0.9
		// is 0.017, and that of an R² with this noise about the same.
		if got := one.Summary.TestAccAtBestVal; math.Abs(got-best) > 0.06 {
			t.Errorf("%s: the score is %.4f, the best %.4f", task, got, best)
		}
		if one.Summary.Task != task || one.Summary.Metric != metricOf(task) || one.Epochs[0].Metric != metricOf(task) {
			t.Errorf("%s: the summary says %s by %s", task, one.Summary.Task, one.Summary.Metric)
		}
		c.Ranks, c.Out = 3, filepath.Join(t.TempDir(), "three")
		three := train(t, c, data)
		sameLosses(t, task, three.losses(), one.losses(), 1e-4) // other orders of float32 sums
		sameMetrics(t, task, three.Summary.Metrics.Test, one.Summary.Metrics.Test)
		c.Epochs, c.Out = 3, filepath.Join(t.TempDir(), "elsewhere")
		alikeElsewhere(t, c, data)
	}
}

// Two classes have an area under the curve of the second, the same on any number of ranks;
// a tenth of the labels is wrong, and more classes have none.
func TestAreaOfTwoClasses(t *testing.T) {
	t.Parallel()
	for classes, least := range map[int]float64{2: 0.8, 3: 0} {
		data := filepath.Join(t.TempDir(), "classes")
		if _, err := generate.Write(data, generate.Options{Vertices: 500, Edges: 4000, Features: 12, Classes: classes, Homophily: 0.8,
			Noise: 0.1, Strays: 0.1, Seed: 5}, false); err != nil {
			t.Fatal(err)
		}
		var of []*objective.Metrics
		for _, ranks := range []int{1, 3} {
			c := quick(t)
			c.Ranks, c.Epochs, c.Dropout, c.EvalEvery = ranks, 30, 0, 0
			of = append(of, train(t, c, data).Summary.Metrics.Test)
		}
		sameMetrics(t, fmt.Sprint(classes, " classes"), of[1], of[0])
		if auc := of[0].ROCAUC; (auc != nil) != (classes == 2) || auc != nil && *auc < least {
			t.Errorf("%d classes: the area is %v", classes, auc)
		}
	}
}

// sameMetrics compares ratios of counts exactly, and sums of squares except for the networks'
// order of sums.
func sameMetrics(t *testing.T, what string, got, want *objective.Metrics) {
	t.Helper()
	for name, pair := range map[string][2]*float64{
		"accuracy": {got.Accuracy, want.Accuracy}, "micro_f1": {got.MicroF1, want.MicroF1}, "macro_f1": {got.MacroF1, want.MacroF1},
		"roc_auc": {got.ROCAUC, want.ROCAUC}, "mse": {got.MSE, want.MSE}, "mae": {got.MAE, want.MAE}, "r2": {got.R2, want.R2},
	} {
		a, b := pair[0], pair[1]
		if (a == nil) != (b == nil) || a != nil && math.Abs(*a-*b) > 2e-3**b {
			t.Errorf("%s: %s is %v, want %v", what, name, a, b)
		}
	}
}

// All training modes support the tasks: asynchronous, mini-batches of each kind, several
// parts, averaged weights.
func TestTasksInAllModes(t *testing.T) {
	t.Parallel()
	data, best := taskGraph(t, graph.MultiLabel)
	for name, set := range map[string]func(c *Config){
		"async":    func(c *Config) { c.Mode, c.Staleness = "async", 1 },
		"free":     func(c *Config) { c.Mode = "free" },
		"history":  func(c *Config) { c.Batch = "history:2" },
		"neighbor": func(c *Config) { c.Batch = "neighbor:4,4,60" },
		"cluster":  func(c *Config) { c.Batch = "cluster:3" },
		"parts":    func(c *Config) { c.Parts = 3 },
		"local":    func(c *Config) { c.LocalEpochs, c.Servers = 3, 0 },
		"weighed":  func(c *Config) { c.ClassWeights, c.LabelSmoothing = "balanced", 0.05 },
		"numbers":  func(c *Config) { c.Task = graph.Regression },
	} {
		c := quick(t)
		c.Ranks, c.Epochs, c.Dropout = 3, 20, 0
		set(&c)
		s := train(t, c, data).Summary
		low := s.BestValAcc < best-0.12 && c.Mode != "free" // in which a few epochs may all be of one rank
		if c.Task == "" && (low || s.Metrics.Test.ROCAUC == nil) {
			t.Errorf("%s: the score is %.4f, the best %.4f; %v", name, s.BestValAcc, best, s.Metrics)
		}
		if c.Task != "" && s.Metrics.Test.R2 == nil {
			t.Errorf("%s: %v", name, s.Metrics)
		}
	}
}

// Class weights change the training: a class with all the weight is always predicted.
func TestClassWeights(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.Ranks, c.Epochs, c.EvalEvery, c.ClassWeights = 2, 30, 0, "0,0,1,0" // the last weights are the best
	data := write(t, randomContent(90, 4))
	train(t, c, data)
	rows := readCSV(t, filepath.Join(predict(t, c.Out, data, 1), predictions.CSVFile))
	for _, row := range rows {
		if row[3] != "2" {
			t.Fatalf("it says %s of %s", row[3], row[0])
		}
	}
}

// The validation loss is divided by the weights of the validation vertices, as PyTorch's. If they are of one class, its
// weight has no effect on the loss of the initial weights.
func TestClassWeightsOfValidation(t *testing.T) {
	t.Parallel()
	content := randomContent(60, 4)
	for v, split := range content.Split {
		if split == graph.SplitVal {
			content.Labels[v] = 1
		}
	}
	data := write(t, content)
	loss := func(weights string) float64 {
		c := quick(t)
		c.Ranks, c.Epochs, c.ClassWeights = 2, 1, weights
		return *train(t, c, data).Epochs[0].ValLoss
	}
	if got, want := loss("1,10,0.5,1"), loss("off"); math.Abs(got-want) > 1e-6*want { // float32 against float64
		t.Errorf("the validation loss is %v, want %v", got, want)
	}
}

// Weights by name are those of a list in the order of classes, and 1 for classes without
// one: the same losses, to the last bit. Others are refused with the names of the classes.
func TestClassWeightsByName(t *testing.T) {
	t.Parallel()
	content := randomContent(90, 4)
	content.ClassNames = []string{"legit", "fraud", "a, b=c", "new"}
	data := write(t, content)
	losses := func(weights string) []float64 {
		c := quick(t)
		c.Ranks, c.Epochs, c.ClassWeights = 3, 5, weights
		return train(t, c, data).losses()
	}
	want := losses("1,10,0.5,1")
	for _, weights := range []string{`fraud=10,"a, b=c=0.5"`, `new=1, "a, b=c=0.5", fraud = 10,legit=1`} {
		sameLosses(t, weights, losses(weights), want, 0)
	}
	if slices.Equal(losses("off"), want) {
		t.Error("weights change nothing")
	}
	for weights, want := range map[string]string{
		"frod=10":         `"random" has no class "frod"; the classes are "legit", "fraud", "a, b=c", "new"`,
		"fraud=1,fraud=2": `class "fraud" is given twice`,
		"fraud=10,3":      `"3" has no name`,
		"fraud=-1":        `"-1" is not a valid weight`,
		`"fraud=1`:        "--class-weights",
		"0=1":             `has no class "0"`,
	} {
		c := quick(t)
		c.Ranks, c.Epochs, c.ClassWeights = 2, 1, weights
		err := Train(context.Background(), c, data, IO{Out: io.Discard, Err: io.Discard})
		if fault.KindOf(err) != fault.Usage || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %s", weights, err, want)
		}
	}
	c := config.Config{TrainingOptions: config.TrainingOptions{ClassWeights: "150=3"}} // without names a class has its number
	if list, _, err := c.Weights(&graph.Meta{Classes: 200}); err != nil || list[150] != 3 || list[0] != 1 {
		t.Errorf("%v: %v", err, list)
	}
	c.ClassWeights = "200=3"
	if _, _, err := c.Weights(&graph.Meta{Classes: 200}); !strings.Contains(fmt.Sprint(err), `"19" and 180 more`) {
		t.Error(err)
	}
}

// The metrics of classes in summary.json are those of the table of predictions, whatever the
// number of ranks and parts, and predict prints them by name.
func TestMetricsOfClasses(t *testing.T) {
	t.Parallel()
	content := randomContent(90, 3)
	content.ClassNames = []string{"legit", "fraud", "new"}
	data := write(t, content)
	for _, parts := range []int{1, 3, 5} {
		c := quick(t)
		c.Ranks, c.Parts, c.Epochs, c.EvalEvery, c.LR = min(parts, 3), parts, 5, 0, 0.05
		s := train(t, c, data).Summary
		p := PredictConfig{Out: filepath.Join(t.TempDir(), "predictions"), CSV: true, StallWarn: "1m", StallAbort: "1m"}
		var out bytes.Buffer
		if err := Predict(context.Background(), p, c.Out, data, IO{Out: &out, Err: io.Discard}); err != nil {
			t.Fatal(err)
		}
		counts := [3][3]int64{}
		for _, row := range readCSV(t, filepath.Join(p.Out, predictions.CSVFile)) {
			if row[1] == "test" {
				counts[slices.Index(content.ClassNames, row[2])][slices.Index(content.ClassNames, row[3])]++
			}
		}
		of := s.Metrics.Test.PerClass
		if fmt.Sprint(of.Confusion) != fmt.Sprint(counts) || fmt.Sprint(s.Metrics.Classes) != "[legit fraud new]" {
			t.Errorf("%d parts: %v of %v, the predictions are %v", parts, of.Confusion, s.Metrics.Classes, counts)
		}
		text, err := os.ReadFile(filepath.Join(p.Out, predictions.MetricsFile))
		var scores runfolder.Scores
		if err := cmp.Or(err, json.Unmarshal(text, &scores)); err != nil ||
			fmt.Sprint(scores.Test.PerClass.Confusion) != fmt.Sprint(counts) {
			t.Errorf("%d parts: %v: %s", parts, err, text)
		}
		row := fmt.Sprintf("\n       fraud     %.4f    %.4f    %.4f        %2d\n", of.Precision[1], of.Recall[1], of.F1[1], of.Support[1])
		matrix := fmt.Sprintf("\n       fraud  %9d %9d %9d\n", counts[1][0], counts[1][1], counts[1][2])
		if !strings.Contains(out.String(), row) || !strings.Contains(out.String(), matrix) {
			t.Errorf("%d parts: no %q and %q in\n%s", parts, row, matrix, &out)
		}
	}
}

// Prediction files have labels by name and as 0 and 1, predicted and true numbers, and the
// run's metrics.
func TestPredictTasks(t *testing.T) {
	t.Parallel()
	for _, task := range []string{graph.MultiLabel, graph.Regression} {
		data, _ := taskGraph(t, task)
		c := quick(t)
		c.Ranks, c.Epochs = 2, 10
		s := train(t, c, data).Summary
		one, three := predict(t, c.Out, data, 1), predict(t, c.Out, data, 3)
		for _, name := range []string{predictions.CSVFile, predictions.ClassFile} {
			a, _ := os.ReadFile(filepath.Join(one, name))
			b, err := os.ReadFile(filepath.Join(three, name))
			if err != nil || string(a) != string(b) && task == graph.MultiLabel {
				t.Errorf("%s: %s differs between 1 and 3 ranks: %v", task, name, err)
			}
		}
		ds, err := graph.Open(data)
		if err != nil {
			t.Fatal(err)
		}
		file, err := npy.ReadFile(filepath.Join(one, predictions.ClassFile))
		if err != nil {
			t.Fatal(err)
		}
		said, err := file.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(filepath.Join(one, predictions.CSVFile))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(f).ReadAll()
		f.Close()
		if err != nil || len(rows) != 501 {
			t.Fatal(len(rows), err)
		}
		var right, all, squares, tests float64
		for v, row := range rows[1:] {
			y, p := ds.Targets[3*v:3*v+3], said[3*v:3*v+3]
			if task == graph.MultiLabel && (row[2] != named(y) || row[3] != named(p)) {
				t.Fatalf("row %v for %v and %v", row, y, p)
			}
			if task == graph.Regression && (row[2] != fmt.Sprint(y[0]) || row[7] != fmt.Sprintf("%.6g", p[2])) {
				t.Fatalf("row %v for %v and %v", row, y, p)
			}
			if ds.Split[v] != graph.SplitTest {
				continue
			}
			tests++
			for k := range y {
				right += 2 * float64(y[k]*p[k])
				all += float64(y[k] + p[k])
				squares += float64((y[k] - p[k]) * (y[k] - p[k]))
			}
		}
		ds.Close()
		if m := s.Metrics.Test; task == graph.MultiLabel && math.Abs(right/all-*m.MicroF1) > 1e-9 ||
			task == graph.Regression && math.Abs(squares/tests/3-*m.MSE) > 1e-6 {
			t.Errorf("%s: the predictions' scores are %v and %v, the run's %+v", task, right/all, squares/tests/3, m)
		}
	}
}

// named returns labels in the format of a table.
func named(flags []float32) string {
	var list []string
	for k, y := range flags {
		if y > 0 {
			list = append(list, fmt.Sprint(k))
		}
	}
	return strings.Join(list, ";")
}

// Incompatible options are refused with a remedy.
func TestTasksRefused(t *testing.T) {
	t.Parallel()
	flags, _ := taskGraph(t, graph.MultiLabel)
	numbers, _ := taskGraph(t, graph.Regression)
	for _, r := range []struct {
		data string
		set  func(c *Config)
		want string
	}{
		{generated(t, false), func(c *Config) { c.Task = graph.Regression }, "import the dataset again with --task regression"},
		{flags, func(c *Config) { c.Task = graph.MultiClass }, "leave --task out"},
		{numbers, func(c *Config) { c.Task = graph.MultiLabel }, "a label must be 0 or 1; leave --task out"},
		{numbers, func(c *Config) { c.ClassWeights = "balanced" }, "there are no classes"},
		{flags, func(c *Config) { c.ClassWeights = "1,2" }, "2 weights for 3 classes"},
	} {
		c := quick(t)
		c.Ranks, c.Epochs = 2, 1
		r.set(&c)
		if err := Train(context.Background(), c, r.data, IO{Out: io.Discard, Err: io.Discard}); !strings.Contains(fmt.Sprint(err), r.want) {
			t.Errorf("it says %q, want %q", err, r.want)
		}
	}
	for _, task := range []string{graph.MultiClass, graph.Links} { // functions support only losses of rows
		c := Config{ComputeOptions: config.ComputeOptions{Tensor: "lambda"}}
		if _, err := c.TaskOf(&graph.Meta{Task: task}); (task == graph.Links) != strings.Contains(fmt.Sprint(err), "use --tensor cpu") {
			t.Errorf("%s in functions: %v", task, err)
		}
	}
}
