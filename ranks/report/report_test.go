package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"siafu/internal/fault"
	"siafu/ranks/runfolder"
)

// lay makes a run folder with settings and a test accuracy. With accuracy 0, the run has not ended
// and its last line is incomplete.
func lay(t *testing.T, dir, settings string, accuracy float64) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"config.toml":   "model = \"gcn\"\nlayers = 2\nhidden = 16\nranks = 4\nservers = 1\nout = \"" + dir + "\"\n" + settings + "\n",
		"metrics.jsonl": "{\"epoch\":1,\"seconds\":0.5,\"val_acc\":0.25}\n{\"epoch\":2,\"seconds\":0.5}\n",
	}
	if accuracy > 0 {
		files["summary.json"] = fmt.Sprintf(`{"dataset":"g","model":"gcn","layers":2,"hidden":16,"ranks":4,"servers":1,"epochs":2,
			"stopped_by":"epochs","test_acc_at_best_val":%g,"best_val_acc":0.25,"epoch_seconds_median":0.5,"total_seconds":2,
			"peak_rss_bytes":1048576,"ghost_bytes_raw":2097152,"ghost_bytes_sent":1048576}`, accuracy)
	} else {
		files["metrics.jsonl"] += `{"epoch":3,"sec`
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// grid makes the folders of four ended runs, with two codecs and two seeds.
func grid(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for k, accuracy := range []float64{0.70, 0.80, 0.60, 0.64} {
		codec, seed := []string{"none", "int4"}[k/2], k%2+1
		lay(t, filepath.Join(dir, "sweep", fmt.Sprintf("%s-%d", codec, seed)),
			fmt.Sprintf("codec = %q\nseed = %d\nquiet = %t", codec, seed, k == 0), accuracy)
	}
	return dir
}

func said(t *testing.T, o Options) string {
	t.Helper()
	var w bytes.Buffer
	if err := o.Run(&w); err != nil {
		t.Fatal(err)
	}
	return w.String()
}

// words returns the lines of a table, with single spaces.
func words(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// A folder stands for the runs below it, and the settings in which they differ, and no
// others, have columns.
func TestFolderOfRuns(t *testing.T) {
	dir := grid(t)
	text := words(said(t, Options{Runs: []string{dir}, Columns: []string{allColumns}}))
	head := "run dataset model layers hidden ranks servers codec seed epochs test acc val acc majority s/epoch seconds peak MiB " +
		"ghost MiB sent MiB stopped by"
	line := "\nint4-2 g gcn 2 16 4 1 int4 2 2 0.6400 0.2500 0.0000 0.5000 2.0 1 2.0 1.0 epochs"
	if !strings.HasPrefix(text, "runs in "+filepath.Join(dir, "sweep")+"\n"+head+"\n") || !strings.Contains(text, line) ||
		strings.Count(text, "\n") != 5 {
		t.Error(text)
	}
	for _, epochs := range []string{"2", "5"} {
		lay(t, filepath.Join(dir, "long", epochs), "epochs = "+epochs, 0.5)
	}
	if text := words(said(t, Options{Runs: []string{filepath.Join(dir, "long")}, Columns: []string{allColumns}})); !strings.Contains(text,
		" servers of epochs epochs test acc ") {
		t.Error(text)
	}
}

// A table fits 100 columns: what does not fit is left out, settings in which the runs
// are equal first. --columns chooses. Runs are in the order of the numbers in their names.
func TestColumns(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"lr-10", "lr-2", strings.Repeat("long", 12)} {
		lay(t, filepath.Join(dir, name), "lr = \""+name+"\"", 0.5)
	}
	text := said(t, Options{Runs: []string{dir}})
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > textWidth && !strings.HasPrefix(line, "gcn on ") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.Contains(text, "\n13 columns do not fit; --columns all") || !strings.Contains(text, "longlonglonglonglong…") ||
		strings.Index(text, "lr-2 ") > strings.Index(text, "lr-10 ") {
		t.Error(text)
	}
	text = words(said(t, Options{Runs: []string{dir}, Columns: []string{"test acc", "lr"}}))
	if !strings.Contains(text, "\nrun test acc lr\nlonglonglonglonglong…") || !strings.Contains(text, "\nlr-2 0.5000 lr-2\n") {
		t.Error(text)
	}
	err := Options{Runs: []string{dir}, Columns: []string{"lr"}, CSV: true}.Run(new(bytes.Buffer))
	if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "--columns with --csv") {
		t.Error(err)
	}
	err = Options{Runs: []string{dir}, Columns: []string{"colour"}}.Run(new(bytes.Buffer))
	if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "choose from dataset, model") {
		t.Error(err)
	}
}

