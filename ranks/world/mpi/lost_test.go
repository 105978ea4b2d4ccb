//go:build mpi

package mpi

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"siafu/internal/testkit/mpitest"
	"siafu/ranks/world"
)

// The other ranks continue after the loss of a rank to which they send. Without lost.c, Open MPI 4.1 never
// returns from a call if they send several messages before it notices the loss, and ends the process
// if messages are queued when it does.
func TestOutlivesLostConnections(t *testing.T) {
	mpitest.NeedOpenMPI(t, "surviving a lost connection")
	for _, scene := range []string{"lost-sends", "lost-queued"} {
		t.Run(scene, func(t *testing.T) {
			cmd := mpitest.Recovering(mpitest.Mpirun(t, 3, os.Args[0], "-test.run=^TestRank$", "-test.v"))
			cmd.Env = append(os.Environ(), sceneVar+"="+scene, "OMPI_MCA_btl=tcp,self", "OMPI_MCA_btl_tcp_if_include=lo")
			out, err := cmd.CombinedOutput()
			if _, isExit := err.(*exec.ExitError); err != nil && !isExit {
				t.Fatal(err)
			}
			if n := strings.Count(string(out), "has continued"); n != 2 {
				t.Errorf("%d ranks have continued, want 2\n%s", n, out)
			}
		})
	}
}

func init() {
	scenes["lost-sends"] = func(t *testing.T, c world.Comm, _ func()) { lost(t, c, 20, 100, false) }
	scenes["lost-queued"] = func(t *testing.T, c world.Comm, _ func()) { lost(t, c, 400, 50<<10, true) }
}

// lost sends messages to rank 2 before and after its loss, and exchanges some with the other rank. queued
// is set if messages to rank 2 are still queued when the library notices the loss.
func lost(t *testing.T, c world.Comm, messages, length int, queued bool) {
	const pid, ready = 1, 2
	Observe(5*time.Second, func() {
		fmt.Println("a call does not return")
		os.Exit(1)
	})
	if c.Rank() == 2 {
		for r := range 2 {
			if _, err := c.Isend(fmt.Append(nil, os.Getpid()), r, pid); err != nil {
				t.Fatal(err)
			}
		}
		for { // keeps the library going, and receives nothing else
			if _, _, err := c.TryRecv(0, ready); err != nil {
				t.Fatal(err)
			}
		}
	}
	m, err := c.Recv(2, pid)
	if err != nil {
		t.Fatal(err)
	}
	victim := 0
	fmt.Sscan(string(m.Data), &victim)
	meet := func() {
		if _, err := swap(c, []byte("lost"), 1-c.Rank()); err != nil {
			t.Fatal(err)
		}
	}
	send := func() {
		for range messages {
			if _, err := c.Isend(make([]byte, length), 2, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := syscall.Kill(victim, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	send()
	meet()
	_ = syscall.Kill(victim, syscall.SIGKILL) // the other rank may have done it
	time.Sleep(300 * time.Millisecond)        // its connections end
	if queued {
		meet()
	}
	for range 2 {
		send()
		meet()
	}
	fmt.Println("rank has continued")
	os.Exit(0)
}
