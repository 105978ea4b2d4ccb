//go:build mpi

package parts_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
	"siafu/internal/testkit/worldtest"
	"siafu/ranks/world"
	"siafu/ranks/world/mpi"
	"siafu/ranks/world/parts"
)

// sceneVar is the variable with the scene for a rank started by mpirun.
const sceneVar = "SIAFU_PARTS_SCENE"

// play runs a scene on the given number of ranks.
func play(t *testing.T, ranks int, scene string) {
	t.Helper()
	cmd := mpitest.Mpirun(t, ranks, os.Args[0], "-test.run=^TestRank$", "-test.v")
	cmd.Env = append(os.Environ(), sceneVar+"="+scene)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "\n--- PASS: TestRank") != ranks {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The world of parts is also a world under MPI; the numbers of ranks between are in
// TestConformance, and here with SIAFU_BIG=1.
func TestMPIConformance(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 4, 8} {
		if (ranks == 2 || ranks == 4) && !hosttest.Big() {
			continue
		}
		t.Run(strconv.Itoa(ranks), func(t *testing.T) { play(t, ranks, "suite") })
	}
}

func TestMPILateLongBlocks(t *testing.T) { play(t, lateView.Ranks, "late") }

func TestMPILeftLetters(t *testing.T) { play(t, leftView.Ranks, "left") }

// Over TCP a block takes some time, also on one machine.
func TestMPIThroughViews(t *testing.T) {
	t.Setenv("OMPI_MCA_btl", "self,tcp")
	t.Setenv("OMPI_MCA_btl_tcp_if_include", "lo")
	play(t, courseView.Started(), "views")
}

// TestRank runs one rank of a scene.
func TestRank(t *testing.T) {
	scene := os.Getenv(sceneVar)
	if scene == "" {
		t.Skip("runs only under mpirun, started by the other tests")
	}
	c, stop, err := mpi.Start(world.Limits{Abort: hosttest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, v world.View, body func(c world.Comm) error) {
		if err := parts.RunParts(c, v, body); err != nil {
			t.Errorf("rank %d: %v", c.Rank(), err)
			c.Abort(1, nil) // the others would wait for it
		}
	}
	switch scene {
	case "suite":
		const n = 8
		worldtest.Run(t, n, func(t *testing.T, body func(c world.Comm) error) {
			run(t, world.View{Parts: n, Ranks: c.Size()}, body)
		})
	case "late":
		run(t, lateView, late(t))
	case "left":
		run(t, leftView, left)
	case "views":
		r := newRounds(courseView, c.Rank(), 8*longBlock, turns())
		if err := parts.RunViews(c, courseView, r, patient); err != nil {
			t.Errorf("rank %d: %v", c.Rank(), err)
			c.Abort(1, nil)
		}
		if err := c.Barrier(); err != nil {
			t.Error(err)
		}
		r.check(t)
	}
	stop()
}
