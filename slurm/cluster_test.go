//go:build mpi

package slurm

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
	"siafu/ranks/runfolder"
)

// cluster starts a Slurm cluster of two nodes with 16 imagined processors each,
// and points Slurm's commands to it.
func cluster(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start Slurm's daemons")
	}
	for _, name := range []string{"munged", "slurmctld", "slurmd", "sbatch", "mpirun"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("no %s on this machine: install slurm-wlm, munge and openmpi-bin", name)
		}
	}
	dir, err := os.MkdirTemp("", "slurm") // short, for the sake of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cmd := exec.Command("testdata/cluster", dir, fmt.Sprint(freePort(t)), "16")
	cmd.Stderr = os.Stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if errIn != nil || errOut != nil || cmd.Start() != nil {
		t.Fatal("the cluster does not start")
	}
	t.Setenv("SLURM_CONF", filepath.Join(dir, "slurm.conf"))
	t.Cleanup(func() {
		empty(t)
		in.Close()
		_ = cmd.Wait() // its daemons were told to end
	})
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		logs, _ := exec.Command("sh", "-c", "tail -n 20 "+dir+"/*.log "+dir+"/*.out").Output()
		t.Fatalf("the cluster is not ready: %q\n%s", line, logs)
	}
}

// freePort returns the first of three ports that are free, and that the system does
// not give to connections meanwhile: those begin at 32768.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20_000 + rand.IntN(12_000)
		free := true
		for p := port; p < port+3; p++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if err != nil {
				free = false
				continue
			}
			l.Close()
		}
		if free {
			return port
		}
	}
	t.Fatal("no three free ports")
	return 0
}

// empty cancels what is left and waits for the processes to end.
func empty(t *testing.T) {
	_ = exec.Command("scancel", "--user=root").Run()
	for range 100 {
		if out, err := exec.Command("squeue", "--noheader").Output(); err != nil || len(out) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("jobs are left")
}

// scene is one run in the cluster.
type scene struct {
	*testing.T
	run string
	id  string
	job *Job
}

// sharedDir returns a temporary folder that other users can enter.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// begin submits a job as "siafu submit" does, but that its ranks are a stand-in
// for training.
func begin(t *testing.T, change func(*Job), train ...string) *scene {
	t.Helper()
	siafu, standin := hosttest.Programs(t)
	s := &scene{T: t, run: filepath.Join(sharedDir(t), "run")}
	j := &Job{
		Options: Options{Nodes: 1, TasksPerNode: 4, CPUsPerTask: 1, JobName: "test", Grace: 50, Launcher: "mpirun",
			Restarts: 2, Program: standin},
		Self: siafu, Run: s.run, Train: append([]string{"data"}, train...), Resume: []string{"--resume", "auto"},
	}
	if change != nil {
		change(j)
	}
	r, err := j.Submit()
	if err != nil {
		t.Fatal(err)
	}
	s.id, s.job = r.Job, j
	return s
}

// log returns the output of the substitute and of the batch script.
func (s *scene) log() string {
	var all strings.Builder
	for _, pattern := range []string{s.run + "/log", s.run + "/*/log", s.run + "-*.out"} {
		paths, _ := filepath.Glob(pattern)
		for _, p := range paths {
			text, _ := os.ReadFile(p)
			all.Write(text)
		}
	}
	return all.String()
}

// entries returns the batch system's records of the job. In PBS, a run that was stopped has a newer job.
func (s *scene) entries() (all []Entry, err error) {
	if s.job == nil || s.job.Scheduler != "pbs" {
		return Queue("slurm", s.id)
	}
	for task, run := range s.job.runs() {
		list, errQueue := Record{Job: s.id, Scheduler: "pbs"}.entries(run, Queue)
		if e, ok := entryOf(list, task); ok {
			all = append(all, e)
		} else if err = errQueue; err == nil {
			err = fmt.Errorf("%s has no task %d: %+v", s.id, task, list)
		}
	}
	return all, err
}

// over tells whether no task of the job will run any more.
func (s *scene) over() bool {
	list, err := s.entries()
	for _, e := range list {
		switch phase(e, true) {
		case Failed, Cancelled: // COMPLETED is Failed for a run without a summary
		default:
			return false
		}
	}
	return err == nil
}

// await waits until the log matches.
func (s *scene) await(pattern string) {
	s.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		over := s.over()
		if re.MatchString(s.log()) {
			return
		}
		if over {
			break
		}
	}
	list, err := s.entries()
	s.Fatalf("%q does not come: job %+v %v\n%s", pattern, list, err, s.log())
}

