//go:build mpi

package parts_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"siafu/ranks/world"
	"siafu/ranks/world/mpi"
	"siafu/ranks/world/mpi/mpitest"
	"siafu/ranks/world/parts"
	"siafu/ranks/world/worldtest"
)

// partsVar says to a rank that mpirun has started how many parts there are.
const partsVar = "SIAFU_PARTS_SCENE"

// The world of parts is a world under MPI as well.
func TestMPIConformance(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 4, 8} {
		t.Run(strconv.Itoa(ranks), func(t *testing.T) {
			cmd := mpitest.Mpirun(t, ranks, os.Args[0], "-test.run=^TestRank$", "-test.v")
			cmd.Env = append(os.Environ(), partsVar+"=8")
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Count(string(out), "\n--- PASS: TestRank") != ranks {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

// TestRank is one rank of TestMPIConformance.
func TestRank(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(partsVar))
	if err != nil {
		t.Skip("runs only under mpirun, started by another test")
	}
	c, stop, err := mpi.Start(world.Limits{Abort: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	worldtest.Run(t, n, func(t *testing.T, body func(c world.Comm) error) {
		if err := parts.Over(c, world.View{Parts: n, Ranks: c.Size()}, body); err != nil {
			t.Errorf("rank %d: %v", c.Rank(), err)
			c.Abort(1, nil) // the others would wait for it
		}
	})
	stop()
}
