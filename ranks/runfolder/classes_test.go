package runfolder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/kernels/objective"
)

// metricsOf returns the metrics of test rows with these logits [rows x o.Outputs].
func metricsOf(o objective.Objective, logits []float32, truth objective.Truth) []objective.Metrics {
	truth.Split = slices.Repeat([]uint8{graph.SplitTest}, len(truth.Labels))
	tally := o.NewTally()
	o.Add(tally, logits, truth, graph.SplitTest)
	all := make([]objective.Metrics, graph.SplitTest+1)
	all[graph.SplitTest] = o.Metrics(tally, graph.SplitTest)
	return all
}

// classified returns the metrics of rows with one label and one prediction each.
func classified(classes int, labels, predicted []int32) []objective.Metrics {
	logits := make([]float32, len(labels)*classes)
	for r, c := range predicted {
		logits[r*classes+int(c)] = 1
	}
	return metricsOf(objective.Objective{Task: graph.MultiClass, Outputs: classes}, logits, objective.Truth{Labels: labels})
}

func named(names ...string) func(int64) string {
	return func(c int64) string { return names[c] }
}

func written(s *Scores) string {
	var text strings.Builder
	s.WriteClasses(&text)
	return text.String()
}

// The table is that of scikit-learn 1.2.1: classification_report(labels, predicted,
// target_names=…, digits=4, zero_division=0), without "samples avg" of several labels.
// The matrix has the numbers of confusion_matrix.
func TestClassesAsScikitLearnPrintsThem(t *testing.T) {
	labels := []int32{0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2}
	predicted := []int32{0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 0}
	s := NewScores(classified(4, labels, predicted), named("legit", "fraud", "under review", "not there"))
	s.Test.PerClass.Confusion = s.Test.PerClass.Confusion[:3] // scikit-learn leaves the last class out
	report := "              precision    recall  f1-score   support\n\n       legit     0.7500    0.8571    0.8000         7\n       " +
		"fraud     0.5000    0.6667    0.5714         3\nunder review     0.0000    0.0000    0.0000         2\n\n    " +
		"accuracy                         " +
		"0.6667        12\n   macro avg     0.4167    0.5079    0.4571        12\nweighted avg     0.5625    0.6667    0.6095        12\n"
	matrix := `
                  legit     fraud under re… not there

       legit          6         1         0         0
       fraud          1         2         0         0
under review          1         1         0         0
`
	text := written(s)
	if !strings.HasPrefix(text, "classes of the test vertices\n"+report) || !strings.HasSuffix(text, matrix) {
		t.Errorf("%s\nwant\n%s%s", text, report, matrix)
	}

	o := objective.Objective{Task: graph.MultiLabel, Outputs: 3}
	truth := objective.Truth{Labels: make([]int32, 4), Values: []float32{1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0}}
	s = NewScores(metricsOf(o, []float32{1, -1, -1, 1, -1, -1, 1, 1, -1, -1, -1, -1}, truth), named("a", "b", "c"))
	report = "              precision    recall  f1-score   support\n\n           a     0.6667    0.6667    0.6667         3\n           " +
		"b     1.0000    0.5000    0.6667         2\n           c     0.0000    0.0000    0.0000         0\n\n   micro avg     0.7500    " +
		"0.6000    0.6667         5\n   macro avg     0.5556    0.3889    0.4444         5\nweighted avg     " +
		"0.8000    0.6000    0.6667         5\n"
	if text := written(s); text != "classes of the test vertices\n"+report {
		t.Errorf("%s\nwant\n%s", text, report)
	}
}

// A table of many classes shows the largest ones and the number of classes. Averages are over all
// classes. Class c has c+1 rows, of which one is predicted to be of class 0.
func TestManyClasses(t *testing.T) {
	const classes = MostClasses + 100
	var labels, predicted []int32
	for c := range int32(classes) {
		for k := range c + 1 {
			labels, predicted = append(labels, c), append(predicted, c*min(k, 1))
		}
	}
	all := classified(classes, labels, predicted)
	macro := all[graph.SplitTest].PerClass.MacroAvg
	s := NewScores(all, func(c int64) string { return fmt.Sprint(c) })
	p := s.Test.PerClass
	if len(s.Classes) != MostClasses || s.OfClasses != classes || s.Classes[0] != "100" || len(p.F1) != MostClasses ||
		p.Support[0] != 101 || p.Recall[0] != 100./101 || p.Confusion != nil || p.MacroAvg != macro {
		t.Errorf("classes %v of %d", s.Classes, s.OfClasses)
	}
	text := written(s)
	if lines := strings.Count(text, "\n"); !strings.HasPrefix(text,
		"classes of the test vertices: the 20 largest of 300\n") || lines != 1+2+20+1+3 ||
		!strings.Contains(text, "\n         280     1.0000") || strings.Contains(text, "\n         279 ") {
		t.Errorf("%d lines:\n%s", lines, text)
	}
}

// Names of classes cannot write anything else to a terminal.
func TestNamesOfClasses(t *testing.T) {
	text := written(NewScores(classified(2, []int32{0, 1}, []int32{0, 1}), named("\x1b[2J\n", strings.Repeat("x", 99))))
	if strings.ContainsAny(text, "\x1b") || !strings.Contains(text, "�[2J�") || strings.Contains(text, strings.Repeat("x", 30)) {
		t.Errorf("%q", text)
	}
}

// summary.json has lists of numbers on one line, and the same values when it is read.
func TestSummaryOfClasses(t *testing.T) {
	dir := t.TempDir()
	s := Summary{Dataset: "[\n1,\n2]", Metrics: NewScores(classified(2, []int32{0, 1, 1}, []int32{0, 1, 0}), named("no", "yes"))}
	if err := (&Folder{dir: dir}).WriteSummary(s); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, summaryFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`"precision": [0.5, 1],`, `[1, 0],`, `[1, 1]`, `"dataset": "[\n1,\n2]",`} {
		if !regexp.MustCompile(`(?m)^ +` + regexp.QuoteMeta(line) + `$`).Match(text) {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	got, err := readSummary(dir)
	a, _ := json.Marshal(got)
	if b, _ := json.Marshal(s); err != nil || !bytes.Equal(a, b) {
		t.Errorf("%v: %s, want %s", err, a, b)
	}
	wrong := bytes.Replace(text, []byte(`"support": [1, 2]`), []byte(`"support": [1]`), 1)
	if err := os.WriteFile(filepath.Join(dir, summaryFile), wrong, 0o666); err != nil || bytes.Equal(wrong, text) {
		t.Fatal(err)
	}
	if _, err := readSummary(dir); fault.KindOf(err) != fault.Data {
		t.Errorf("a list of another length: %v", err)
	}
}
