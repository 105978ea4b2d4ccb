package objective_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/kernels/objective"
)

const rows, outputs = 60, 5

// example returns logits and truth of some rows. Every fifth row has no label. Logits have few
// values, so that there are ties. The last class occurs in no label and no prediction, and the
// last label is never set.
func example(task string) (logits []float32, t objective.Truth) {
	rng := rand.New(rand.NewPCG(3, 4))
	t = objective.Truth{Labels: make([]int32, rows), Split: make([]uint8, rows)}
	if task != graph.MultiClass {
		t.Values = make([]float32, rows*outputs)
	}
	for r := range rows {
		t.Split[r] = uint8(1 + r%2)
		for c := range outputs {
			z := float32(rng.IntN(17)-8) / 4
			if c == outputs-1 && task == graph.MultiClass {
				z = -9
			}
			logits = append(logits, z)
			switch task {
			case graph.MultiLabel:
				t.Values[r*outputs+c] = float32(rng.IntN(2) * min(1, outputs-1-c))
			case graph.Regression:
				t.Values[r*outputs+c] = float32(rng.NormFloat64()) + z
			}
		}
		t.Labels[r] = rng.Int32N(outputs - 1)
		if t.Values != nil {
			t.Labels[r] = 0
		}
		if r%5 == 0 {
			t.Labels[r] = graph.Unlabelled
		}
	}
	return logits, t
}

// aims returns objectives of a task with all options.
func aims(task string) []objective.Objective {
	plain := objective.Objective{Task: task, Outputs: outputs}
	if task == graph.Regression {
		return []objective.Objective{plain}
	}
	weighed := plain
	weighed.Smoothing, weighed.Weights = 0.2, []float64{1, 0.3, 2.5, 0, 1.7}
	return []objective.Objective{plain, weighed}
}

var tasks = []string{graph.MultiClass, graph.MultiLabel, graph.Regression}

// A gradient equals the central difference of the loss, also if it replaces the logits. Rows
// that do not count have none.
func TestGradients(t *testing.T) {
	for _, task := range tasks {
		for k, o := range aims(task) {
			z, truth := example(task)
			grad := slices.Clone(z)
			loss := o.Loss(grad, grad, truth, 1, 0.5)
			if alone := o.Loss(nil, z, truth, 1, 0.5); alone != loss {
				t.Errorf("%s %d: %v with a gradient, %v without", task, k, loss, alone)
			}
			for i := range z {
				const h = 1.0 / 128 // of which sums with the logits are exact
				up, down := slices.Clone(z), slices.Clone(z)
				up[i], down[i] = z[i]+h, z[i]-h
				want := 0.5 * (o.Loss(nil, up, truth, 1, 1) - o.Loss(nil, down, truth, 1, 1)) / (2 * h)
				// the third derivative of these losses is below 1, times weights of 2.5
				if got := float64(grad[i]); math.Abs(got-want) > 5e-5 {
					t.Errorf("%s %d: gradient %d is %v, want %v", task, k, i, got, want)
				}
			}
		}
	}
}

// metricsOf returns the metrics of a split from two ranks that have half of the rows each.
func metricsOf(task string, split uint8) map[string]float64 {
	o := &objective.Objective{Task: task, Outputs: outputs}
	z, truth := example(task)
	if task == graph.Regression {
		sums := o.Sums(truth)
		o.Settle(sums, o.Squares(truth, sums))
	}
	sum := o.NewTally()
	for _, lo := range []int{0, rows / 2} {
		part := o.NewTally()
		o.Add(part, z[lo*outputs:(lo+rows/2)*outputs], truth.Part(lo, lo+rows/2), split)
		for i, n := range part.Counts {
			sum.Counts[i] += n
		}
		for i, x := range part.Sums {
			sum.Sums[i] += x
		}
	}
	m := o.Metrics(sum, int(split))
	if task == graph.MultiLabel {
		mean, n := 0.0, 0.0
		for c := range outputs {
			var list []objective.Scored
			for r := range rows {
				if truth.Split[r] == split && truth.Labels[r] >= 0 {
					list = append(list, objective.Scored{Score: z[r*outputs+c], Is: truth.Values[r*outputs+c] > 0})
				}
			}
			if auc, ok := objective.ROCAUC(list); ok {
				mean, n = mean+auc, n+1
			}
		}
		mean /= n
		m.ROCAUC = &mean
	}
	text, _ := json.Marshal(m)
	var nested any
	json.Unmarshal(text, &nested)
	all := map[string]float64{}
	flatten(all, "", nested)
	delete(all, "vertices")
	return all
}

// flatten adds the numbers of a JSON value by their paths.
func flatten(all map[string]float64, path string, value any) {
	switch x := value.(type) {
	case float64:
		all[path] = x
	case []any:
		for i, v := range x {
			flatten(all, fmt.Sprintf("%s[%d]", path, i), v)
		}
	case map[string]any:
		for key, v := range x {
			flatten(all, strings.TrimPrefix(path+"."+key, "."), v)
		}
	}
}

func same(t *testing.T, task string, got, want map[string]float64) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("%s: %v, want %v", task, got, want)
	}
	tolerance := 1e-15 // ratios of counts, and their means
	if task == graph.Regression {
		tolerance = 1e-6 // sums of float32
	}
	for name, x := range want {
		if math.Abs(got[name]-x) > tolerance {
			t.Errorf("%s: %s is %v, want %v", task, name, got[name], x)
		}
	}
}

