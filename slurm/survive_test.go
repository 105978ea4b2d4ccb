//go:build mpi

package slurm

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"siafu/internal/testkit/mpitest"
)

// killWhere kills all processes whose environment has the given variables, and returns how many. The
// environment of a rank names its run by the id of its launch.
func killWhere(variables ...string) (killed int) { return signalWhere(syscall.SIGKILL, variables...) }

// signalWhere sends a signal to all processes whose environment has the given variables, and returns how many.
func signalWhere(signal syscall.Signal, variables ...string) (reached int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		environ, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		all := true
		for _, v := range variables {
			all = all && bytes.Contains(environ, append([]byte(v), 0))
		}
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path))); all && pid > 0 && syscall.Kill(pid, signal) == nil {
			reached++
		}
	}
	return reached
}

// A submitted run continues after the loss of a rank, and of a node with its daemon. The job has one
// start, and the model is that of an undisturbed run.
func TestSurvivesInSlurm(t *testing.T) {
	mpitest.NeedOpenMPI(t, "--survive")
	cluster(t)
	lesson := newLesson(t)
	// Ranks of the two nodes are on one host and would take the same memory for their own.
	t.Setenv("OMPI_MCA_btl", "self,tcp")
	t.Setenv("OMPI_MCA_btl_tcp_if_include", "lo")
	begin := func(id string, change func(*Job)) *scene {
		s := lesson.begin(t, "50ms", func(j *Job) {
			j.ID, j.Survive, j.Train = id, true, append(j.Train, "--survive")
			change(j)
		})
		s.await("\nepoch=1/")
		time.Sleep(300 * time.Millisecond)
		return s
	}
	rank := begin("survive-rank", func(*Job) {})
	if n := killWhere("SIAFU_LAUNCH=survive-rank", "OMPI_COMM_WORLD_RANK=2"); n == 0 {
		t.Fatal("there is no rank 2")
	}
	scenes := []*scene{rank}
	if !mpitest.PRRTE() { // which ends the job when it loses a daemon
		scenes = append(scenes, loseNode(t, begin))
	}
	for _, s := range scenes {
		for _, e := range s.ends("COMPLETED") {
			if e.Restarts != 0 {
				t.Errorf("job %s was started %d times", e.ID, e.Restarts+1)
			}
		}
		s.await("\nview number=1 ")
		lesson.learnt(s, s.run)
	}
}

// loseNode begins a run on two nodes, and kills the daemon of the second one with its ranks.
func loseNode(t *testing.T, begin func(id string, change func(*Job)) *scene) *scene {
	t.Helper()
	node := begin("survive-node", func(j *Job) { j.Nodes, j.TasksPerNode, j.Partition, j.Interface = 2, 2, "pair", "lo" })
	// The daemon of the second node and its ranks are a step of the job.
	if n := killWhere("SIAFU_LAUNCH=survive-node", "SLURM_STEP_ID=0"); n < 3 {
		t.Fatalf("%d processes are on the second node", n)
	}
	return node
}