// Settings that runs decided are the last ones. They and the validation score are removed before settings of the user.
func TestDecidedSettings(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []string{"auto", "on"} {
		run := filepath.Join(dir, strings.Repeat(c, 10))
		lay(t, run, fmt.Sprintf("cache-input = %q\nlr = %d\nzeta = \"%[3]s\"\nmonitor = \"m%[2]d\"", c, i, strings.Repeat(c, 5)), 0.5)
		if c == "on" {
			extend(t, run, `,"ranks":8,"decided":{"cache-input":"on"},"chosen":[{"flag":"monitor","value":"m1"}]`)
		}
	}
	text := words(said(t, Options{Runs: []string{dir}, Columns: []string{allColumns}}))
	if !strings.Contains(text, " servers lr zeta cache-input monitor ") {
		t.Error(text)
	}
	text = words(said(t, Options{Runs: []string{dir}}))
	if !strings.Contains(text, " ranks lr zeta test ") || strings.Contains(text, "cache-input") ||
		strings.Contains(text, "monitor") || strings.Contains(text, "val acc") {
		t.Error(text)
	}
}

// extend adds fields to the summary of a run.
func extend(t *testing.T, dir, fields string) {
	t.Helper()
	path := filepath.Join(dir, "summary.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(bytes.TrimSuffix(text, []byte("}")), fields+"}"...), 0o666); err != nil {
		t.Fatal(err)
	}
}

// score replaces the metrics, and the score's name, in the summary of a run.
func score(t *testing.T, dir, metric, metrics string) {
	t.Helper()
	extend(t, dir, `,"metric":"`+metric+`","metrics":`+metrics)
}

// --columns takes every metric of summary.json, of the test split if no split is named. CSV and JSON
// have all of them.
func TestMetricColumns(t *testing.T) {
	dir := t.TempDir()
	a, b := lay(t, filepath.Join(dir, "a"), "", 0.5), lay(t, filepath.Join(dir, "b"), "", 0.75)
	score(t, a, "accuracy", `{"val":{"vertices":4,"macro_f1":0.375},"test":{"vertices":4,"accuracy":0.5,"macro_f1":0.25,"roc_auc":0.625}}`)
	text := words(said(t, Options{Runs: []string{dir}, Columns: []string{"macro_f1", "roc_auc", "val macro_f1"}}))
	if !strings.HasSuffix(text, "run test macro_f1 test roc_auc val macro_f1\na 0.2500 0.6250 0.3750\nb - - -\n") &&
		!strings.Contains(text, "\na 0.2500 0.6250 0.3750\nb - - -\n") {
		t.Error(text)
	}
	err := Options{Runs: []string{b}, Columns: []string{"macro_f1"}}.Run(new(bytes.Buffer))
	if fault.KindOf(err) != fault.Usage {
		t.Errorf("a metric of no run: %v", err)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(said(t, Options{Runs: []string{dir}, JSON: true})), &rows); err != nil ||
		rows[0]["test roc_auc"] != 0.625 {
		t.Errorf("%v: %v", err, rows)
	}
}

