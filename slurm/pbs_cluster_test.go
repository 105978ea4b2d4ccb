//go:build mpi

package slurm

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
	"siafu/ranks/runfolder"
)

// pbsCluster starts an OpenPBS cluster of two nodes with 32 imagined processors each, and puts PBS's commands on the
// PATH.
func pbsCluster(t *testing.T) {
	t.Helper()
	if !hosttest.Big() {
		t.Skip("some minutes in OpenPBS; set SIAFU_BIG=1")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can start PBS's daemons")
	}
	install := os.Getenv("PBS_EXEC")
	if install == "" {
		install = "/opt/pbs"
	}
	if _, err := os.Stat(filepath.Join(install, "sbin", "pbs_server")); err != nil {
		t.Skipf("no pbs_server in %s: install OpenPBS, or set PBS_EXEC to its folder", install)
	}
	for _, name := range []string{"mpirun", "ip", "unshare", "nsenter"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("no %s on this machine", name)
		}
	}
	dir, err := os.MkdirTemp("/run", "pbs") // PBS refuses a folder below /tmp, which others may write to
	if err != nil {
		t.Skipf("no folder for PBS: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cmd := exec.Command("testdata/pbs-cluster", dir, "32")
	cmd.Stderr = os.Stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if errIn != nil || errOut != nil || cmd.Start() != nil {
		t.Fatal("the cluster does not start")
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // its daemons were killed
	})
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		logs, _ := exec.Command("sh", "-c", "tail -n 20 "+dir+"/*.out "+dir+"/?/home/*_logs/*").Output()
		t.Fatalf("the cluster is not ready: %q\n%s", line, logs)
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	before := syscall.Umask(0) // the user of the jobs writes to the folders of this test
	t.Cleanup(func() { syscall.Umask(before) })
}

func pbs0(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := pbs.run(nil, name, args...); err != nil {
		t.Fatalf("%v %s", err, out)
	}
}

