package slurm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
)

func plainJob() *Job {
	return &Job{
		Options: Options{Nodes: 2, TasksPerNode: 4, CPUsPerTask: 8, Grace: 120, JobName: "siafu-mine", Launcher: "mpirun", Restarts: 3},
		Self:    "/opt/siafu", Run: "runs/mine", Train: []string{"data/mine", "--epochs", "9"},
		Resume: []string{"--resume", "auto"}, Parts: []string{"data/mine", "--parts", "7"},
	}
}

// The script contains exactly the requested options, and its syntax is valid in bash.
func TestScript(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Job)
		has    []string
		lacks  []string
	}{
		{"plain", func(*Job) {}, []string{
			"#SBATCH --nodes=2\n", "#SBATCH --ntasks-per-node=4\n", "#SBATCH --cpus-per-task=8\n", "#SBATCH --requeue\n",
			"#SBATCH --open-mode=append\n",
			"#SBATCH --output=runs/mine-%j.out\n", "#SBATCH --signal=B:USR1@120\n", "\nrun=runs/mine\n",
			"/opt/siafu launch --restarts 3 \\\n\ttrain data/mine --epochs 9 --threads \"$SLURM_CPUS_PER_TASK\" " +
				"\\\n\t--out \"$run\" --resume auto &\n",
		}, []string{"--time", "--mem", "--account", "--array", "module", "settings", "if_include", "--partition", "--gpus"}},
		{"asked", func(j *Job) {
			j.Time, j.Mem, j.Account, j.QOS, j.Partition = "1-0", "16G", "acct", "long", "cpu"
			j.GPUsPerNode = "a100:2"
			j.Modules, j.Interface, j.Launcher = []string{"openmpi/4", "go"}, "ib0", "srun"
			j.Train = append(j.Train, "--threads=3")
		}, []string{
			"#SBATCH --time=1-0\n", "#SBATCH --mem=16G\n", "#SBATCH --account=acct\n", "#SBATCH --qos=long\n",
			"#SBATCH --gpus-per-node=a100:2\n", "#SBATCH --partition=cpu\n",
			"module load openmpi/4 || { echo", "module load go || { echo", "OMPI_MCA_btl_tcp_if_include=ib0",
			"launch --launcher srun ", "--threads=3 \\\n",
		}, []string{"--threads \""}},
		{"sweep", func(j *Job) { j.Settings = []string{"seed=1 hidden=8", "seed=2 hidden=8"} }, []string{
			"#SBATCH --array=0-1\n", "#SBATCH --output=runs/mine-%A_%a.out\n", "\t\"seed=2 hidden=8\"\n",
			"run=runs/mine/${setting// /,}\n", " --${setting// / --} ",
		}, nil},
		{"container", func(j *Job) { j.Container = "apptainer exec --bind /a b.sif"; j.Train[0] = "it's mine" },
			[]string{"--container 'apptainer exec --bind /a b.sif'", `train 'it'\''s mine' --epochs`}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := plainJob()
			tc.change(j)
			script := j.Script()
			for _, want := range tc.has {
				if !strings.Contains(script, want) {
					t.Errorf("%q is missing", want)
				}
			}
			for _, no := range tc.lacks {
				if strings.Contains(script, no) {
					t.Errorf("%q was not asked for", no)
				}
			}
			for _, text := range []string{script, j.PartitionScript()} {
				parse := exec.Command("bash", "-n")
				parse.Stdin = strings.NewReader(text)
				if out, err := parse.CombinedOutput(); err != nil {
					t.Errorf("%v %s", err, out)
				}
			}
			if t.Failed() {
				t.Log(script)
			}
		})
	}
}

func TestPartitionScript(t *testing.T) {
	j := plainJob()
	if s := j.PartitionScript(); !strings.HasSuffix(s, "\n/opt/siafu partition data/mine --parts 7\n") {
		t.Error(s)
	}
	j.Container, j.Modules = "apptainer exec b.sif", []string{"apptainer"}
	if s := j.PartitionScript(); !strings.HasSuffix(s, "\nmodule load apptainer || { echo \"siafu: module apptainer was not loaded on "+
		"$(hostname)\" >&2; exit 78; }\napptainer exec b.sif siafu partition data/mine --parts 7\n") {
		t.Error(s)
	}
}

// A word comes out of a shell as it went in.
func TestQuote(t *testing.T) {
	words := []string{"plain", "two words", "it's", `"$HOME"`, "*", "", "a\nb", "`x`"}
	out, err := exec.Command("bash", "-c", "printf '%s|' "+Quote(words...)).Output()
	if want := strings.Join(words, "|") + "|"; err != nil || string(out) != want {
		t.Errorf("%q, want %q: %v", out, want, err)
	}
}

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		change func(*Options)
		says   string
	}{
		{func(o *Options) {}, ""},
		{func(o *Options) { o.Time = "00:02:01" }, ""},
		{func(o *Options) { o.Time = "2" }, "not longer than --grace=120"},
		{func(o *Options) { o.Time = "1-00" }, ""},
		{func(o *Options) { o.Time = "later" }, "--time"},
		{func(o *Options) { o.Time = "1:2:3:4" }, "--time"},
		{func(o *Options) { o.Nodes = 0 }, "--nodes"},
		{func(o *Options) { o.Account = "x\n#SBATCH --uid=0" }, "--account"},
		{func(o *Options) { o.Modules = []string{"a; b"} }, "--module"},
	} {
		o := plainJob().Options
		tc.change(&o)
		err := o.Validate()
		if tc.says == "" && err != nil ||
			tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says) || fault.KindOf(err) != fault.Usage) {
			t.Errorf("%v, want %q", err, tc.says)
		}
	}
}