// Runs with another score than accuracy have no accuracy, majority and classes on their page. Runs of
// one rank have no chart of ghost rows.
func TestPageOfRegression(t *testing.T) {
	dir := t.TempDir()
	run := lay(t, filepath.Join(dir, "a"), "", 0.5)
	score(t, run, "r2", `{"test":{"vertices":4,"mse":2,"r2":0.5}},"ghost_bytes_sent":0`)
	lay(t, filepath.Join(dir, "b"), "", 0)
	lines := "{\"epoch\":1,\"val_acc\":0.25,\"metric\":\"r2\"}\n{\"epoch\":2,\"val_acc\":0.75,\"metric\":\"r2\"}\n"
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name, "metrics.jsonl"), []byte(lines), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	html := filepath.Join(t.TempDir(), "page.html")
	said(t, Options{Runs: []string{dir}, HTML: html})
	text, err := os.ReadFile(html)
	if err != nil {
		t.Fatal(err)
	}
	for _, none := range []string{">hidden</button>", ">layers</button>", "ccuracy", "fraction right", "cross entropy", "majority",
		"val acc", "test acc", "Ghost rows sent", "Classes of"} {
		if strings.Contains(string(text), none) {
			t.Errorf("the page has %q", none)
		}
	}
	for _, want := range []string{"Validation r2 over epochs", "val r2", "test r2", "stopped by"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// Runs are averaged over seeds: 0.70 and 0.80 are 0.75, with a deviation of 0.0707; 0.60
// and 0.64 are 0.62 with 0.0283. --by codec says the same, and orders columns as asked.
func TestGroups(t *testing.T) {
	dir := grid(t)
	for _, o := range []Options{{Over: []string{"seed"}}, {By: []string{"codec"}}} {
		o.Runs = []string{dir}
		text := words(said(t, o))
		for _, line := range []string{"runs codec epochs test acc", "2 none 2 0.7500 ± 0.0707", "2 int4 2 0.6200 ± 0.0283"} {
			if !strings.Contains(text, line) {
				t.Errorf("no %q in\n%s", line, text)
			}
		}
	}
}

// CSV and JSON have the numbers of the table, unrounded.
func TestForms(t *testing.T) {
	dir := grid(t)
	lines, err := csv.NewReader(strings.NewReader(said(t, Options{Runs: []string{dir}, Over: []string{"seed"}, CSV: true}))).ReadAll()
	if err != nil || len(lines) != 3 ||
		strings.Join(lines[0][:6], ",") != "runs,codec,epochs,epochs deviation,test acc,test acc deviation" ||
		!strings.HasPrefix(lines[2][5], "0.0707106") || lines[1][len(lines[1])-1] != "epochs" {
		t.Errorf("%v: %q", err, lines)
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(said(t, Options{Runs: []string{dir}, JSON: true})), &list); err != nil || len(list) != 4 ||
		list[0]["codec"] != "int4" || list[0]["test acc"] != 0.6 {
		t.Errorf("%v: %v", err, list)
	}
}

// Test and validation accuracy of a row are those of one epoch, also where another epoch
// had a higher validation accuracy (--monitor loss).
func TestScoresOfOneEpoch(t *testing.T) {
	run := lay(t, filepath.Join(t.TempDir(), "run"), "patience-on = \"loss\"", 0.5)
	lines := "{\"epoch\":1,\"val_acc\":0.25,\"test_acc\":0.5}\n{\"epoch\":2,\"val_acc\":0.75,\"test_acc\":0.1}\n"
	if err := os.WriteFile(filepath.Join(run, "metrics.jsonl"), []byte(lines), 0o666); err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(said(t, Options{Runs: []string{run}, JSON: true})), &rows); err != nil || len(rows) != 1 ||
		rows[0]["test acc"] != 0.5 || rows[0]["val acc"] != 0.25 {
		t.Errorf("%v: %v", err, rows)
	}
	os.Remove(filepath.Join(run, "summary.json"))
	if text := words(said(t, Options{Runs: []string{run}, Columns: []string{allColumns}})); !strings.Contains(text, " 2 - 0.7500 - ") {
		t.Errorf("the newest validation accuracy is missing: %s", text)
	}
}