// The script that submit writes, unchanged, in a real OpenPBS.
func TestScriptInPBS(t *testing.T) {
	pbsCluster(t)
	use := func(change func(*Job)) func(*Job) {
		return func(j *Job) {
			j.Scheduler = "pbs"
			if change != nil {
				change(j)
			}
		}
	}
	mpitest.NeedOpenMPI(t, "two nodes")
	t.Setenv("OMPI_MCA_btl", "self,tcp") // ranks of two nodes on one host would take the same memory for their own
	lesson := newLesson(t)
	const resumed = `start epoch=1 (.|\n)*stopped after=(\d+)\nstart epoch=([2-9]|\d\d+) (.|\n)*\nfinished`
	continued := func(s *scene) {
		s.Helper()
		if next := (Record{Job: s.id}).jobOf(s.run); next == s.id {
			s.Errorf("no other job continues job %s", s.id)
		}
		if logs, _ := filepath.Glob(s.run + "-*.out"); len(logs) != 1 || logs[0] != s.job.Log(s.id) {
			s.Errorf("its logs are %q, want %s", logs, s.job.Log(s.id))
		}
	}
	t.Run("together", func(t *testing.T) {
		t.Run("to the end", func(t *testing.T) {
			t.Parallel()
			s := begin(t, use(nil))
			s.ends("COMPLETED")
			s.await(`^start epoch=1 ranks=4 .*\nfinished\n`)
		})
		t.Run("stopped by URG", func(t *testing.T) {
			t.Parallel()
			s := begin(t, use(nil), "--until-stopped", "yes")
			s.await("start epoch=1 ")
			time.Sleep(300 * time.Millisecond)
			pbs0(t, "qsig", "-s", "SIGURG", s.id)
			s.await(resumed)
			s.ends("COMPLETED")
			continued(s)
		})
		t.Run("training stopped by the time limit", func(t *testing.T) {
			t.Parallel()
			s := lesson.begin(t, "200ms", use(func(j *Job) { j.Time, j.Grace = "00:02:00", 115 }))
			s.await("\nresume epoch=")
			if list, err := (Watch{Queue: Queue, Now: time.Now()}).All([]string{s.run}); err != nil || list[0].Phase == Stopped {
				t.Errorf("status says %+v %v", list, err)
			}
			s.ends("COMPLETED")
			lesson.learnt(s, s.run)
			continued(s)
		})
		t.Run("array", func(t *testing.T) {
			t.Parallel()
			s := lesson.begin(t, "50ms", use(func(j *Job) {
				j.Array, j.Settings = []string{"seed=1,2"}, []string{"seed=1 epochs=9", "seed=2 epochs=30"}
			}))
			s.await(`(?s)\nepoch=1/30.*`)
			number, server, _ := strings.Cut(s.id, "[]")
			pbs0(t, "qsig", "-s", "SIGURG", number+"[1]"+server)
			s.await("\nresume epoch=")
			s.ends("COMPLETED")
			lesson.learnt(s, filepath.Join(s.run, "seed=2,epochs=30"), "--seed", "2")
			if r, err := runfolder.Read(filepath.Join(s.run, "seed=1,epochs=9")); err != nil || r.Summary.Epochs != 9 {
				t.Errorf("%+v %v", r, err)
			}
		})
		t.Run("array of one", func(t *testing.T) {
			t.Parallel()
			s := begin(t, use(func(j *Job) { j.Array, j.Settings = []string{"seed=7"}, []string{"seed=7"} }))
			s.ends("COMPLETED")
			s.await(` --seed=7 (.|\n)*\nfinished`)
		})
		t.Run("two nodes", func(t *testing.T) {
			t.Parallel()
			s := begin(t, use(func(j *Job) { j.Nodes, j.TasksPerNode, j.Interface = 2, 2, "pbs0" }), "--until-stopped", "yes")
			s.await("start epoch=1 ranks=4 ")
			time.Sleep(300 * time.Millisecond)
			pbs0(t, "qsig", "-s", "SIGURG", s.id)
			s.await(resumed)
			s.ends("COMPLETED")
		})
		t.Run("crash", func(t *testing.T) {
			t.Parallel()
			s := begin(t, use(nil), "--crash-at", "5")
			s.ends("COMPLETED")
			s.await(`start epoch=1 (.|\n)*start epoch=5 (.|\n)*finished(.|\n)*restart 1 of 2 in `)
		})
		t.Run("cancelled", func(t *testing.T) {
			t.Parallel()
			s := begin(t, use(nil), "--epochs", "600")
			s.await("start epoch=1 ")
			if _, err := s.job.Submit(); fault.KindOf(err) != fault.Usage ||
				!strings.Contains(err.Error(), "job "+s.id+" (RUNNING) uses this run folder") || !strings.Contains(err.Error(), "(qdel ") {
				t.Errorf("a second job for the same run folder: %v", err)
			}
			pbs0(t, "qdel", s.id)
			s.await("stopped after=")
			s.ends("CANCELLED")
		})
		t.Run("run again by an operator", func(t *testing.T) {
			t.Parallel()
			s := begin(t, use(nil), "--epochs", "100")
			s.await("start epoch=1 ")
			time.Sleep(300 * time.Millisecond)
			pbs0(t, "qrerun", s.id)
			s.await(`start epoch=1 (.|\n)*\nstart epoch=([2-9]|\d\d+) (.|\n)*\nfinished`)
			if list := s.ends("COMPLETED"); list[0].Restarts != 1 {
				t.Errorf("it was restarted %d times", list[0].Restarts)
			}
		})
		t.Run("no such module", func(t *testing.T) {
			t.Parallel()
			s := begin(t, use(func(j *Job) { j.Modules = []string{"none/1.0"} }))
			s.ends("FAILED")
			s.await("siafu: module none/1.0 was not loaded on pbs")
		})
		t.Run("more processors than there are", func(t *testing.T) {
			t.Parallel()
			s := begin(t, use(func(j *Job) { j.CPUsPerTask = 1000 }))
			for deadline := time.Now().Add(hosttest.Patience); ; time.Sleep(100 * time.Millisecond) {
				list, err := s.entries()
				if err == nil && phase(list[0], false) == Queued && strings.Contains(list[0].Reason, "Insufficient amount of resource") {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%+v %v", list, err)
				}
			}
			pbs0(t, "qdel", s.id)
			s.ends("CANCELLED")
		})
		t.Run("rejected", func(t *testing.T) {
			t.Parallel()
			j := plainJob()
			j.Scheduler, j.Partition, j.Run = "pbs", "nowhere", filepath.Join(sharedDir(t), "run")
			if _, err := j.Submit(); fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "Unknown queue") {
				t.Errorf("%v", err)
			}
		})
		t.Run("difficult names", func(t *testing.T) {
			t.Parallel()
			self, dir := printer(t), sharedDir(t)
			for _, name := range nasty {
				j := named(self, "job", filepath.Join(dir, name), name, "")
				j.Scheduler, j.Nodes, j.TasksPerNode, j.CPUsPerTask = "pbs", 1, 1, 1
				r, err := j.Submit()
				if err != nil {
					t.Fatal(err)
				}
				s := &scene{T: t, run: j.Run, id: r.Job, job: j}
				s.ends("COMPLETED")
				if text, err := os.ReadFile(j.Log(r.Job)); !strings.Contains(string(text), "train\x00"+name+"\x00") {
					t.Errorf("%v: the log %s holds %q", err, j.Log(r.Job), text)
				}
			}
		})
		t.Run("after partitioning", func(t *testing.T) {
			t.Parallel()
			s := lesson.begin(t, "1ms", use(func(j *Job) { j.PartitionJob, j.Parts = true, []string{lesson.data, "--parts", "3"} }))
			s.ends("COMPLETED")
			lesson.learnt(s, s.run)
			s.await("partition") // in the log of that job
		})
		t.Run("after failed partitioning", func(t *testing.T) {
			t.Parallel()
			s := begin(t, use(func(j *Job) { j.PartitionJob, j.Parts = true, []string{"nowhere", "--parts", "3"} }))
			s.ends("CANCELLED") // there is nothing to partition, and nobody waits for it
		})
	})
	t.Run("preempted", func(t *testing.T) {
		s := begin(t, use(nil), "--epochs", "200")
		s.await("start epoch=1 ")
		time.Sleep(300 * time.Millisecond)
		high := filepath.Join(sharedDir(t), "high")
		hosttest.Program(t, high, "#!/bin/sh\nsleep 1\n")
		pbs0(t, "qsub", append(strings.Fields("-q express -o /dev/null -j oe -l select=2:ncpus=32 -l place=scatter"), high)...)
		s.await(`start epoch=1 (.|\n)*\nstart epoch=([2-9]|\d\d+) (.|\n)*\nfinished`)
		if list := s.ends("COMPLETED"); list[0].Restarts != 1 {
			t.Errorf("it was restarted %d times", list[0].Restarts)
		}
	})
}