// ends waits for the job's last state.
func (s *scene) ends(want string) []Entry {
	s.Helper()
	for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline) && !s.over(); time.Sleep(100 * time.Millisecond) {
	}
	list, err := s.entries()
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range list {
		if e.State != want {
			s.Errorf("job %s is %s, want %s:\n%s", e.ID, e.State, want, s.log())
		}
	}
	return list
}

func client0(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := slurm.run(nil, name, args...); err != nil {
		t.Fatalf("%v %s", err, out)
	}
}

// The script that submit writes, unchanged, in a real Slurm.
func TestScriptInSlurm(t *testing.T) {
	cluster(t)
	lesson := newLesson(t)
	// Slurm looks at limits twice a minute: this job runs beside the others, its
	// epochs are slow, so that some are left when the others have ended, and these need no job.
	limited := lesson.begin(t, "2s", func(j *Job) { j.Time, j.Grace = "00:01:00", 59 })
	t.Run("together", func(t *testing.T) {
		for _, launcher := range []string{"mpirun", "srun"} {
			use := func(j *Job) { j.Launcher = launcher }
			t.Run(launcher+" to the end", func(t *testing.T) {
				t.Parallel()
				s := begin(t, use)
				s.ends("COMPLETED")
				s.await(`^start epoch=1 ranks=4 .*\nfinished\n`)
			})
			t.Run(launcher+" stopped by USR1", func(t *testing.T) {
				t.Parallel()
				s := begin(t, use, "--until-stopped", "yes")
				s.await("start epoch=1 ")
				time.Sleep(300 * time.Millisecond)
				client0(t, "scancel", "--batch", "--signal=USR1", s.id)
				s.await(`start epoch=1 (.|\n)*stopped after=(\d+)\nstart epoch=([2-9]|\d\d+) (.|\n)*\nfinished`)
				if list := s.ends("COMPLETED"); list[0].Restarts != 1 {
					t.Errorf("it was restarted %d times", list[0].Restarts)
				}
			})
		}
		t.Run("training stopped by USR1", func(t *testing.T) {
			t.Parallel()
			s := lesson.begin(t, "50ms", nil)
			s.await("\nepoch=1/")
			client0(t, "scancel", "--batch", "--signal=USR1", s.id)
			if list := s.ends("COMPLETED"); list[0].Restarts != 1 {
				t.Errorf("it was restarted %d times", list[0].Restarts)
			}
			lesson.learnt(s, s.run)
		})
		t.Run("array", func(t *testing.T) {
			t.Parallel()
			s := lesson.begin(t, "20ms", func(j *Job) {
				j.Array, j.Settings = []string{"seed=1,2%1"}, []string{"seed=1 epochs=9", "seed=2 epochs=30"}
			})
			s.ends("COMPLETED")
			lesson.learnt(s, filepath.Join(s.run, "seed=2,epochs=30"), "--seed", "2")
			if r, err := runfolder.Read(filepath.Join(s.run, "seed=1,epochs=9")); err != nil || r.Summary.Epochs != 9 {
				t.Errorf("%+v %v", r, err)
			}
		})
		for _, launcher := range []string{"mpirun", "srun"} {
			t.Run(launcher+" with GPUs", func(t *testing.T) {
				t.Parallel()
				s := begin(t, func(j *Job) { j.Launcher, j.GPUsPerNode = launcher, "none:1" })
				s.ends("COMPLETED")
				s.await(`^start epoch=1 ranks=4 gpus=1 `)
			})
		}
		t.Run("more GPUs than there are", func(t *testing.T) {
			t.Parallel()
			j := &Job{Options: Options{Nodes: 1, TasksPerNode: 4, CPUsPerTask: 1, JobName: "test", Grace: 50, Launcher: "mpirun",
				GPUsPerNode: "3"}, Self: "/siafu", Run: filepath.Join(t.TempDir(), "run"), Train: []string{"data"}}
			if _, err := j.Submit(); fault.KindOf(err) != fault.Config ||
				!strings.Contains(err.Error(), "node configuration is not available") {
				t.Errorf("%v", err)
			}
		})
		t.Run("crash", func(t *testing.T) {
			t.Parallel()
			s := begin(t, nil, "--crash-at", "5")
			s.ends("COMPLETED")
			says := `signal 9 \(killed\): rank 3 on .*; `
			if !mpitest.OpenMPI() {
				says = ""
			}
			s.await(`start epoch=1 (.|\n)*start epoch=5 (.|\n)*finished(.|\n)*` + says + `restart 1 of 2 in `)
		})
		t.Run("cancelled", func(t *testing.T) {
			t.Parallel()
			s := begin(t, nil, "--epochs", "600")
			s.await("start epoch=1 ")
			if _, err := s.job.Submit(); fault.KindOf(err) != fault.Usage ||
				!strings.Contains(err.Error(), "job "+s.id+" (RUNNING) uses this run folder") {
				t.Errorf("a second job for the same run folder: %v", err)
			}
			client0(t, "scancel", s.id)
			s.await("stopped after=")
			s.ends("CANCELLED")
		})
		t.Run("launcher killed", func(t *testing.T) {
			t.Parallel()
			launcherKilled(t)
		})
		t.Run("no such module", func(t *testing.T) {
			t.Parallel()
			s := begin(t, func(j *Job) { j.Modules = []string{"none/1.0"} })
			s.ends("FAILED")
			s.await("siafu: module none/1.0 was not loaded on ")
		})
		t.Run("nasty names", func(t *testing.T) {
			t.Parallel()
			nastyNames(t)
		})
		t.Run("after partitioning", func(t *testing.T) {
			t.Parallel()
			s := begin(t, func(j *Job) { j.PartitionJob, j.Parts = true, []string{"nowhere", "--parts", "3"} })
			s.ends("CANCELLED") // there is nothing to partition, and nobody waits for it
		})
	})
	t.Run("as the tutorial has it", func(t *testing.T) {
		page, err := filepath.Abs("../docs/tutorials/slurm-array.md")
		if err != nil {
			t.Fatal(err)
		}
		siafu, _ := hosttest.Programs(t)
		t.Chdir(t.TempDir())
		hosttest.Follow(t, page, siafu)
	})
	t.Run("time limit", func(t *testing.T) {
		limited.await("\nresume epoch=")
		client0(t, "scancel", limited.id)
		limited.ends("CANCELLED")
		lesson.must(t, slices.Concat([]string{"train"}, lesson.flags(),
			[]string{"--ranks", "4", "--out", limited.run, "--resume", "auto"})...)
		lesson.learnt(limited, limited.run)
	})
	t.Run("preempted", func(t *testing.T) {
		// Ranks of the two nodes are on one host and would take the same memory
		// for their own.
		t.Setenv("OMPI_MCA_btl", "self,tcp")
		t.Setenv("OMPI_MCA_btl_tcp_if_include", "lo")
		low := []*scene{
			begin(t, func(j *Job) { j.Launcher = "srun" }, "--until-stopped", "yes"),
			begin(t, func(j *Job) { j.Nodes, j.TasksPerNode, j.Partition, j.Interface = 2, 2, "pair", "lo" }, "--until-stopped", "yes"),
		}
		training := lesson.begin(t, "50ms", nil)
		for _, s := range low {
			s.await("start epoch=1 ")
		}
		training.await("\nepoch=1/")
		time.Sleep(300 * time.Millisecond)
		client0(t, "sbatch", "--partition=high", "--ntasks=16", "--output=/dev/null", "--wrap=sleep 1")
		for _, s := range low {
			s.await(`start epoch=1 (.|\n)*stopped after=(\d+)\nstart epoch=([2-9]|\d\d+) (.|\n)*\nfinished`)
			s.ends("COMPLETED")
		}
		training.ends("COMPLETED")
		training.await("\nresume epoch=")
		lesson.learnt(training, training.run)
	})
}