// A setting that has another name since then is one column.
func TestRenamedSetting(t *testing.T) {
	dir := t.TempDir()
	lay(t, filepath.Join(dir, "old"), "patience-on = \"loss\"", 0.5)
	lay(t, filepath.Join(dir, "new"), "monitor = \"both\"", 0.5)
	if text := words(said(t, Options{Runs: []string{dir}, Columns: []string{allColumns}})); !strings.Contains(text,
		" servers monitor epochs ") || !strings.Contains(text, "\nold g gcn 2 16 4 1 loss 2 ") {
		t.Error(text)
	}
}

// A run with a setting that train no longer accepts is read.
func TestRemovedSetting(t *testing.T) {
	dir := t.TempDir()
	for _, kind := range []string{"linear", "transfer"} {
		lay(t, filepath.Join(dir, kind), fmt.Sprintf("refresh = \"every:4\"\npredict = %q", kind), 0.5)
	}
	if text := words(said(t, Options{Runs: []string{dir}, Columns: []string{allColumns}})); !strings.Contains(text,
		"\nlinear g gcn 2 16 4 1 linear 2 0.5000 ") {
		t.Error(text)
	}
}

// A run that has not ended is a line, with what it has so far.
func TestUnfinished(t *testing.T) {
	dir := grid(t)
	run := lay(t, filepath.Join(dir, "late"), "codec = \"none\"\nseed = 3", 0)
	text := words(said(t, Options{Runs: []string{dir}, Columns: []string{allColumns}}))
	if !strings.Contains(text, "\nlate - gcn 2 16 4 1 none 3 2 - 0.2500 - 0.5000 - - - - unfinished") {
		t.Error(text)
	}
	text = words(said(t, Options{Runs: []string{dir}, By: []string{"codec"}}))
	if !strings.Contains(text, "3 none 2 0.7500 ± 0.0707") || !strings.Contains(text, "1 unfinished, 2 epochs") {
		t.Error(text)
	}
	if text := said(t, Options{Runs: []string{run}}); !strings.Contains(text, "has not ended: 2 epochs are done") {
		t.Error(text)
	}
}

// A damaged run is an error, and the report still shows the others.
func TestDamaged(t *testing.T) {
	dir := grid(t)
	bad := lay(t, filepath.Join(dir, "bad"), "codec = 1 2", 0.5)
	var w bytes.Buffer
	err := Options{Runs: []string{dir}, Columns: []string{allColumns}}.Run(&w)
	if fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), bad) || strings.Count(w.String(), "\n") != 6 {
		t.Errorf("%v\n%s", err, &w)
	}
	if err := (Options{Runs: []string{t.TempDir()}}).Run(&w); fault.KindOf(err) != fault.Missing ||
		!strings.Contains(err.Error(), "name a run folder") {
		t.Error(err)
	}
	os.RemoveAll(bad)
	if err := (Options{Runs: []string{dir}, By: []string{"colour"}}).Run(&w); fault.KindOf(err) != fault.Usage ||
		!strings.Contains(err.Error(), "differ in codec, seed") {
		t.Error(err)
	}
}

// The report of a diverged run does not mention a model that was not written.
func TestDiverged(t *testing.T) {
	for best, want := range map[int]string{
		0: "gcn on x diverged in epoch 7: lower --lr",
		3: "gcn on x diverged in epoch 7: lower --lr; the best weights before answer 25.0 % of the test vertices right; " +
			"model in d/model.safetensors",
	} {
		r := &Run{Dir: "d", Summary: &runfolder.Summary{Model: "gcn", Dataset: "x", StoppedBy: "diverged", Epochs: 7,
			BestEpoch: best, TestAccAtBestVal: 0.25}}
		if got := sentence(r); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
