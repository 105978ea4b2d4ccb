package cli

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// inFolderWith makes an empty folder the working directory, in which a small dataset has
// these names.
func inFolderWith(t *testing.T, names ...string) {
	t.Helper()
	data := small(t)
	t.Chdir(t.TempDir())
	for _, n := range names {
		if err := cmp.Or(os.MkdirAll(filepath.Dir(n), 0o755), os.Symlink(data, n)); err != nil {
			t.Fatal(err)
		}
	}
}

// submit parses what it will train with, and writes a script that names it.
func TestSubmitDryRun(t *testing.T) {
	inFolderWith(t, "data/mine")
	out := must(t, "submit", "data/mine", "--ntasks-per-node", "4", "--cpus-per-task", "2", "--array", "seed=1,2", "--array", "hidden=8",
		"--partition-job", "--dry-run", "--", "--epochs", "7", "--out", "runs/here", "--servers", "2", "--partitioner", "hash")
	printed, ok := strings.CutSuffix(out, "wrote script=runs/here.sbatch run=runs/here\n")
	if !ok {
		t.Errorf("it prints %q", out)
	}
	for name, lines := range map[string][]string{
		"runs/here.sbatch": {
			"train data/mine --epochs 7 --servers 2 --partitioner hash --threads", "#SBATCH --job-name=siafu-mine\n",
			"\t\"seed=1 hidden=8\"\n\t\"seed=2 hidden=8\"\n", "run=runs/here/${setting",
		},
		"runs/here-partition.sbatch": {" partition data/mine --parts 2 --method hash\n"},
	} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range lines {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %q:\n%s", name, want, text)
			}
		}
		if !strings.Contains(printed, string(text)) {
			t.Errorf("%s is not printed as it is:\n%s", name, printed)
		}
	}
	if r := siafu("submit", "data/mine", "--dry-run"); r.code != 0 || !strings.HasPrefix(r.out, "#!/bin/bash\n") ||
		!strings.Contains(r.out, "run=runs/mine-2") {
		t.Errorf("without --out: %+v", r)
	}
}

// A job requests GPUs if the run computes on them: one for each graph rank of a node, or the
// given number.
func TestSubmitGPUs(t *testing.T) {
	inFolderWith(t, "data")
	for args, want := range map[string]string{
		"--":                           "",
		"-- --tensor cuda":             "3", // and a server
		"-- --tensor cuda --servers 0": "4",
		"--nodes 2 -- --tensor cuda":   "4",
		"--gpus-per-node 2 -- --tensor cuda --graph cpu": "2",
		"--gpus-per-node a100:1 -- --tensor cuda":        "a100:1",
		"--array tensor=cpu,cuda":                        "3",
		"--array tensor=cpu -- --tensor cuda":            "",
	} {
		out := must(t, append([]string{"submit", "data", "--ntasks-per-node", "4", "--dry-run"}, strings.Fields(args)...)...)
		line := "\n#SBATCH --gpus-per-node=" + want + "\n"
		if has := strings.Contains(out, "gpus-per-node"); has != (want != "") || has && !strings.Contains(out, line) {
			t.Errorf("%s: want %q in\n%s", args, want, out)
		}
	}
}

// --force applies to the first start of a script: all its starts share one unique id, by which
// later ones recognise the run folder. Without it every start continues the existing run.
func TestSubmitForce(t *testing.T) {
	inFolderWith(t, "data")
	id := regexp.MustCompile(`(?m)^export SIAFU_LAUNCH=([0-9a-f]{32})$`)
	seen := map[string]bool{}
	for args, resumes := range map[string]bool{"": true, "--force": false, "--resume x": true, "--force --resume x": true} {
		out := must(t, append([]string{"submit", "data", "--dry-run", "--", "--out", "runs/r"}, strings.Fields(args)...)...)
		m := id.FindStringSubmatch(out)
		if m == nil || seen[m[1]] || strings.Contains(out, " --resume ") != resumes {
			t.Errorf("%q: %s", args, out)
			continue
		}
		seen[m[1]] = true
	}
}