// compareAll compares the metrics of both splits of each task with scikit-learn's. text is in
// the format of testdata/metrics.py.
func compareAll(t *testing.T, text []byte) {
	t.Helper()
	var want []any
	if err := json.Unmarshal(text, &want); err != nil || len(want) != 2*len(tasks) {
		t.Fatal(err, len(want))
	}
	for i, task := range tasks {
		for k := range 2 {
			all := map[string]float64{}
			flatten(all, "", want[2*i+k])
			same(t, task, metricsOf(task, uint8(k+1)), all)
		}
	}
}

// testdata/metrics.json has the results of scikit-learn 1.2.1 (TestMetricsAreScikitLearns).
func TestMetricsAreRecordedOnes(t *testing.T) {
	text, err := os.ReadFile("testdata/metrics.json")
	if err != nil {
		t.Fatal(err)
	}
	compareAll(t, text)
}

// compared is an example in the format of testdata/metrics.py.
type compared struct {
	Task   string      `json:"task"`
	Truth  []any       `json:"truth"`
	Logits [][]float32 `json:"logits"`
}

func comparedOf(task string, split uint8) compared {
	z, truth := example(task)
	in := compared{Task: task}
	for r := range rows {
		switch {
		case truth.Split[r] != split || truth.Labels[r] < 0:
			continue
		case task == graph.MultiClass:
			in.Truth = append(in.Truth, truth.Labels[r])
		default:
			in.Truth = append(in.Truth, truth.Values[r*outputs:(r+1)*outputs])
		}
		in.Logits = append(in.Logits, z[r*outputs:(r+1)*outputs])
	}
	return in
}

// Both splits also equal scikit-learn itself.
func TestMetricsAreScikitLearns(t *testing.T) {
	var in []compared
	for _, task := range tasks {
		in = append(in, comparedOf(task, 1), comparedOf(task, 2))
	}
	text, _ := json.Marshal(in)
	c := exec.Command("/usr/bin/python3", "testdata/metrics.py") // Debian's, which its package is for
	c.Stdin = bytes.NewReader(text)
	out, err := c.Output()
	if ended := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &ended) || ended.ExitCode() == 3) {
		t.Skipf("there is no scikit-learn (apt-get install python3-sklearn): %v", err)
	}
	compareAll(t, out)
}

// A score is a metric of the tally: accuracy, micro-averaged F1, R².
func TestScores(t *testing.T) {
	for task, metric := range map[string]string{graph.MultiClass: "accuracy", graph.MultiLabel: "micro_f1", graph.Regression: "r2"} {
		o := &objective.Objective{Task: task, Outputs: outputs}
		z, truth := example(task)
		if task == graph.Regression {
			sums := o.Sums(truth)
			o.Settle(sums, o.Squares(truth, sums))
		}
		a, b := o.Score(z[:20*outputs], truth.Part(0, 20)), o.Score(z[20*outputs:], truth.Part(20, rows))
		got := (float64(a.Correct[2]+b.Correct[2]) + a.Part[2] + b.Part[2]) / float64(a.Total[2]+b.Total[2])
		if want := metricsOf(task, 2)[metric]; math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: the score is %v, %s is %v", task, got, metric, want)
		}
	}
}

// Balanced classes have equal weights in total, and the mean weight of a training row is 1; the
// same holds for ones and zeros of a label. With the root, weights differ by the root of the
// ratio: the weights of 10 and 40 rows by 2, with 10·w + 40·w/2 = 50 for a mean of 1.
func TestBalanced(t *testing.T) {
	o := &objective.Objective{Task: graph.MultiClass, Outputs: 3}
	o.Weigh(nil, 1, []int64{10, 30, 0}, 40)
	if got, want := fmt.Sprintf("%.4f", o.Weights[:2]), "[2.0000 0.6667]"; got != want {
		t.Errorf("weights %s, want %s", got, want)
	}
	o.Weigh([]float64{1, 3, 5}, 0, []int64{10, 30, 0}, 40)
	if got, want := fmt.Sprintf("%.4f", o.Weights), "[0.4000 1.2000 2.0000]"; got != want {
		t.Errorf("weights %s, want %s", got, want)
	}
	o.Weigh(nil, 0.5, []int64{10, 40, 0}, 50)
	if got, want := fmt.Sprintf("%.4f", o.Weights[:2]), "[1.6667 0.8333]"; got != want {
		t.Errorf("weights %s, want %s", got, want)
	}
	o.Weigh([]float64{1, 3, 5}, 0, []int64{10, 30, 0}, 40)
	for want, counts := range map[float64][]int64{1.4: {1, 1, 2}, 0: {0, 0, 0}} { // (0.4 + 1.2 + 2·2) / 4
		o.ValWeight = 0
		if o.WeighValidation(counts); math.Abs(o.ValWeight-want) > 1e-12 {
			t.Errorf("a mean weight of %v of the validation rows, want %v", o.ValWeight, want)
		}
	}
	o.Task = graph.MultiLabel
	o.Weigh(nil, 0.5, []int64{8, 32}, 40)
	if got, want := fmt.Sprintf("%.4f", o.Weights[:2]), "[2.0000 0.5000]"; got != want {
		t.Errorf("weights %s, want %s", got, want)
	}
	o.Weigh(nil, 1, []int64{10, 30, 20}, 40)
	if got, want := fmt.Sprintf("%.4f", o.Weights), "[3.0000 0.3333 1.0000]"; got != want {
		t.Errorf("weights %s, want %s", got, want)
	}
}
