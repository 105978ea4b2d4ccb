//go:build mpi

package mpi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/testkit/mpitest"
	"siafu/ranks/world"
)

// Ranks on one host listen on no port, unless the user has chosen a transport that does.
func TestPorts(t *testing.T) {
	variable, tcp := transports, "tcp,self"
	if !mpitest.OpenMPI() {
		variable = ucx
	}
	for chosen, want := range map[string]string{"": "listens: false", tcp: "listens: true"} {
		t.Run(chosen, func(t *testing.T) {
			cmd := mpitest.Mpirun(t, 2, os.Args[0], "-test.run=^TestRank$", "-test.v")
			cmd.Env = append(os.Environ(), sceneVar+"=ports", variable+"="+chosen, "OMPI_MCA_btl_tcp_if_include=lo")
			out, err := cmd.CombinedOutput()
			if n := strings.Count(string(out), want); err != nil || n != 2 {
				t.Errorf("%d of 2 ranks: %s: %v\n%s", n, want, err, out)
			}
		})
	}
}

func init() {
	scenes["ports"] = func(t *testing.T, c world.Comm, stop func()) {
		if _, err := swap(c, []byte("hello"), 1-c.Rank()); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("listens: %t\n", listens(t))
		stop()
	}
}

// listens reports whether this process listens on a TCP port.
func listens(t *testing.T) bool {
	own := map[string]bool{}
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		socket, _ := os.Readlink(link) // the file of Glob is closed
		own[socket] = true
	}
	inherited, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", os.Getppid()))
	for _, link := range inherited { // Hydra leaves its own socket open in the ranks
		socket, _ := os.Readlink(link)
		delete(own, socket)
	}
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, _ := os.ReadFile(table) // a host may lack IPv6
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" && own["socket:["+f[9]+"]"] {
				return true
			}
		}
	}
	return false
}