// Submission reports errors of the training command line.
func TestSubmitUsage(t *testing.T) {
	inFolderWith(t, "data")
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"data", "--", "--hiden", "3"}, 64, "--hidden"},
		{[]string{"data", "--", "--lr", "-1"}, 64, "--lr"},
		{[]string{"data", "--array", "hiden=3"}, 64, "--hidden"},
		{[]string{"data", "--array", "epochs=3,x"}, 64, "epochs"},
		{[]string{"data", "more"}, 64, "[CONFIG.toml] DATA"},
		{[]string{"data", "--ntasks-per-node", "3", "--", "--servers", "2"}, 78, "2 servers in a world of 3 ranks"},
		{[]string{"none.toml", "data"}, 66, "none.toml"},
		{[]string{"data", "--gpus-per-node", "1"}, 64, "--gpus-per-node=1, but the training runs on CPUs"},
		{[]string{"data", "--gpus-per-node", "none", "--", "--tensor", "cuda"}, 64, "--gpus-per-node=\"none\""},
		{[]string{"data", "--gpus-per-node", "0", "--", "--tensor", "cuda"}, 64, "--gpus-per-node=\"0\""},
		{[]string{"data", "--ntasks-per-node", "3", "--gpus-per-node", "gpu:3", "--", "--tensor", "cuda"}, 64,
			"but a node has 2 graph ranks"},
		{[]string{"data", "--gpus-per-node", "1", "--", "--graph", "cuda"}, 64, "--tensor cuda"},
		{[]string{"data", "--time", "1", "--", "--epochs", "3"}, 64, "--grace"},
		{[]string{"none"}, 66, "none is not a dataset folder"},
		{[]string{"data", "--hidden", "3"}, 64, "put --hidden after --"},
		{[]string{"data", "--hiden", "3"}, 64, "siafu help"},
		{[]string{"data", "--", "--ranks", "3"}, 64, "--ntasks-per-node ranks, here 1"},
		{[]string{"data", "--mem", "1K"}, 78, "--mem=1K provides 0 MB"},
		{[]string{"data", "--mem", "16M"}, 0, "siafu: warning: the ranks of a node need about "},
		{[]string{"data", "--mem", "much"}, 64, "--mem=\"much\""},
		{[]string{"data", "--sbatch", "--nodes=3"}, 64, "--directive has \"--nodes=3\""},
		{[]string{"data", "--directive", "--comment=a;b"}, 64, "--directive has"},
		{[]string{"data", "--scheduler", "pbs", "--qos", "long"}, 64, "PBS has no --qos"},
		{[]string{"data", "--scheduler", "pbs", "--directive", "-N x"}, 64, "--directive has \"-N x\""},
		{[]string{"data", "--scheduler", "sge"}, 64, "--scheduler"},
		{[]string{"data", "--array", "seed=1,2%0"}, 64, "--array=seed=1,2%0"},
		{[]string{"data", "--array", "seed=1,2%1", "--array", "hidden=2,3%1"}, 64, "to one --array"},
	} {
		r := siafu(append([]string{"submit", "--dry-run"}, tc.args...)...)
		if r.code != tc.code || !strings.Contains(r.err, tc.says) {
			t.Errorf("%q: exit %d, want %d with %q: %s", tc.args, r.code, tc.code, tc.says, r.err)
		}
	}
}

// The script has submit's options for sbatch, the command of ranks is printed, and an edited
// script is not replaced.
func TestSubmitEdited(t *testing.T) {
	inFolderWith(t, "data")
	args := []string{"submit", "data", "--ntasks-per-node", "3", "--dry-run", "--sbatch", "--gres=gpu:1 --mail-type=END", "--array",
		"seed=1..5%2", "--", "--out", "r"}
	for range 2 {
		r := siafu(args...)
		for _, want := range []string{"\n#SBATCH --gres=gpu:1\n#SBATCH --mail-type=END\n", "\n#SBATCH --array=0-4%2\n"} {
			if r.code != 0 || !strings.Contains(r.out, want) {
				t.Errorf("%q is missing: %+v", want, r)
			}
		}
		if !strings.Contains(r.err, "3 tasks: 2 graph ranks, 1 server, which has no part of the graph; add --servers 0") {
			t.Errorf("of the server it says %q", r.err)
		}
	}
	text, err := os.ReadFile("r.sbatch")
	if err = cmp.Or(err, os.WriteFile("r.sbatch", append(text, "# mine\n"...), 0o755)); err != nil {
		t.Fatal(err)
	}
	if r := siafu(args...); r.code != 64 || !strings.Contains(r.err, "r.sbatch: it was edited") {
		t.Errorf("%+v", r)
	}
}

