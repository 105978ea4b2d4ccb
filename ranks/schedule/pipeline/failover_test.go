package pipeline

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// progress executes random prefixes of lists: messages are in transit for a random time. It returns what
// each stage has completed, with the messages that arrived as completed sends.
func progress(r *rand.Rand, lists [][]Instruction, instructions int) []Done {
	done, next := make([]Done, len(lists)), make([]int, len(lists))
	arrived := map[Instruction]bool{}
	for range instructions {
		stage := r.IntN(len(lists))
		if next[stage] == len(lists[stage]) {
			continue
		}
		i := lists[stage][next[stage]]
		switch {
		case i.Op == Reduce:
			continue // waits for other pipelines
		case i.Op.Receives() && !arrived[i]:
			continue
		case i.Op.Sends():
			receive, _ := i.receiver()
			arrived[receive] = true
		}
		next[stage]++
		done[stage][i.Op]++
	}
	Settings{Stages: len(lists)}.Acknowledge(done)
	return done
}

// check tests the lists of a step that continues from done without victims.
func check(t *testing.T, s Settings, victims []int, done []Done) {
	t.Helper()
	lists := s.Failover(victims, done)
	if _, err := new(Costs).Execute(lists); err != nil {
		t.Fatalf("done %v: %v\n%v", done, err, lists)
	}
	passes, rank := map[Instruction]int{}, map[int]int{}
	for stage := range lists {
		rank[stage] = stage
		if slices.Contains(victims, stage) {
			rank[stage] = s.Shadow(stage)
		}
	}
	unread := map[Instruction]int{}
	for r, list := range lists {
		for _, i := range list {
			if i.Op.Redundant() {
				for _, v := range victims {
					if i.Stage == v || i.Stage == s.Shadow(v) || i.Stage == s.Successor(v) {
						t.Errorf("list %d: %v", r, i)
					}
				}
			} else if rank[i.Stage] != r {
				t.Errorf("list %d has %v", r, i)
			}
			if i.Peer != None && rank[i.Peer] == r {
				t.Errorf("list %d has the internal message %v", r, i)
			}
			if i.Op.Sends() {
				receive, _ := i.receiver()
				unread[receive]++
			}
			if i.Op.Receives() {
				unread[i]--
			}
			passes[i]++
		}
	}
	for i, n := range unread {
		if n != 0 {
			t.Errorf("%d unread messages of %v", n, i)
		}
	}
	for stage := range s.Stages {
		var complete Done
		if done != nil {
			complete = done[stage]
		}
		for k := range s.Microbatches {
			for _, op := range []Op{Forward, Backward} {
				want := 1
				if k < complete[op] {
					want = 0
				}
				if n := passes[Instruction{op, stage, k, None}]; n != want {
					t.Errorf("%v of stage %d and microbatch %d: %d times, want %d", op, stage, k, n, want)
				}
			}
		}
		if passes[Instruction{Reduce, stage, None, None}] != 1 || passes[Instruction{Apply, stage, None, None}] != 1 {
			t.Errorf("stage %d is not reduced and applied once", stage)
		}
	}
	ascending(t, s, lists)
	ordered(t, lists, done)
}

// ordered tests that each pass follows the passes on the same rank that it depends on. Messages that
// the shadow received before the loss do not depend on the victim's passes, which it repeats.
func ordered(t *testing.T, lists [][]Instruction, done []Done) {
	t.Helper()
	for _, list := range lists {
		at := map[Instruction]int{}
		for n, i := range list {
			at[i] = n + 1
		}
		before := func(op Op, stage int, of Instruction) {
			if n, is := at[Instruction{op, stage, of.Microbatch, None}]; is && n > at[of] {
				t.Errorf("%v is before the %v of stage %d", of, op, stage)
			}
		}
		for i, n := range at {
			switch i.Op {
			case Forward, RedundantForward:
				if done == nil || i.Op == RedundantForward || i.Microbatch >= done[i.Stage][ReceiveActivations] {
					before(Forward, i.Stage-1, i)
				}
			case Backward:
				before(Forward, i.Stage, i)
				if done == nil || i.Microbatch >= done[i.Stage][ReceiveGradients] {
					before(Backward, i.Stage+1, i)
				}
			case RedundantBackward:
				before(RedundantForward, i.Stage, i)
				before(Backward, i.Stage+1, i)
			case SendActivations:
				before(Forward, i.Stage, i)
			case SendGradients:
				before(Backward, i.Stage, i)
			case Reduce, Apply:
				for _, j := range list {
					if !j.Op.Redundant() && j.Op != Apply && j.Op != Reduce && at[j] > n {
						t.Errorf("%v after %v", j, i)
					}
				}
			}
		}
	}
}

