package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/kernels/objective"
	"siafu/ranks/runfolder"
)

// layClasses makes a run folder whose summary has metrics of two classes.
func layClasses(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(lay(t, dir, "", 0.5), "summary.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const average = `{"precision":0.375,"recall":0.625,"f1":0.5}`
	metrics := `{"metrics":{"classes":["<b>","fraud"],"train":null,"val":null,"test":{"vertices":12,"accuracy":0.75,"per_class":{
		"precision":[0.5,0.0625],"recall":[1,0.25],"f1":[0.75,0.125],"support":[7,5],"predicted":[8,4],"confusion":[[6,1],[2,3]],
		"micro_avg":` + average + `,"macro_avg":` + average + `,"weighted_avg":` + average + `}}},`
	if err := os.WriteFile(path, []byte(metrics+strings.TrimPrefix(string(text), "{")), 0o666); err != nil {
		t.Fatal(err)
	}
}

// The page has precision, recall and F1 of each class, and the confusion matrix, of the
// first runs; it says where others are left out.
func TestClassesOnThePage(t *testing.T) {
	dir := t.TempDir()
	for k := range classedRuns + 1 {
		layClasses(t, filepath.Join(dir, fmt.Sprintf("run-%02d", k)))
	}
	file := filepath.Join(t.TempDir(), "page.html")
	said(t, Options{Runs: []string{dir}, HTML: file})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for want, times := range map[string]int{
		"<tr><td>fraud</td><td>0.0625</td><td>0.2500</td><td>0.1250</td><td>5</td></tr>":          classedRuns,
		"<tr><td>accuracy</td><td></td><td></td><td>0.7500</td><td>12</td></tr>":                  classedRuns,
		"<tr><td>macro avg</td><td>0.3750</td><td>0.6250</td><td>0.5000</td><td>12</td></tr>":     classedRuns,
		"<tr><td>&lt;b&gt;</td><td>6</td><td>1</td></tr>\n<tr><td>fraud</td><td>2</td><td>3</td>": classedRuns,
		"<b>": 0,
		"<details><summary><h2>Classes of each run</h2>": 1,
		"<h2>Classes of " + dir:                          0, "<h3>Classes of " + dir: classedRuns,
		"Confusion matrix of " + filepath.Join(dir, "run-11"): 1,
		"Confusion matrix of " + filepath.Join(dir, "run-12"): 0,
		"The first 12 runs have tables.":                      1,
		"<td>1.0000</td><td>0.7500</td><td>7</td></tr>":       classedRuns,
	} {
		if n := strings.Count(string(text), want); n != times {
			t.Errorf("%q is there %d times, want %d", want, n, times)
		}
	}
}

// Beside accuracy there is the metric that chose the weights, and balanced accuracy where
// the loss did or classes had weights; not where accuracy was optimised.
func TestWhatWasOptimised(t *testing.T) {
	value := func(x float64) *float64 { return &x }
	for _, tc := range []struct {
		monitor, weights, columns, sentence string
	}{
		{"accuracy", "", "", "(always the most frequent class: 75.0 %); model"},
		{"accuracy", "off", "", "(always the most frequent class: 75.0 %); model"},
		{"", "", "", "(always the most frequent class: 75.0 %); model"},
		{"loss", "root", "test balanced_accuracy",
			"class: 75.0 %; balanced accuracy: 62.5 %; weights chosen by --monitor loss; trained with --class-weights root); model"},
		{"macro_f1", "", "test macro_f1", "class: 75.0 %; balanced accuracy: 62.5 %; weights chosen by --monitor macro_f1); model"},
	} {
		test := &objective.Metrics{Vertices: 4, BalancedAccuracy: value(0.625), MacroF1: value(0.5)}
		r := &Run{Summary: &runfolder.Summary{Metric: "accuracy", Monitor: tc.monitor, ClassWeights: tc.weights,
			TestAccAtBestVal: 0.5, MajorityTestAcc: 0.75,
			Metrics: &runfolder.Scores{Test: test}}}
		var names []string
		for _, c := range columns([]*Run{r, {}})[3:] {
			if strings.HasPrefix(c.name, "test ") {
				names = append(names, c.name)
			}
		}
		if got := strings.Join(names, " "); got != tc.columns {
			t.Errorf("%s %s: columns %q, want %q", tc.monitor, tc.weights, got, tc.columns)
		}
		if got := sentence(r); !strings.Contains(got, tc.sentence) {
			t.Errorf("%s %s: %q, want %q", tc.monitor, tc.weights, got, tc.sentence)
		}
	}
}