// A configuration file counts for a submission as it does for training.
func TestSubmitConfig(t *testing.T) {
	inFolderWith(t, "data")
	if err := os.WriteFile("c.toml", []byte("out = \"runs/toml\"\nservers = 0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := must(t, "submit", "c.toml", "data", "--ntasks-per-node", "3", "--dry-run", "--partition-job")
	text, err := os.ReadFile("runs/toml-partition.sbatch")
	if err != nil || !strings.Contains(out, "run=runs/toml") || !strings.Contains(string(text), "--parts 3\n") {
		t.Errorf("%q %v %s", out, err, text)
	}
}

func TestStatusCommand(t *testing.T) {
	data, dir := small(t), t.TempDir()
	run := filepath.Join(dir, "runs", "one")
	must(t, "train", data, "--epochs", "4", "--out", run, "--quiet")
	if out := must(t, "status", filepath.Dir(run)); !strings.Contains(out, "done") || !strings.Contains(out, "4/4") {
		t.Errorf("status: %s", out)
	}
	if out := must(t, "status", "--json", filepath.Dir(run)); !strings.Contains(out, `"state": "done"`) || !json.Valid([]byte(out)) {
		t.Errorf("status --json: %s", out)
	}
	if out := must(t, "info", "--json", data); !strings.Contains(out, `"partitionings": [`) ||
		!strings.Contains(out, `"vertices": 200`) || !json.Valid([]byte(out)) {
		t.Errorf("info --json: %s", out)
	}
	if r := siafu("status", filepath.Join(dir, "nothing")); r.code != 66 || r.out != "" {
		t.Errorf("no run: %+v", r)
	}
	two := filepath.Join(dir, "runs", "two")
	must(t, "train", data, "--epochs", "1", "--out", two, "--quiet")
	if err := os.WriteFile(filepath.Join(two, "metrics.jsonl"), []byte("nonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := siafu("status", filepath.Dir(run))
	if r.code != 65 || !strings.Contains(r.out, "4/4") || !strings.Contains(r.out, two+"  damaged") ||
		!strings.Contains(r.out, "metrics.jsonl") || r.err != "" {
		t.Errorf("one of two is damaged: %+v", r)
	}
}

// launch refuses invalid command lines before it starts a process.
func TestLaunchUsage(t *testing.T) {
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"train", "data", "--hiden", "3"}, 64, "--hidden"},
		{[]string{"--", "train", "data", "--lr=-1"}, 64, "--lr"},
		{[]string{"train", "data", "--checkpoint-every", "50"}, 64, "siafu: train: --checkpoint-every"},
		{[]string{"--"}, 64, "it needs a command"},
		{[]string{"--launcher", "ssh", "train", "data"}, 64, "--launcher"},
	} {
		r := siafu(append([]string{"launch", "-n", "2"}, tc.args...)...)
		if r.code != tc.code || !strings.Contains(r.err, tc.says) {
			t.Errorf("%q: exit %d, want %d with %q: %s", tc.args, r.code, tc.code, tc.says, r.err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if r := siafu("launch", "train", "data"); r.code != 66 || !strings.Contains(r.err, "--in-process") {
		t.Errorf("without mpirun: exit %d %s", r.code, r.err)
	}
}

// All paths that a script can contain are accepted; others are refused before anything is
// written.
func TestSubmitNames(t *testing.T) {
	inFolderWith(t, "data", "my graph", "a\nb")
	for _, tc := range []struct {
		data, out string
		has       string // in the script
		says      string // the refusal
	}{
		{"my graph", "runs/my run/", "#SBATCH --output=\"runs/my run-%j.out\"\n", ""},
		{"data", "100%", "#SBATCH --output=100%%-%j.out\n", ""},
		{"data", "-x", "\nrun=./-x\n", ""},
		{"my graph", "run", "#SBATCH --job-name=\"siafu-my graph\"\n", ""},
		{"a\nb", "run", "", "--job-name"},
		{"data", "r\n#SBATCH --nodes=7", "", "--out"},
	} {
		r := siafu("submit", tc.data, "--dry-run", "--", "--out="+tc.out)
		if tc.says == "" && (r.code != 0 || !strings.Contains(r.out, tc.has)) ||
			tc.says != "" && (r.code != 64 || !strings.Contains(r.err, tc.says)) {
			t.Errorf("%q: %+v", tc, r)
		}
	}
	if left, _ := filepath.Glob("r\n*"); left != nil {
		t.Errorf("it has written %q", left)
	}
}

// A script for another batch system is named after it. Flags have the same meaning under their former names.
func TestSubmitSchedulers(t *testing.T) {
	inFolderWith(t, "data")
	for _, tc := range []struct {
		args        []string
		suffix, has string
	}{
		{[]string{"--scheduler", "pbs", "--directive", "-m e", "--queue", "q"}, "pbs", "\n#PBS -q q\n#PBS -m e\n"},
		{[]string{"--scheduler", "lsf", "--slurm-partition", "q"}, "lsf", "\n#BSUB -q q\n"},
		{[]string{"--scheduler", "slurm", "--slurm-partition", "q", "--sbatch", "--mail-type=END"}, "sbatch",
			"\n#SBATCH --partition=q\n#SBATCH --mail-type=END\n"},
		{[]string{"--queue", "q", "--directive", "--mail-type=END"}, "sbatch", "\n#SBATCH --partition=q\n#SBATCH --mail-type=END\n"},
	} {
		out := must(t, slices.Concat([]string{"submit", "data", "--dry-run"}, tc.args, []string{"--", "--out", "r"})...)
		if !strings.Contains(out, tc.has) || !strings.HasSuffix(out, "wrote script=r."+tc.suffix+" run=r\n") {
			t.Errorf("%s: %s", tc.args, out)
		}
	}
}