func TestSettings(t *testing.T) {
	for _, tc := range []struct {
		array []string
		want  string // "error" is one
	}{
		{nil, ""},
		{[]string{"seed=1,2,3"}, "seed=1|seed=2|seed=3"},
		{[]string{"--hidden=64,128", "lr=1e-2,0.1"}, "hidden=64 lr=1e-2|hidden=64 lr=0.1|hidden=128 lr=1e-2|hidden=128 lr=0.1"},
		{[]string{"seed"}, "error"},
		{[]string{"seed="}, "error"},
		{[]string{"seed=1,,2"}, "error"},
		{[]string{"out=$(x)"}, "error"},
	} {
		o := Options{Array: tc.array}
		got, err := o.Settings()
		if (err != nil) != (tc.want == "error") || err == nil && strings.Join(got, "|") != tc.want {
			t.Errorf("%q: %q %v, want %q", tc.array, got, err, tc.want)
		}
	}
}

// A dry run leaves the scripts and no record; sbatch is not needed.
func TestDryRun(t *testing.T) {
	t.Setenv("PATH", "")
	j := plainJob()
	j.Run, j.DryRun, j.PartitionJob = filepath.Join(t.TempDir(), "runs", "x"), true, true
	r, err := j.Submit()
	if err != nil || r.Script != j.Run+".sbatch" || r.Job != "" {
		t.Fatalf("%+v %v", r, err)
	}
	for name, want := range map[string]bool{".sbatch": true, "-partition.sbatch": true, ".job": false} {
		if _, err := os.Stat(j.Run + name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	j.DryRun = false
	if _, err := j.Submit(); fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "--dry-run") {
		t.Errorf("without Slurm: %v", err)
	}
}

// sbatch's answers become a record, its refusal a fault with its words.
func TestSubmit(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	fake := "#!/bin/sh\necho \"$@\" >>" + bin + "/calls\n[ -e " + bin +
		"/refuse ] && { echo 'sbatch: error: invalid account' >&2; exit 1; }\necho '41;cluster'\n"
	hosttest.Program(t, filepath.Join(bin, "sbatch"), fake)
	j := plainJob()
	j.Run, j.PartitionJob, j.Settings = filepath.Join(t.TempDir(), "x"), true, []string{"seed=1", "seed=2"}
	r, err := j.Submit()
	calls, _ := os.ReadFile(filepath.Join(bin, "calls"))
	if err != nil || r.Job != "41" || r.PartitionJob != "41" || len(r.Runs) != 2 || r.Runs[1] != j.Run+"/seed=2" {
		t.Errorf("%+v %v", r, err)
	}
	if !strings.Contains(string(calls), "--parsable --dependency=afterok:41 --kill-on-invalid-dep=yes "+j.Run+".sbatch\n") {
		t.Errorf("calls: %s", calls)
	}
	if err := os.WriteFile(filepath.Join(bin, "refuse"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Submit(); fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "invalid account") {
		t.Errorf("refused: %v", err)
	}
}

func TestCheck(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte("n1\nn1\nn2\nn2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name       string
		env        map[string]string
		size, cpus int
		says       []string
	}{
		{"no job", map[string]string{"SLURM_NTASKS": "4"}, 1, 1, nil},
		{"as given", map[string]string{"SLURM_JOB_ID": "1", "SLURM_NTASKS": "4", "SLURM_CPUS_PER_TASK": "2"}, 4, 2, nil},
		{"no launcher", map[string]string{"SLURM_JOB_ID": "1", "SLURM_NTASKS": "4"}, 1, 8, []string{"4 tasks, but the world has one rank"}},
		{"too few", map[string]string{"SLURM_JOB_ID": "1", "SLURM_NTASKS": "4"}, 2, 8, []string{"the other tasks are idle"}},
		{"bound", map[string]string{"SLURM_JOB_ID": "1", "SLURM_NTASKS": "4", "SLURM_CPUS_PER_TASK": "8"}, 4, 1,
			[]string{"may run on 1: with mpirun use --bind-to none"}},
		{"both", map[string]string{"SLURM_JOB_ID": "1", "SLURM_NTASKS": "4", "SLURM_CPUS_PER_TASK": "8"}, 1, 1,
			[]string{"one rank", "8 processors"}},
		{"no PMIx", map[string]string{"SLURM_JOB_ID": "1", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0"}, 4, 2,
			[]string{"use srun --mpi=pmix"}},
		{"PMIx", map[string]string{"SLURM_JOB_ID": "1", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4", "PMIX_RANK": "0"}, 4, 2, nil},
		{"PBS with one rank", map[string]string{"PBS_JOBID": "1.s", "PBS_NODEFILE": hosts}, 1, 4,
			[]string{"PBS gave this job slots for 4 ranks on 2 hosts, but the world has 1: start siafu with siafu launch"}},
		{"PBS", map[string]string{"PBS_JOBID": "1.s", "PBS_NODEFILE": hosts}, 4, 4, nil},
		{"LSF on one host", map[string]string{"LSB_JOBID": "1", "LSB_MCPU_HOSTS": "n1 48"}, 1, 48, nil},
		{"nonsense", map[string]string{"SLURM_JOB_ID": "1", "SLURM_NTASKS": "-4", "SLURM_CPUS_PER_TASK": "x"}, 1, 1, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Check(func(name string) string { return tc.env[name] }, tc.size, tc.cpus)
			if len(got) != len(tc.says) {
				t.Fatalf("%q, want %q", got, tc.says)
			}
			for i, want := range tc.says {
				if !strings.Contains(got[i], want) {
					t.Errorf("%q lacks %q", got[i], want)
				}
			}
		})
	}
}