// ascending tests that the gradients of a stage are added in ascending order of microbatches.
func ascending(t *testing.T, s Settings, lists [][]Instruction) {
	t.Helper()
	for _, list := range lists {
		last := map[[2]int]int{}
		for _, i := range list {
			key := [2]int{int(i.Op), i.Stage}
			if before, is := last[key]; is && before >= i.Microbatch {
				t.Errorf("%v follows microbatch %d", i, before)
			}
			last[key] = i.Microbatch
		}
	}
}

// After a loss between two steps, the next steps are complete without messages between victim and shadow.
func TestFailover(t *testing.T) {
	all(t, func(t *testing.T, s Settings) {
		for victim := range s.Stages {
			if s.Stages > 1 {
				check(t, s, []int{victim}, nil)
			}
			for other := victim + 2; other < s.Stages && s.Shadow(victim) != other; other++ {
				check(t, s, []int{victim, other}, nil)
			}
		}
	})
}

// After a loss at any moment of a step, the step is completed, and each gradient is computed once: by its
// stage, or again by the shadow of a lost stage.
func TestResume(t *testing.T) {
	all(t, func(t *testing.T, s Settings) {
		if s.Stages == 1 {
			return
		}
		r := rand.New(rand.NewPCG(uint64(s.Stages), uint64(s.Microbatches)))
		total := 8 * s.Stages * s.Microbatches
		for victim := range s.Stages {
			for range 6 {
				done := progress(r, s.lists(), r.IntN(2*total))
				done[victim] = done[s.Shadow(victim)].Protected()
				s.Acknowledge(done)
				check(t, s, []int{victim}, done)
			}
		}
	})
}

// What the shadow has computed for its victim is not computed again.
func TestProtected(t *testing.T) {
	for _, want := range []struct {
		redundancy        Redundancy
		forward, backward int // passes that the shadow repeats
	}{{LazyForwardBackward, 8, 8}, {EagerForward, 4, 8}, {EagerForwardBackward, 4, 5}} {
		s := Settings{4, 8, OneForwardOneBackward, want.redundancy}
		var shadow Done
		for _, i := range s.Of(1) {
			if shadow[i.Op]++; i.Op == Backward && i.Microbatch == 2 {
				break // after the forward passes of microbatches 0 to 4, and the redundant ones of 0 to 3
			}
		}
		passes := map[Op]int{}
		for _, i := range Resume(s.Of(2), shadow.Protected()) {
			passes[i.Op]++
		}
		if passes[Forward] != want.forward || passes[Backward] != want.backward {
			t.Errorf("%v: %v, after %v", want.redundancy, passes, shadow)
		}
	}
}

// Without a loss, the rest of a step is what was not done.
func TestResumeWithoutLoss(t *testing.T) {
	s := Settings{Stages: 3, Microbatches: 4, Redundancy: EagerForward}
	for n := range 200 {
		done := progress(rand.New(rand.NewPCG(uint64(n), 1)), s.lists(), n)
		check(t, s, nil, done)
	}
	if left := Resume(s.Of(1), Done{}); !slices.Equal(left, s.Of(1)) {
		t.Errorf("%v", left)
	}
}

// In each group of a merged list, backward passes come first, and the messages at the head are those of the
// victim before those of the shadow, sends and receives apart.
func TestMergedOrder(t *testing.T) {
	all(t, func(t *testing.T, s Settings) {
		for victim := range s.Stages {
			if s.Stages == 1 {
				return
			}
			shadow := s.Shadow(victim)
			list := Merge(s.Of(shadow), s.Of(victim))
			for k := 1; k < len(list); k++ {
				a, b := list[k-1], list[k]
				sends := a.Op.Sends() && b.Op.Sends()
				receives := a.Op.Receives() && b.Op.Receives()
				if (sends || receives) && a.Stage == shadow && b.Stage == victim {
					t.Errorf("victim %d: %v before %v", victim, a, b)
				}
				if a.Op.Receives() && b.Op.Sends() {
					t.Errorf("victim %d: %v before %v", victim, a, b)
				}
			}
		}
	})
}

// The last stage runs stage 0 without serialising the pipeline: a merged step of P equal stages takes less
// than twice the time of a step, plus the passes of one microbatch.
func TestMergedTime(t *testing.T) {
	for stages := 2; stages <= 6; stages++ {
		for victim := range stages {
			s := Settings{Stages: stages, Microbatches: 16}
			c := uniform(stages, 1, 2)
			whole := Simulate(s, c).Seconds
			merged, err := c.Execute(s.Failover([]int{victim}, nil))
			if err != nil {
				t.Fatal(err)
			}
			if limit := 2*whole + float64(3*stages); merged.Seconds > limit || merged.Seconds < 2*3*16 {
				t.Errorf("P=%d, victim %d: %g of %g", stages, victim, merged.Seconds, whole)
			}
			t.Logf("P=%d victim=%d: %.0f, without a loss %.0f", stages, victim, merged.Seconds, whole)
		}
	}
}
