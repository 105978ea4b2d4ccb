package slurm

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
)

// jobOf returns plainJob for a batch system, with all resources.
func jobOf(scheduler string) *Job {
	j := plainJob()
	j.Scheduler, j.Time, j.Mem, j.Account, j.Partition = scheduler, "1-0", "16G", "acct", "long"
	j.GPUsPerNode, j.Modules, j.Interface = "2", []string{"openmpi/4"}, "ib0"
	return j
}

// Scripts for PBS and LSF have the directives of their manuals, and their syntax is valid in bash.
func TestScriptsOfSchedulers(t *testing.T) {
	sweep := func(j *Job) { j.Settings, j.Array = []string{"seed=1", "seed=2"}, []string{"seed=1,2%1"} }
	for _, tc := range []struct {
		name, scheduler string
		change          func(*Job)
		has, lacks      []string
	}{
		{"plain", "pbs", func(j *Job) { *j = *plainJob(); j.Scheduler = "pbs" }, []string{
			"#!/bin/bash\n#PBS -N siafu-mine\n#PBS -S /bin/bash\n#PBS -l select=2:ncpus=32:mpiprocs=4\n#PBS -l place=scatter\n#PBS -V\n" +
				"#PBS -r y\n#PBS -j oe\n#PBS -o /dev/null\n\n# Written by",
			"\nexec >>runs/mine-\"${job%%[.[]*}\".out 2>&1\n", "--threads \"8\"", "\nexport OMP_NUM_THREADS=8\n",
			"\tqsub -v \"SIAFU_JOB=$job\" runs/mine.pbs >\"$run.job.new\" &&\n\t\tmv \"$run.job.new\" \"$run.job.next\" ||\n",
		}, []string{"sleep", "walltime", "SLURM", "SBATCH", "settings"}},
		{"asked", "pbs", func(j *Job) { j.Directive = []string{"-m e", "-l software=x"} }, []string{
			"#PBS -l select=2:ncpus=32:mpiprocs=4:ngpus=2:mem=16Gb\n#PBS -l place=scatter\n#PBS -l walltime=86400\n#PBS -q long\n" +
				"#PBS -A acct\n#PBS -m e\n#PBS -l software=x\n#PBS -V\n",
			"{ sleep 86280; kill -URG $$; } &\n",
		}, nil},
		{"sweep", "pbs", sweep, []string{
			"#PBS -J 0-1%1\n", "setting=${settings[$PBS_ARRAY_INDEX]}\n", "}_$PBS_ARRAY_INDEX\".out 2>&1\n",
			" -J \"$PBS_ARRAY_INDEX-$((PBS_ARRAY_INDEX + 1)):2\" runs/mine.pbs ",
		}, nil},
		{"sweep of one", "pbs", func(j *Job) { j.Settings = []string{"seed=1"} }, []string{"#PBS -J 0-1:2\n"}, nil},
		{"plain", "lsf", func(j *Job) { *j = *plainJob(); j.Scheduler = "lsf" }, []string{
			"#!/bin/bash\n#BSUB -J \"siafu-mine\"\n#BSUB -n 64\n#BSUB -R \"span[ptile=32]\"\n#BSUB -r\n#BSUB -o /dev/null\n\n# Written by",
			"\nexec >>runs/mine-\"$LSB_JOBID\".out 2>&1\n", "\tbrequeue \"$LSB_JOBID\"\n",
		}, []string{"-wa", "rusage", "SLURM", "SBATCH", "settings"}},
		{"asked", "lsf", func(j *Job) { j.Mem, j.Grace, j.Directive = "4000", 121, []string{`-R "select[mem>1]"`} }, []string{
			"#BSUB -gpu \"num=2/host\"\n#BSUB -R \"rusage[mem=4000MB/host]\"\n#BSUB -W 1440\n#BSUB -q long\n#BSUB -P acct\n" +
				"#BSUB -wa USR1\n#BSUB -wt 3\n#BSUB -R \"select[mem>1]\"\n#BSUB -r\n",
		}, nil},
		{"sweep", "lsf", sweep, []string{
			"#BSUB -J \"siafu-mine[1-2]%1\"\n", "setting=${settings[LSB_JOBINDEX - 1]}\n",
			"\nexec >>runs/mine-\"$LSB_JOBID\"_\"$LSB_JOBINDEX\".out 2>&1\n", "\tbrequeue \"$LSB_JOBID[$LSB_JOBINDEX]\"\n",
		}, nil},
	} {
		t.Run(tc.scheduler+" "+tc.name, func(t *testing.T) {
			j := jobOf(tc.scheduler)
			tc.change(j)
			if err := j.Validate(); err != nil {
				t.Fatal(err)
			}
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

// The script of LSF handles its signals and is queued again as it should be, with programs in the place of siafu and
// brequeue.
func TestScriptOfLSFStops(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	for _, tc := range []struct {
		signal, next string
	}{{"USR1", "brequeue 7[2]"}, {"INT", ""}, {"TERM", ""}} {
		t.Run(tc.signal, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			siafu := filepath.Join(dir, "siafu")
			hosttest.Program(t, siafu, "#!/bin/bash\ntrap 'kill $!; exit 75' TERM\nsleep 600 &\necho up >"+dir+"/up\nwait\n")
			hosttest.Program(t, filepath.Join(dir, "brequeue"), "#!/bin/sh\necho brequeue $* >>"+dir+"/again\n")
			j := plainJob()
			j.Scheduler, j.Self, j.Run = "lsf", siafu, filepath.Join(dir, "run")
			j.Settings = []string{"seed=1", "seed=2"}
			cmd := exec.Command(bash)
			cmd.Stdin = strings.NewReader(j.Script())
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "LSB_JOBID=7", "LSB_JOBINDEX=2")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(hosttest.Patience); ; time.Sleep(10 * time.Millisecond) {
				if _, err := os.Stat(dir + "/up"); err == nil {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the ranks do not start")
				}
			}
			time.Sleep(100 * time.Millisecond) // the script sets its traps after it has started the ranks
			if out, err := exec.Command("sh", "-c", "kill -"+tc.signal+" $0", strconv.Itoa(cmd.Process.Pid)).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 75 {
				t.Errorf("exit code %d", cmd.ProcessState.ExitCode())
			}
			again, _ := os.ReadFile(dir + "/again")
			if strings.TrimSpace(string(again)) != tc.next {
				t.Errorf("it is queued again by %q, want %q", again, tc.next)
			}
			if logs, _ := filepath.Glob(dir + "/run-*.out"); len(logs) != 1 || filepath.Base(logs[0]) != "run-7_2.out" {
				t.Errorf("its logs are %q", logs)
			}
		})
	}
}

func TestRefusedByScheduler(t *testing.T) {
	for _, tc := range []struct {
		scheduler string
		change    func(*Job)
		says      string
	}{
		{"pbs", func(j *Job) { j.QOS = "long" }, "PBS has no --qos"},
		{"lsf", func(j *Job) { j.Launcher = "srun" }, "LSF has no --launcher srun"},
		{"pbs", func(j *Job) { j.GPUsPerNode = "a100:2" }, "PBS has no --gpus-per-node TYPE:N"},
		{"pbs", func(j *Job) { j.Directive = []string{"-l walltime=3"} }, `--directive has "-l walltime=3"`},
		{"pbs", func(j *Job) { j.Directive = []string{"--gres=gpu:1"} }, "write each directive of PBS as -x or -x VALUE"},
		{"pbs", func(j *Job) { j.Directive = []string{"-m e\n#PBS -q x"} }, "--directive has"},
		{"lsf", func(j *Job) { j.Directive = []string{"-W 3"} }, `--directive has "-W 3"`},
		{"lsf", func(j *Job) { j.Directive = []string{`-R "$(x)"`} }, "--directive has"},
		{"lsf", func(j *Job) { j.Directive = []string{"-R \"a\nb\""} }, "--directive has"},
	} {
		j := jobOf(tc.scheduler)
		tc.change(j)
		if err := j.Validate(); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%v, want %q", err, tc.says)
		}
	}
	for _, name := range []string{"two words", "it's", "-x", "", strings.Repeat("x", 300)} {
		j := plainJob()
		j.Scheduler, j.JobName, j.Run, j.DryRun = "pbs", name, filepath.Join(t.TempDir(), "run"), true
		if _, err := j.Submit(); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "PBS does not allow the job name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The first batch system with a submission command is the default, and a note names the others. A qsub of another
// batch system is not PBS's.
func TestChooseScheduler(t *testing.T) {
	pbsVersion := "echo pbs_version = 23.06.06"
	for _, tc := range []struct {
		name     string
		commands map[string]string
		want     string
		note     string
	}{
		{"none", nil, "slurm", ""},
		{"PBS", map[string]string{"qsub": pbsVersion}, "pbs", ""},
		{"Grid Engine", map[string]string{"qsub": "echo GE 6.2u5"}, "slurm", ""},
		{"LSF", map[string]string{"bsub": ""}, "lsf", ""},
		{"two", map[string]string{"qsub": pbsVersion, "sbatch": ""}, "slurm", "--scheduler slurm is used of slurm, pbs"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bin := t.TempDir()
			for name, text := range tc.commands {
				hosttest.Program(t, filepath.Join(bin, name), "#!/bin/sh\n"+text+"\n")
			}
			t.Setenv("PATH", bin)
			var o Options
			if note := o.ChooseScheduler(); o.Scheduler != tc.want || (note != "") != (tc.note != "") || !strings.Contains(note, tc.note) {
				t.Errorf("%s with the note %q", o.Scheduler, note)
			}
			given := Options{Scheduler: "lsf"}
			if note := given.ChooseScheduler(); given.Scheduler != "lsf" || note != "" {
				t.Errorf("%s with the note %q", given.Scheduler, note)
			}
		})
	}
}

// The answers of qsub and bsub become records.
func TestSubmitToSchedulers(t *testing.T) {
	for scheduler, tc := range map[string]struct {
		command, answer string
		job, log        string
		call            string // of the second job, with its script as RUN
	}{
		"pbs": {"qsub", "41[].server", "41[].server", "-41_*.out", "-W depend=afterok:41[].server RUN.pbs"},
		"lsf": {"bsub", "Job <41> is submitted to queue <normal>.", "41", "-41_*.out", "-w done(41) -ti"},
	} {
		t.Run(scheduler, func(t *testing.T) {
			bin := t.TempDir()
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			hosttest.Program(t, filepath.Join(bin, tc.command),
				"#!/bin/sh\necho \"$@\" >>"+bin+"/calls\ncat >>"+bin+"/scripts\necho '"+tc.answer+"'\n")
			j := plainJob()
			j.Scheduler, j.Run, j.PartitionJob, j.Settings = scheduler, filepath.Join(t.TempDir(), "x"), true, []string{"seed=1", "seed=2"}
			if err := os.WriteFile(j.Run+nextSuffix, []byte("1"), 0o644); err != nil {
				t.Fatal(err)
			}
			j.Settings = nil
			r, err := j.Submit()
			if err != nil || r.Job != tc.job || r.PartitionJob != tc.job || r.Scheduler != scheduler || r.Script != j.Run+"."+scheduler {
				t.Errorf("%+v %v", r, err)
			}
			calls, _ := os.ReadFile(filepath.Join(bin, "calls"))
			lines := strings.Split(strings.TrimSuffix(string(calls), "\n"), "\n")
			if len(lines) != 2 || lines[1] != strings.ReplaceAll(tc.call, "RUN", j.Run) {
				t.Errorf("calls: %q", lines)
			}
			scripts, _ := os.ReadFile(filepath.Join(bin, "scripts"))
			if given := string(scripts) == j.PartitionScript()+j.Script(); given != (scheduler == "lsf") {
				t.Errorf("its standard input is %q", scripts)
			}
			if r.jobOf(j.Run) != tc.job {
				t.Errorf("a file of an earlier job is left: %s", r.jobOf(j.Run))
			}
			j.Settings = []string{"seed=1"}
			if got := j.Log(r.Job); got != j.Run+tc.log {
				t.Errorf("the log is %s", got)
			}
			hosttest.Program(t, filepath.Join(bin, tc.command), "#!/bin/sh\necho thanks\n")
			j.Run, j.PartitionJob = filepath.Join(t.TempDir(), "y"), false
			if _, err := j.Submit(); err == nil || !strings.Contains(err.Error(), "the answer has no job number") {
				t.Errorf("%v", err)
			}
			t.Setenv("PATH", "")
			j.Run = filepath.Join(t.TempDir(), "z")
			if _, err := j.Submit(); fault.KindOf(err) != fault.Missing ||
				!strings.Contains(err.Error(), "this machine has no "+j.system().title) {
				t.Errorf("%v", err)
			}
		})
	}
}

// The answer is one of OpenPBS 23.06, shortened.
func TestParsePBS(t *testing.T) {
	got, err := parsePBS(`{"timestamp":1,"pbs_version":"23.06.06","pbs_server":"s","Jobs":{
		"6[].s":{"job_state":"B","substate":41,"array":"True"},
		"6[0].s":{"job_state":"X","substate":92,"Exit_status":0,"run_count":1},
		"6[1].s":{"job_state":"R","substate":42,"run_count":2,"Variable_List":{"PIP_DEFAULT_TIMEOUT":180,"HOME":"/root"}},
		"6[2].s":{"job_state":"Q","substate":10,"comment":"Not Running: Insufficient amount of resource: ncpus "},
		"7.s":{"job_state":"F","substate":91,"Exit_status":271,"run_count":1},
		"8.s":{"job_state":"F","substate":92},
		"9.s":{"job_state":"F","substate":93,"Exit_status":78,"run_count":1},
		"10.s":{"job_state":"E","substate":51,"Exit_status":0,"run_count":1},
		"11.s":{"job_state":"S","substate":45,"run_count":1}}}`)
	slices.SortFunc(got, func(a, b Entry) int { return strings.Compare(a.ID, b.ID) })
	want := []Entry{
		{"10.s", -1, "COMPLETING", "None", 0}, {"11.s", -1, "SUSPENDED", "None", 0}, {"6[0].s", 0, "COMPLETED", "None", 0},
		{"6[1].s", 1, "RUNNING", "None", 1}, {"6[2].s", 2, "PENDING", "Not Running: Insufficient amount of resource: ncpus", 0},
		{"6[].s", -1, "RUNNING", "None", 0}, {"7.s", -1, "CANCELLED", "None", 0}, {"8.s", -1, "CANCELLED", "None", 0},
		{"9.s", -1, "FAILED", "None", 0},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v %v\nwant %+v", got, err, want)
	}
	if _, err := parsePBS("Job Id: 7.s"); fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "JSON") {
		t.Errorf("%v", err)
	}
}

func TestParseLSF(t *testing.T) {
	got := parseLSF("7|0|RUN|-\n8|1|PEND|-\n8|2|DONE|-\n9|0|EXIT|TERM_OWNER: job killed by owner\n10|0|EXIT|TERM_RUNLIMIT: job killed\n" +
		"Job <11> is not found\n")
	want := []Entry{
		{"7", -1, "RUNNING", "RUN", 0}, {"8[1]", 0, "PENDING", "PEND", 0}, {"8[2]", 1, "COMPLETED", "DONE", 0},
		{"9", -1, "CANCELLED", "EXIT", 0}, {"10", -1, "FAILED", "EXIT", 0},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// The status of a run of PBS is that of its newest job, and a name may be a job of PBS.
func TestStatusOfNextJob(t *testing.T) {
	t.Chdir(t.TempDir())
	lay(t, "runs", map[string]string{
		"sweep.job":                `{"job":"12[].server","scheduler":"pbs","runs":["runs/sweep/seed=1","runs/sweep/seed=2"],"array":true}`,
		"sweep/seed=2/config.toml": "epochs = 12\n", "sweep/seed=2/metrics.jsonl": twoEpochs, "sweep/seed=2.job.next": "13[].server\n",
	})
	queue := map[string][]Entry{
		"12[].server": {{"12[0].server", 0, "PENDING", "None", 0}, {"12[1].server", 1, "FAILED", "None", 0}},
		"13[].server": {{"13[1].server", 1, "PENDING", "Held", 0}},
	}
	ask := func(scheduler, id string) ([]Entry, error) {
		if scheduler != "pbs" {
			t.Errorf("%s is asked", scheduler)
		}
		return queue[id], nil
	}
	for _, name := range []string{"runs", "12", "12.server", "12[].server"} {
		list, err := Watch{ask, time.Now()}.All([]string{name})
		if err != nil || len(list) != 2 || list[0].Phase != Queued || list[1].Phase != Requeued ||
			list[1].Job != "13[1].server PENDING (Held)" {
			t.Errorf("%s: %+v %v", name, list, err)
		}
	}
	j := plainJob()
	j.Run, j.Settings = "runs/sweep", []string{"seed=1", "seed=2"}
	queue["12[].server"] = nil
	if err := j.alive(ask); err == nil || !strings.Contains(err.Error(), "job 13[].server (PENDING) uses this run folder") ||
		!strings.Contains(err.Error(), "(qdel 13[].server)") {
		t.Errorf("%v", err)
	}
}

// A run whose job ends while it is queried, and continues in another one, has not ended.
func TestNextJobWhileAsked(t *testing.T) {
	t.Chdir(t.TempDir())
	lay(t, "runs", map[string]string{"x.job": `{"job":"1.s","scheduler":"pbs","runs":["runs/x"]}`})
	ask := func(_, id string) ([]Entry, error) {
		if id == "2.s" {
			return []Entry{{"2.s", -1, "RUNNING", "None", 0}}, nil
		}
		return []Entry{{"1.s", -1, "FAILED", "None", 0}}, os.WriteFile("runs/x"+nextSuffix, []byte("2.s\n"), 0o644)
	}
	list, err := Watch{ask, time.Now()}.All([]string{"runs"})
	if err != nil || len(list) != 1 || list[0].Phase != Running || list[0].Job != "2.s RUNNING" {
		t.Errorf("%+v %v", list, err)
	}
}
