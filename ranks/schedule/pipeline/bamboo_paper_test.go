package pipeline

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// short writes passes as in figure 3.1, "F0 F1 B0", and messages as "a0" (activations) and "g0" (gradients),
// with > for sends and < for receives. Instructions of a stage other than home have its number: "B0/2".
func short(list []Instruction, home int) string {
	var words []string
	for _, i := range list {
		name := map[Op]string{ReceiveActivations: "<a", Forward: "F", SendActivations: ">a", ReceiveGradients: "<g",
			Backward: "B", SendGradients: ">g",
			RedundantForward: "FRC", RedundantBackward: "BRC", Reduce: "reduce", Apply: "apply", SendRedundantGradients: ">r",
			ReceiveRedundantGradients: "<r"}[i.Op]
		if name == "" {
			continue // Spill
		}
		if i.Microbatch != None {
			name += fmt.Sprint(i.Microbatch)
		}
		if i.Stage != home && !i.Op.Redundant() {
			name += fmt.Sprintf("/%d", i.Stage)
		}
		words = append(words, name)
	}
	return strings.Join(words, " ")
}

func passes(list []Instruction, home int) string {
	return short(slices.DeleteFunc(slices.Clone(list), func(i Instruction) bool { return i.Op != Forward && i.Op != Backward }), home)
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("\n%s, want\n%s", got, want)
	}
}

// "GPipe schedules forward passes of all microbatches before any backward pass, as shown in Figure 3.1(b)
// where each node processes four microbatches" (§3.2).
func TestGPipe(t *testing.T) {
	for stage := range 4 {
		equal(t, passes(Settings{Stages: 4, Microbatches: 4, Schedule: GPipe}.Of(stage), stage), "F0 F1 F2 F3 B0 B1 B2 B3")
	}
}

// "PipeDream proposes the one-forward-one-backward (1F1B) schedule to interleave the backward and forward
// passes, as shown in Figure 3.1(c)" (§3.2). "In Figure 3.1 (c), for example, node 1 has 3 active
// microbatches while node 2 only has 2" (§3.5.2): nodes are numbered from 0.
func TestOneForwardOneBackward(t *testing.T) {
	s := Settings{Stages: 4, Microbatches: 5}
	equal(t, passes(s.Of(0), 0), "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4")
	equal(t, passes(s.Of(1), 1), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4")
	equal(t, passes(s.Of(2), 2), "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4")
	equal(t, passes(s.Of(3), 3), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4")
	if s.InFlight(1) != 3 || s.InFlight(2) != 2 {
		t.Error(s.InFlight(1), s.InFlight(2))
	}
}

// "The instructions consist of a computation component (i.e., forward, backward, and apply gradient), and a
// communication component (i.e., send/receive activation, send/receive gradient, and all-reduce)" (§3.4).
func TestInstructions(t *testing.T) {
	s := Settings{Stages: 3, Microbatches: 2}
	equal(t, short(s.Of(0), 0), "F0 >a0 F1 >a1 <g0 B0 <g1 B1 reduce apply")
	equal(t, short(s.Of(1), 1), "<a0 F0 >a0 <a1 F1 >a1 <g0 B0 >g0 <g1 B1 >g1 reduce apply")
	equal(t, short(s.Of(2), 2), "<a0 F0 B0 >g0 <a1 F1 B1 >g1 reduce apply")
}

// "Here we assume the forward pass on node i and i+1 takes time t and 1.2t, respectively. Hence, a bubble of 0.6t
// exists before each communication barrier" (figure 3.9). Backward passes take 2t and 2.4t.
func TestFigure39(t *testing.T) {
	c := Costs{Forward: []float64{1, 1.2}, Backward: []float64{2, 2.4}}
	line := Simulate(Settings{Stages: 2, Microbatches: 20}, c)
	waits := 0
	for _, e := range line.Events[0] {
		// The first and last two waits are those of filling and draining the pipeline.
		if e.Op == ReceiveGradients && e.Microbatch >= 2 && e.Microbatch < 18 {
			if wait := e.End - e.Begin; math.Abs(wait-0.6) > 1e-9 {
				t.Errorf("%v waits %g", e.Instruction, wait)
			}
			waits++
		}
	}
	if waits != 16 {
		t.Errorf("%d waits", waits)
	}
}

// "we schedule FRC on a node before the node starts communicating with its successor node. [...] Bamboo
// schedules FNC_n for the k-th microbatch and FRC_n+1^n for its previous (k-1)-th microbatch to run in
// parallel" (§3.5.2). The communication that waits for the successor is the receive of gradients.
func TestEagerForward(t *testing.T) {
	s := Settings{4, 6, OneForwardOneBackward, EagerForward}
	equal(t, short(s.Of(2), 2), "<a0 F0 >a0 <a1 F1 >a1 FRC0 <g0 B0 >g0 <a2 F2 >a2 FRC1 <g1 B1 >g1 <a3 F3 >a3 FRC2 <g2 B2 >g2 "+
		"<a4 F4 >a4 FRC3 <g3 B3 >g3 <a5 F5 >a5 FRC4 <g4 B4 >g4 FRC5 <g5 B5 >g5 reduce apply")
}

// "To enable the last node to perform RC for the first node, we let it fetch input samples directly"
// (§3.5.1): the last stage receives nothing for it.
func TestLastProtectsFirst(t *testing.T) {
	s := Settings{3, 4, OneForwardOneBackward, EagerForward}
	equal(t, short(s.Of(2), 2), "FRC0 FRC1 <a0 F0 B0 >g0 FRC2 <a1 F1 B1 >g1 FRC3 <a2 F2 B2 >g2 <a3 F3 B3 >g3 reduce apply")
}

// "such a locality benefit does not exist for BRC_n+1^n, which requires the output of BNC_n+2 and incurs much
// extra communication" (§3.5.1).
func TestEagerBackward(t *testing.T) {
	s := Settings{4, 3, OneForwardOneBackward, EagerForwardBackward}
	equal(t, short(s.Of(0), 0), "F0 >a0 F1 >a1 F2 >a2 FRC0 FRC1 <r0 BRC0 <g0 B0 FRC2 <r1 BRC1 <g1 B1 <r2 BRC2 <g2 B2 reduce apply")
	equal(t, short(s.Of(2), 2),
		"<a0 F0 >a0 <a1 F1 >a1 FRC0 BRC0 <g0 B0 >g0 >r0 <a2 F2 >a2 FRC1 BRC1 <g1 B1 >g1 >r1 FRC2 BRC2 <g2 B2 >g2 >r2 reduce apply")
}
