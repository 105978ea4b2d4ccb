package pipeline

import (
	"fmt"
	"slices"
	"testing"
)

// all calls f with each small setting.
func all(t *testing.T, f func(t *testing.T, s Settings)) {
	for stages := 1; stages <= 6; stages++ {
		for microbatches := 1; microbatches <= 8; microbatches++ {
			for _, kind := range []Kind{OneForwardOneBackward, GPipe} {
				for r := Off; r <= EagerForwardBackward; r++ {
					s := Settings{stages, microbatches, kind, r}
					t.Run(fmt.Sprintf("P=%d,K=%d,%v,%v", stages, microbatches, kind, r), func(t *testing.T) { f(t, s) })
				}
			}
		}
	}
}

func (s Settings) lists() (lists [][]Instruction) {
	for stage := range s.Stages {
		lists = append(lists, s.Of(stage))
	}
	return lists
}

// uniform returns equal costs of all stages.
func uniform(stages int, forward, backward float64) (c Costs) {
	for range stages {
		c.Forward, c.Backward = append(c.Forward, forward), append(c.Backward, backward)
	}
	return c
}

// Each list has the passes of all microbatches in ascending order, and each send has one receive. The
// messages between two stages are received in the order in which they are sent.
func TestLists(t *testing.T) {
	all(t, func(t *testing.T, s Settings) {
		sent, received := map[[3]int][]int{}, map[[3]int][]int{} // kind of message, from, to: microbatches
		for stage, list := range s.lists() {
			done := map[Op]int{}
			for _, i := range list {
				if i.Op != Reduce && i.Op != Apply {
					if i.Microbatch != done[i.Op] {
						t.Fatalf("stage %d: %v is number %d", stage, i, done[i.Op])
					}
				}
				done[i.Op]++
				switch {
				case i.Op == Forward || i.Op == Backward:
					if i.Stage != stage {
						t.Errorf("stage %d has %v", stage, i)
					}
				case i.Op == RedundantForward || i.Op == RedundantBackward:
					if i.Stage != s.Successor(stage) {
						t.Errorf("stage %d has %v", stage, i)
					}
				case i.Op.Sends():
					receive, from := i.receiver()
					if from != stage {
						t.Errorf("stage %d sends %v", stage, i)
					}
					key := [3]int{int(receive.Op), from, i.Peer}
					sent[key] = append(sent[key], i.Microbatch)
				case i.Op.Receives():
					key := [3]int{int(i.Op), i.Peer, stage}
					received[key] = append(received[key], i.Microbatch)
				}
			}
			if done[Forward] != s.Microbatches || done[Backward] != s.Microbatches || done[Reduce] != 1 || done[Apply] != 1 {
				t.Errorf("stage %d: %v", stage, done)
			}
			forward, backward := s.Microbatches, 0
			if s.Stages == 1 || s.Redundancy < EagerForward {
				forward = 0
			} else if s.Redundancy == EagerForwardBackward {
				backward = s.Microbatches
			}
			if done[RedundantForward] != forward || done[RedundantBackward] != backward || done[Spill] != forward {
				t.Errorf("stage %d: %v", stage, done)
			}
		}
		for key, list := range sent {
			if !slices.Equal(list, received[key]) {
				t.Errorf("%v: sent %v, received %v", key, list, received[key])
			}
		}
		for key := range received {
			if sent[key] == nil {
				t.Errorf("%v is received and not sent", key)
			}
		}
		if _, err := new(Costs).Execute(s.lists()); err != nil {
			t.Error(err)
		}
	})
}

// Activations that a stage stores: those of P-stage microbatches for 1F1B, of all for GPipe.
func TestInFlight(t *testing.T) {
	all(t, func(t *testing.T, s Settings) {
		for stage, list := range s.lists() {
			now, most := 0, 0
			for _, i := range list {
				switch i.Op {
				case Forward:
					now++
				case Backward:
					now--
				}
				most = max(most, now)
			}
			want := min(s.Stages-stage, s.Microbatches)
			if s.Schedule == GPipe {
				want = s.Microbatches
			}
			if most != want || s.InFlight(stage) != want {
				t.Errorf("stage %d: %d microbatches in flight, InFlight is %d, want %d", stage, most, s.InFlight(stage), want)
			}
		}
	})
}

// Without communication, a step of equal stages takes (K+P-1)(f+b), with both schedules.
func TestStepTime(t *testing.T) {
	all(t, func(t *testing.T, s Settings) {
		if s.Redundancy > LazyForwardBackward {
			return
		}
		got := Simulate(s, uniform(s.Stages, 1, 2))
		if want := float64(3 * (s.Microbatches + s.Stages - 1)); got.Seconds != want {
			t.Errorf("a step takes %g, want %g", got.Seconds, want)
		}
		for stage, u := range got.Ranks {
			if u.Busy != float64(3*s.Microbatches) || u.Busy+u.Extra+u.Bubble() != got.Seconds {
				t.Errorf("stage %d: %+v of %g", stage, u, got.Seconds)
			}
		}
	})
}

// A list that receives what nobody sends is an error.
func TestDeadlock(t *testing.T) {
	lists := Settings{Stages: 2, Microbatches: 2}.lists()
	lists[0] = slices.DeleteFunc(lists[0], func(i Instruction) bool { return i.Op == SendActivations && i.Microbatch == 1 })
	if _, err := new(Costs).Execute(lists); err == nil {
		t.Error("no error")
	}
}
