package slurm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"siafu/internal/fault"
)

// lay writes files below a folder.
func lay(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := writeFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// record returns a RUN.job.
func record(t *testing.T, id string, array bool, runs ...string) string {
	t.Helper()
	text, err := json.Marshal(Record{Job: id, Runs: runs, Array: array})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const twoEpochs = `{"epoch":1,"loss":2,"val_acc":0.25,"seconds":3}
{"epoch":2,"loss":1.5,"seconds":3}
{"epoch":3,"lo`

// The state of a run comes from its files and from Slurm.
func TestStatus(t *testing.T) {
	t.Chdir(t.TempDir())
	lay(t, "runs", map[string]string{
		"done/config.toml":   "epochs = 2\n",
		"done/metrics.jsonl": twoEpochs[:strings.LastIndex(twoEpochs, "\n")+1], "done/summary.json": "{}",
		"nan/config.toml": "epochs = 9\n", "nan/metrics.jsonl": twoEpochs[:strings.LastIndex(twoEpochs, "\n")+1],
		"nan/summary.json":  `{"stopped_by":"diverged","epochs":2}`,
		"alone/config.toml": "epochs = 12\n", "alone/metrics.jsonl": twoEpochs,
		"running/config.toml": "epochs = 12\n", "running/metrics.jsonl": twoEpochs, "running.job": record(t, "5", false, "runs/running"),
		"waits.job":        record(t, "6", false, "runs/waits"),
		"back/config.toml": "epochs = 12\n", "back/metrics.jsonl": "", "back.job": record(t, "7", false, "runs/back"),
		"timeout/config.toml": "epochs = 12\n", "timeout/metrics.jsonl": twoEpochs, "timeout.job": record(t, "8", false, "runs/timeout"),
		"halt/config.toml": "epochs = 12\n", "halt/metrics.jsonl": twoEpochs, "halt.job": record(t, "12", false, "runs/halt"),
		"left/config.toml": "epochs = 12\n", "left/metrics.jsonl": twoEpochs, "left/lock": "", // given back a moment ago
		"forgotten.job":            record(t, "9", false, "runs/forgotten"),
		"sweep.job":                record(t, "10", true, "runs/sweep/seed=1", "runs/sweep/seed=2"),
		"sweep/seed=1/config.toml": "epochs = 4\n", "sweep/seed=1/metrics.jsonl": twoEpochs,
	})
	queue := map[string]string{
		"5":  "JobId=5 JobName=x Restarts=0 JobState=RUNNING Reason=None",
		"6":  "JobId=6 JobState=PENDING Reason=Resources Restarts=0",
		"7":  "JobId=7 JobState=PENDING Reason=BeginTime Restarts=1",
		"8":  "JobId=8 JobState=TIMEOUT Reason=TimeLimit Restarts=0",
		"12": "JobId=12 JobState=CANCELLED Reason=None Restarts=0",
		"10": "JobId=10 ArrayJobId=10 ArrayTaskId=1-1 JobState=PENDING Reason=Priority\n" +
			"JobId=11 ArrayJobId=10 ArrayTaskId=0 JobState=RUNNING Reason=None\n",
	}
	ask := func(_, id string) ([]Entry, error) {
		if text, ok := queue[id]; ok {
			return parseQueue(text), nil
		}
		return nil, fault.New(fault.Config, "scontrol", "", "Invalid job id specified")
	}
	list, err := Watch{ask, time.Now()}.All(nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Print(&out, list); err != nil {
		t.Fatal(err)
	}
	const want = `
run                state      epoch  loss    val acc  left  job
runs/alone         running    2/12   1.5000  0.2500   30s   -
runs/back          requeued   0/12   -       -        -     7 PENDING (BeginTime)
runs/done          done       2/2    1.5000  0.2500   -     -
runs/forgotten     stopped    -      -       -        -     9
runs/halt          cancelled  2/12   1.5000  0.2500   -     12 CANCELLED
runs/left          stopped    2/12   1.5000  0.2500   -     -
runs/nan           diverged   2/9    1.5000  0.2500   -     -
runs/running       running    2/12   1.5000  0.2500   30s   5 RUNNING
runs/sweep/seed=1  running    2/4    1.5000  0.2500   6s    11 RUNNING
runs/sweep/seed=2  queued     -      -       -        -     10 PENDING (Priority)
runs/timeout       failed     2/12   1.5000  0.2500   -     8 TIMEOUT
runs/waits         queued     -      -       -        -     6 PENDING (Resources)
`
	if out.String() != want[1:] {
		t.Errorf("got\n%swant%s", out.String(), want)
	}
	t.Run("by name", func(t *testing.T) { byName(t, ask) })
	t.Run("without Slurm", withoutSlurm)
}

func byName(t *testing.T, ask func(_, _ string) ([]Entry, error)) {
	for name, want := range map[string]string{
		"runs/running": "runs/running", "runs/sweep/": "runs/sweep/seed=1 runs/sweep/seed=2", "10": "runs/sweep/seed=1 runs/sweep/seed=2",
		"runs/sweep/seed=2": "runs/sweep/seed=2", "6": "runs/waits",
	} {
		list, err := Watch{ask, time.Now()}.All([]string{name})
		var got []string
		for _, s := range list {
			got = append(got, s.Run)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s means %q, want %q: %v", name, got, want, err)
		}
	}
	for _, name := range []string{"runs/nothing", "77"} {
		if _, err := (Watch{ask, time.Now()}).All([]string{name}); fault.KindOf(err) != fault.Missing {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without Slurm's commands the files alone tell.
func withoutSlurm(t *testing.T) {
	none := func(_, _ string) ([]Entry, error) { return nil, fault.New(fault.Missing, "scontrol", "", "no Slurm") }
	for _, tc := range []struct {
		run  string
		age  time.Duration
		want string
	}{{"runs/running", 0, Running}, {"runs/running", time.Hour, Stopped}, {"runs/alone", time.Hour, Stopped}, {"runs/waits", 0, Queued},
		{"runs/done", time.Hour, Done}} {
		list, err := Watch{none, time.Now().Add(tc.age)}.All([]string{tc.run})
		if err != nil || len(list) != 1 || list[0].Phase != tc.want {
			t.Errorf("%s after %v: %+v %v, want %s", tc.run, tc.age, list, err, tc.want)
		}
	}
}

// A damaged run folder is a fault that names the file and the line.
func TestStatusOfDamage(t *testing.T) {
	for i, files := range []map[string]string{
		{"config.toml": "epochs = ", "metrics.jsonl": ""},
		{"config.toml": "epochs = 3", "metrics.jsonl": "{}\nnonsense\n"},
		{"config.toml": "epochs = 3", "metrics.jsonl": "", "summary.json": "{"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			dir := t.TempDir()
			lay(t, dir, files)
			_, err := Watch{Queue, time.Now()}.All([]string{dir})
			if fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), dir) {
				t.Error(err)
			}
			if _, err := os.Stat(dir); err != nil {
				t.Error(err)
			}
		})
	}
}

// An unreadable run is a line of the table, which still shows the other runs.
func TestStatusBesideDamage(t *testing.T) {
	t.Chdir(t.TempDir())
	lay(t, "runs", map[string]string{
		"a/config.toml": "epochs = 12\n", "a/metrics.jsonl": twoEpochs,
		"b/config.toml": "epochs = 12\n", "b/metrics.jsonl": "{}\nnonsense\n", "b.job": record(t, "5", false, "runs/b"),
		"c/config.toml": "epochs = \n", "c/metrics.jsonl": twoEpochs,
		"d/config.toml": "epochs = 12\n", "d/metrics.jsonl/x": "",
		"e/config.toml": "epochs = 12\n", "e/metrics.jsonl": twoEpochs, "e/summary.json": "{",
		"f/config.toml": "epochs = 12\n", "f/metrics.jsonl": twoEpochs,
	})
	ask := func(_, id string) ([]Entry, error) { return parseQueue("JobId=5 JobState=RUNNING Reason=None"), nil }
	list, err := Watch{ask, time.Now()}.All([]string{"runs", "nothing", "runs/f"})
	if fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), "5 of 8 runs are unreadable; the first: ") ||
		!strings.Contains(err.Error(), "runs/b/metrics.jsonl") {
		t.Errorf("%v", err)
	}
	var out bytes.Buffer
	if err := Print(&out, list); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`runs/a +running +2/12 .*`, `runs/b +damaged +- .* 5 RUNNING  .*runs/b/metrics.jsonl: .*2.*`,
		`runs/c +damaged .*runs/c/config.toml: line 1: .*`,
		`runs/d +damaged .*runs/d/metrics.jsonl: .*directory.*`, `runs/e +damaged .*runs/e/summary.json: .*`,
		`nothing +absent .*`, `runs/f +running .*`,
	} {
		if !regexp.MustCompile("(?m)^" + want + "$").Match(out.Bytes()) {
			t.Errorf("no line %q in\n%s", want, &out)
		}
	}
	if n := bytes.Count(out.Bytes(), []byte("\n")); n != 1+len(list) {
		t.Errorf("%d lines for %d runs:\n%s", n, len(list), &out)
	}
}
